//! What a cycle derives from the configuration before it takes heads.
//!
//! After a change: sums of the quota tree, the order of names, and the state of ClusterQueues. Always: which ClusterQueues'
//! inadmissible Workloads are requeued. Trees with a cohort cycle are left out. Source: docs/reference/kueue.md §3.6.

use crate::dense_table::DenseTable;
use crate::ids::{NodeId, QueueId};
use crate::queues::layer::QueueLayer;
use crate::quota::changes::PendingChanges;
use crate::quota::layer::QuotaLayer;
use crate::quota::tree::QuotaTree;
use crate::state::State;
use crate::topology::layer::TopologyLayer;

/// The steps of the preparation, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preparation {
    /// Sums of the quota tree.
    QuotaTree,
    /// The order of names.
    Names,
    /// State of the ClusterQueues: generation, cohort cycles, activity.
    ClusterQueues,
    /// ClusterQueues to requeue.
    Requeues,
}

impl Preparation {
    /// The first step. Without configuration changes nothing is recomputed.
    pub(super) fn first(quota: &QuotaLayer) -> Self {
        if quota.needs_rebuild() { Self::QuotaTree } else { Self::Requeues }
    }

    /// Carries out this step and returns the next. `requeued` receives the ClusterQueues to requeue.
    pub(super) fn take(self, state: &mut State, requeued: &mut Vec<QueueId>) -> Option<Self> {
        match self {
            Self::QuotaTree => state.quota.rebuild(),
            Self::Names => state.quota.rank(&state.names),
            Self::ClusterQueues => refresh(&mut state.quota, &state.topology, &mut state.queues),
            Self::Requeues => list(&state.quota, &mut state.queues, requeued),
        }
        match self {
            Self::QuotaTree => Some(Self::Names),
            Self::Names => Some(Self::ClusterQueues),
            Self::ClusterQueues => Some(Self::Requeues),
            Self::Requeues => None,
        }
    }
}

/// Recomputes what follows from configuration changes, without a requeue, and Topologies that changed.
pub(crate) fn apply_changes(state: &mut State) {
    state.rebuild_topologies();
    apply_configuration(state);
}

/// The same without Topologies.
pub(crate) fn apply_configuration(state: &mut State) {
    let mut step = Preparation::first(&state.quota);
    while step != Preparation::Requeues {
        step = step.take(state, &mut Vec::new()).unwrap_or(Preparation::Requeues);
    }
}

/// Recomputes the state of ClusterQueues after configuration changes.
fn refresh(quota: &mut QuotaLayer, topology: &TopologyLayer, queues: &mut QueueLayer) {
    let PendingChanges { flavors: all, configured, quota_changed, former_parents } =
        quota.take_changes();
    let root = |node| quota.tree().root(node);
    let changed = NodeSet::of(quota, &configured, |node| node);
    let trees = NodeSet::of(quota, &changed.list, root);
    let quota_changed = NodeSet::of(quota, &quota_changed, root);
    let left = NodeSet::of(quota, &former_parents, root);
    queues.for_each(|queue| {
        let root = quota.tree().root(queue.node());
        // A change of quotas in the tree ends the progress of flavor scans (§4.4 step 7).
        if quota_changed.has(root) {
            queue.end_scans();
        }
        // A tree that lost a child may have lost quota that the child lent.
        if all || trees.has(root) || left.has(root) {
            queue.forget_refused();
            queue.note_configuration();
        }
    });
    for id in queues.ids() {
        if queues.find(id).is_some() {
            update_cohort_cycle(quota, queues, id, all, &changed);
            // Recomputed for every ClusterQueue: a flavor, Topology or check may concern any of
            // them.
            let topology_only = is_topology_only(quota, queues, id);
            queues.set_active(id, is_active(quota, topology, queues, id));
            queues.set_topology_only(id, topology_only);
        }
    }
    // Last, because heights count only active ClusterQueues.
    quota.rebuild_heights(&|id| queues.find(id).is_some_and(|queue| queue.active));
}

/// A set of nodes.
struct NodeSet {
    list: Vec<NodeId>,
    known: DenseTable<NodeId, bool>,
}

impl NodeSet {
    fn of(quota: &QuotaLayer, nodes: &[NodeId], map: impl Fn(NodeId) -> NodeId) -> Self {
        let mut known: DenseTable<NodeId, bool> = quota.tree().ids().map(|_| false).collect();
        let mut list: Vec<NodeId> = nodes.iter().map(|&node| map(node)).collect();
        list.retain(|node| !std::mem::replace(&mut known[*node], true));
        Self { list, known }
    }

    fn has(&self, node: NodeId) -> bool {
        self.known[node]
    }
}

fn update_cohort_cycle(
    quota: &QuotaLayer,
    queues: &mut QueueLayer,
    id: QueueId,
    all: bool,
    changed: &NodeSet,
) {
    let node = queues.at(id).node;
    let cyclic = quota.tree().node(node).cyclic;
    // As in Kueue, the end of a cohort cycle shows only when the ClusterQueue or a flavor changes.
    if cyclic || all || changed.has(node) {
        queues.set_in_cycle(id, cyclic);
    }
}

fn is_active(
    quota: &QuotaLayer,
    topology: &TopologyLayer,
    queues: &QueueLayer,
    id: QueueId,
) -> bool {
    let queue = queues.at(id);
    let mut flavors = queue.groups.iter().flat_map(|group| &group.flavors);
    queue.spec.is_some()
        && queue.ready
        && !queue.stopped
        && !queue.in_cycle
        && crate::checks::inactive(queues, queue).is_none()
        && flavors.all(|&flavor| match quota.flavor(flavor) {
            Some(spec) => spec.topology.is_none_or(|one| topology.topologies().exists(one)),
            None => false,
        })
}

fn is_topology_only(quota: &QuotaLayer, queues: &QueueLayer, id: QueueId) -> bool {
    let groups = &queues.at(id).groups;
    let mut flavors = groups.iter().flat_map(|group| &group.flavors).peekable();
    // A ClusterQueue without flavors implies no topology request.
    flavors.peek().is_some()
        && flavors.all(|&flavor| quota.flavor(flavor).is_some_and(|spec| spec.topology.is_some()))
}

/// Lists the ClusterQueues of every cohort tree for which a requeue is requested.
fn list(quota: &QuotaLayer, queues: &mut QueueLayer, requeued: &mut Vec<QueueId>) {
    let tree = quota.tree();
    queues.take_requeue_requests(tree, |root| list_below(tree, root, requeued));
}

fn list_below(tree: &QuotaTree, node: NodeId, requeued: &mut Vec<QueueId>) {
    let node = tree.node(node);
    requeued.extend(node.queue);
    for &child in &node.children {
        list_below(tree, child, requeued);
    }
}
