//! Everything that can happen to the engine.

use crate::admission_fair_sharing::AdmissionFairSharing;
use crate::amount::Amount;
use crate::ids::{
    CheckId, CohortId, FlavorId, LocalQueueId, NamespaceId, QueueId, RequeueKey, ResourceId,
    TopologyId, TopologyNodeId, WorkloadId,
};
use crate::spec::{
    CheckSpec, ClusterQueueSpec, CohortSpec, FlavorSpec, LocalQueueSpec, QueueEligibility,
    WorkloadSpec,
};
use crate::time::Time;
use crate::topology::{TopologyNodeSpec, TopologySpec};

/// One change. `None` for a spec means that the object is gone.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A namespace and its labels.
    Namespace(NamespaceId, Option<Vec<(Box<str>, Box<str>)>>),
    /// A ResourceFlavor.
    Flavor(FlavorId, Option<FlavorSpec>),
    /// A Topology.
    Topology(TopologyId, Option<TopologySpec>),
    /// A Kubernetes node.
    Node(TopologyNodeId, Option<TopologyNodeSpec>),
    /// An AdmissionCheck.
    Check(CheckId, Option<CheckSpec>),
    /// A cohort (an id of [`crate::Names::cohorts`]). A cohort that is only named by others needs no event.
    Cohort(CohortId, Option<CohortSpec>),
    /// A ClusterQueue.
    ClusterQueue(QueueId, Option<Box<ClusterQueueSpec>>),
    /// A LocalQueue.
    LocalQueue(LocalQueueId, Option<LocalQueueSpec>),
    /// How LocalQueues share by usage; `None` switches it off.
    AdmissionFairSharing(Option<AdmissionFairSharing>),
    /// What a LocalQueue had consumed at some time, as it was recorded.
    ConsumedResources(LocalQueueId, Vec<(ResourceId, Amount)>, Time),
    /// Time to sample what LocalQueues use.
    SampleUsage(Time),
    /// A Workload that holds quota was admitted: nothing more is to be checked.
    Admitted(WorkloadId, Time),
    /// A Workload, new or changed. A spec without admission takes no quota away: only [`Event::Released`] does.
    Workload(WorkloadId, Box<WorkloadSpec>),
    /// A Workload is finished or deleted. Its id may be handed out again.
    WorkloadGone(WorkloadId),
    /// A Workload that holds quota is being evicted, for a reason the engine did not decide.
    Evicting(WorkloadId),
    /// The pods of an evicted Workload are gone.
    Released {
        /// Which.
        workload: WorkloadId,
        /// Whether it may be queued again at once.
        eligibility: QueueEligibility,
        /// Its queue-order timestamp from now on.
        queued_at: Time,
    },
    /// All machines that failed under a Workload that holds places on them; none once they are well again.
    UnhealthyNodes(WorkloadId, Vec<TopologyNodeId>),
    /// The placer may have room for those who wait under this key.
    ClusterCapacity(RequeueKey),
    /// A decision about this Workload was written.
    Written(WorkloadId),
    /// A decision about this Workload could not be written: what was assumed is taken back.
    WriteFailed(WorkloadId),
}
