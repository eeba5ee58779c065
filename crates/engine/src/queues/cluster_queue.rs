//! The record of a ClusterQueue: its spec as the scheduler reads it, its pending queue, and its reserving Workloads.

use std::sync::Arc;

use crate::ids::{FlavorId, NodeId, ResourceId, Slot, WorkloadId};
use crate::queues::pending_queue::PendingQueue;
use crate::queues::priority_counts::PriorityCounts;
use crate::spec::{
    ClusterQueueSpec, FungibilitySpec, Labels, NamespaceSelector, PreemptionSpec, QueueingStrategy,
};
use crate::workloads::record::WorkloadRecord;

/// A resource group with the slots of every (flavor, resource).
#[derive(Debug, Default, Clone)]
pub(crate) struct GroupSlots {
    pub(crate) resources: Vec<ResourceId>,
    pub(crate) flavors: Vec<FlavorId>,
    /// Flavor-major: `slots[flavor * resources.len() + resource]`.
    pub(crate) slots: Vec<Slot>,
}

impl GroupSlots {
    /// The slot of the `flavor`-th flavor for a covered resource.
    pub(crate) fn slot(&self, flavor: usize, resource: ResourceId) -> Option<Slot> {
        let column = self.resources.iter().position(|&known| known == resource)?;
        self.slots.get(flavor * self.resources.len() + column).copied()
    }
}

/// One ClusterQueue.
#[derive(Debug, Clone)]
pub(crate) struct ClusterQueueRecord {
    pub(crate) node: NodeId,
    /// The last observed spec; `None` while only Workloads or LocalQueues refer to it, and after deletion.
    pub(crate) spec: Option<Box<ClusterQueueSpec>>,
    /// Hands out heads: it exists, is ready, not stopped, not in a cohort cycle, and its flavors and checks exist.
    pub(crate) active: bool,
    /// It was in a cohort cycle at the last check. Upstream notices the end of a cycle only when the ClusterQueue
    /// itself or a flavor changes.
    pub(crate) in_cycle: bool,
    pub(crate) stopped: bool,
    pub(crate) ready: bool,
    /// Is in the head list.
    pub(crate) listed: bool,
    pub(crate) strategy: QueueingStrategy,
    pub(crate) preemption: PreemptionSpec,
    pub(crate) flavor_fungibility: FungibilitySpec,
    pub(crate) namespaces: NamespaceSelector,
    pub(crate) groups: Arc<Vec<GroupSlots>>,
    pub(crate) covers_pods: bool,
    /// All flavors have a topology, so every pod set implies a topology request.
    pub(crate) topology_only: bool,
    /// Counts changes of its quotas and of its reserving Workloads. The progress of a flavor scan is valid for one
    /// generation.
    pub(crate) generation: u64,
    pub(crate) pending: PendingQueue,
    /// Workloads with a quota reservation here, in no particular order.
    pub(crate) reserving: Vec<WorkloadId>,
    /// Priorities of the reserving Workloads.
    pub(crate) priorities: PriorityCounts,
}

/// Whether the namespace selector of a ClusterQueue matches the namespace of `workload`.
pub(crate) fn namespace_matches(
    selector: &NamespaceSelector,
    namespaces: &[Option<Labels>],
    workload: &WorkloadRecord,
) -> bool {
    let labels = namespaces.get(workload.namespace.index()).and_then(Option::as_ref);
    match (selector, labels) {
        (NamespaceSelector::Nothing, _) | (_, None) => false,
        (NamespaceSelector::All(all), Some(labels)) => all.iter().all(|one| one.matches(labels)),
    }
}
