//! Everything that can happen to the engine.

use crate::ids::{
    CheckId, FlavorId, HostId, LocalQueueId, NamespaceId, NodeId, QueueId, TopologyId, WorkloadId,
};
use crate::placer::WakeKey;
use crate::spec::{
    CheckSpec, ClusterQueueSpec, CohortSpec, FlavorSpec, Hold, LocalQueueSpec, WorkloadSpec,
};
use crate::time::Time;
use crate::topology::{HostSpec, TopologySpec};

/// One change. `None` for a spec means that the object is gone.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A namespace and its labels.
    Namespace(NamespaceId, Option<Vec<(Box<str>, Box<str>)>>),
    /// A ResourceFlavor.
    Flavor(FlavorId, Option<FlavorSpec>),
    /// A Topology.
    Topology(TopologyId, Option<TopologySpec>),
    /// A machine.
    Host(HostId, Option<HostSpec>),
    /// An AdmissionCheck.
    Check(CheckId, Option<CheckSpec>),
    /// A cohort (an id of [`crate::Names::cohorts`]). A cohort that is only named by others needs no event.
    Cohort(NodeId, Option<CohortSpec>),
    /// A ClusterQueue.
    ClusterQueue(QueueId, Option<Box<ClusterQueueSpec>>),
    /// A LocalQueue.
    LocalQueue(LocalQueueId, Option<LocalQueueSpec>),
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
        hold: Hold,
        /// Its queue-order timestamp from now on.
        queued_at: Time,
    },
    /// All machines that failed under a Workload that holds places on them; none once they are well again.
    UnhealthyNodes(WorkloadId, Vec<HostId>),
    /// The placer may have room for those who wait under this key.
    Room(WakeKey),
    /// A decision about this Workload was written.
    Written(WorkloadId),
    /// A decision about this Workload could not be written: what was assumed is taken back.
    WriteFailed(WorkloadId),
}
