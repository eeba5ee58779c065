//! The record of a ClusterQueue: its spec as the scheduler reads it, its pending queue, and its reserving Workloads.

use std::sync::Arc;

use crate::ids::{FlavorId, NodeId, PODS, ResourceId, Slot, WorkloadId};
use crate::queues::pending_queue::PendingQueue;
use crate::queues::priority_counts::PriorityCounts;
use crate::spec::{
    ClusterQueueInfo, FungibilitySpec, NamespaceSelector, PreemptionSpec, QueueingStrategy,
};

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
    pub(crate) spec: Option<Box<ClusterQueueInfo>>,
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

impl ClusterQueueRecord {
    /// A ClusterQueue without a spec, which hands out no heads.
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            node,
            spec: None,
            active: false,
            in_cycle: false,
            stopped: false,
            ready: false,
            listed: false,
            strategy: QueueingStrategy::default(),
            preemption: PreemptionSpec::default(),
            flavor_fungibility: FungibilitySpec::default(),
            namespaces: NamespaceSelector::Nothing,
            groups: Arc::default(),
            covers_pods: false,
            topology_only: false,
            generation: 0,
            pending: PendingQueue::default(),
            reserving: Vec::new(),
            priorities: PriorityCounts::default(),
        }
    }

    pub(super) fn set_spec(&mut self, spec: Box<ClusterQueueInfo>, groups: Vec<GroupSlots>) {
        self.stopped = spec.stopped;
        self.ready = spec.ready;
        self.strategy = spec.strategy;
        self.preemption = spec.preemption;
        self.flavor_fungibility = spec.flavor_fungibility;
        self.namespaces.clone_from(&spec.namespaces);
        self.covers_pods = spec.groups.iter().any(|group| group.resources.contains(&PODS));
        self.groups = Arc::new(groups);
        self.spec = Some(spec);
    }
}
