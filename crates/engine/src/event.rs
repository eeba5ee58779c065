//! Events: everything that changes the engine's tables from outside.

use crate::admission_fair_sharing::AdmissionFairSharingSettings;
use crate::amount::NanoAmount;
use crate::ids::{
    CheckId, CohortId, FlavorId, LocalQueueId, NamespaceId, QueueId, RequeueKey, ResourceId,
    TopologyId, TopologyNodeId, WorkloadId,
};
use crate::spec::{
    CheckSpec, ClusterQueueInfo, CohortInfo, FlavorSpec, LocalQueueInfo, QueueEligibility,
    WorkloadInfo,
};
use crate::time::Time;
use crate::topology::{TopologyLevels, TopologyNodeSpec};

/// One change. A spec of `None` means that the object is deleted.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A namespace and its labels.
    Namespace(NamespaceId, Option<Vec<(Box<str>, Box<str>)>>),
    /// A ResourceFlavor.
    Flavor(FlavorId, Option<FlavorSpec>),
    /// A Topology.
    Topology(TopologyId, Option<TopologyLevels>),
    /// A Kubernetes node.
    Node(TopologyNodeId, Option<TopologyNodeSpec>),
    /// An AdmissionCheck.
    Check(CheckId, Option<CheckSpec>),
    /// A cohort. A cohort that only other objects refer to needs no event.
    Cohort(CohortId, Option<CohortInfo>),
    /// A ClusterQueue.
    ClusterQueue(QueueId, Option<Box<ClusterQueueInfo>>),
    /// A LocalQueue.
    LocalQueue(LocalQueueId, Option<LocalQueueInfo>),
    /// Configuration of admission fair sharing; `None` switches it off.
    AdmissionFairSharing(Option<AdmissionFairSharingSettings>),
    /// The recorded consumption of a LocalQueue at a time.
    ConsumedResources(LocalQueueId, Vec<(ResourceId, NanoAmount)>, Time),
    /// Time to sample the usage of LocalQueues.
    SampleUsage(Time),
    /// A Workload with a reservation is admitted: all its checks are passed.
    Admitted(WorkloadId, Time),
    /// A Workload, new or changed. A spec without admission releases no quota; only [`Event::Released`] does.
    Workload(WorkloadId, Box<WorkloadInfo>),
    /// A Workload is finished or deleted. Its id may be reused.
    WorkloadGone(WorkloadId),
    /// A Workload with a reservation is being evicted, for a reason outside of the engine.
    Evicting(WorkloadId),
    /// An evicted Workload released its quota: its pods are gone.
    Released {
        /// The Workload.
        workload: WorkloadId,
        /// Whether it may be queued again now.
        eligibility: QueueEligibility,
        /// Its queue-order timestamp from now on.
        queued_at: Time,
    },
    /// All failed nodes that a Workload has pods on (`status.unhealthyNodes`); empty after recovery.
    UnhealthyNodes(WorkloadId, Vec<TopologyNodeId>),
    /// A cluster may have capacity for the Workloads that wait under this key.
    ClusterCapacity(RequeueKey),
    /// Messages may have old numbers: Workloads whose refusal was predicted are evaluated again.
    RefreshMessages,
    /// The last decision about this Workload is written.
    Written(WorkloadId),
    /// The reservation of this Workload is not going to be written: its quota and topology usage are given back, and the Workload
    /// waits as its last observation says.
    ReservationWithdrawn(WorkloadId),
}
