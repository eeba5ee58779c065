//! What a cycle derives from the configuration before it takes heads.
//!
//! After a change: sums of the quota tree, the order of names, and the state of ClusterQueues. Always: which ClusterQueues'
//! inadmissible Workloads are requeued. Trees with a cohort cycle are left out. Source: docs/reference/kueue.md §3.6.

use crate::ids::{CohortId, NodeId, QueueId};
use crate::quota::changes::PendingChanges;
use crate::quota::tree::QuotaTree;
use crate::state::State;

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
    pub(super) fn first(state: &State) -> Self {
        if state.changes.need_rebuild() { Self::QuotaTree } else { Self::Requeues }
    }

    /// Carries out this step and returns the next. `requeued` receives the ClusterQueues to requeue.
    pub(super) fn take(self, state: &mut State, requeued: &mut Vec<QueueId>) -> Option<Self> {
        match self {
            Self::QuotaTree => state.tree.rebuild(),
            Self::Names => rank(state),
            Self::ClusterQueues => refresh(state),
            Self::Requeues => list(state, requeued),
        }
        match self {
            Self::QuotaTree => Some(Self::Names),
            Self::Names => Some(Self::ClusterQueues),
            Self::ClusterQueues => Some(Self::Requeues),
            Self::Requeues => None,
        }
    }
}

/// Recomputes what follows from configuration changes, without a requeue.
pub(crate) fn apply_configuration(state: &mut State) {
    let mut step = Preparation::first(state);
    while step != Preparation::Requeues {
        step = step.take(state, &mut Vec::new()).unwrap_or(Preparation::Requeues);
    }
}

/// Recomputes the state of ClusterQueues after configuration changes.
fn refresh(state: &mut State) {
    let PendingChanges { flavors: all, configured, requoted, former_parents } =
        state.changes.take();
    let root = |state: &State, node| state.tree.root(node);
    let changed = NodeSet::of(state, &configured, |_, node| node);
    let trees = NodeSet::of(state, &changed.list, root);
    let requoted = NodeSet::of(state, &requoted, root);
    let left = NodeSet::of(state, &former_parents, root);
    for queue in state.queues.iter_mut().flatten() {
        let root = state.tree.root(queue.node);
        // A change of quotas in the tree ends the progress of flavor scans (§4.4 step 7).
        queue.generation += u64::from(requoted.has(root));
        // A tree that lost a child may have lost quota that the child lent.
        if all || trees.has(root) || left.has(root) {
            queue.pending.forget_refused();
        }
    }
    for index in 0..state.queues.len() {
        let id = QueueId::from(index);
        if state.queues[index].is_some() {
            update_cohort_cycle(state, id, all, &changed);
            let (active, topology_only) = (is_active(state, id), is_topology_only(state, id));
            let queue = state.queue_mut(id);
            (queue.active, queue.topology_only) = (active, topology_only);
        }
    }
    let State { tree, queues, .. } = state;
    tree.rebuild_heights(&|id| queues[id.index()].as_ref().is_some_and(|queue| queue.active));
}

/// A set of nodes.
struct NodeSet {
    list: Vec<NodeId>,
    known: Vec<bool>,
}

impl NodeSet {
    fn of(state: &State, nodes: &[NodeId], map: impl Fn(&State, NodeId) -> NodeId) -> Self {
        let mut known = vec![false; state.tree.ids().len()];
        let mut list: Vec<NodeId> = nodes.iter().map(|&node| map(state, node)).collect();
        list.retain(|node| !std::mem::replace(&mut known[node.index()], true));
        Self { list, known }
    }

    fn has(&self, node: NodeId) -> bool {
        self.known[node.index()]
    }
}

/// Ranks nodes by name after nodes were added, so that names need not be compared later.
fn rank(state: &mut State) {
    let nodes = state.tree.ids().len();
    if !state.changes.take_unranked(nodes) {
        return;
    }
    let mut names: Vec<(&str, NodeId)> = Vec::with_capacity(nodes);
    for (index, queue) in state.queues.iter().enumerate() {
        let name = state.names.queues.name(QueueId::from(index));
        names.extend(queue.as_ref().map(|queue| (name, queue.node)));
    }
    for (index, node) in state.cohorts.iter().enumerate() {
        let name = state.names.cohorts.name(CohortId::from(index));
        names.extend(node.map(|node| (name, node)));
    }
    names.sort_unstable();
    let order: Vec<NodeId> = names.into_iter().map(|(_, node)| node).collect();
    state.tree.rank(&order);
}

fn update_cohort_cycle(state: &mut State, id: QueueId, all: bool, changed: &NodeSet) {
    let node = state.queue(id).node;
    let cyclic = state.tree.node(node).cyclic;
    // As in Kueue, the end of a cohort cycle shows only when the ClusterQueue or a flavor changes.
    if cyclic || all || changed.has(node) {
        state.queue_mut(id).in_cycle = cyclic;
    }
}

fn is_active(state: &State, id: QueueId) -> bool {
    let queue = state.queue(id);
    let mut flavors = queue.groups.iter().flat_map(|group| &group.flavors);
    queue.spec.is_some()
        && queue.ready
        && !queue.stopped
        && !queue.in_cycle
        && crate::checks::inactive(state, queue).is_none()
        && flavors.all(|&flavor| match state.flavor(flavor) {
            Some(spec) => spec.topology.is_none_or(|one| state.topologies.exists(one)),
            None => false,
        })
}

fn is_topology_only(state: &State, id: QueueId) -> bool {
    let groups = &state.queue(id).groups;
    let mut flavors = groups.iter().flat_map(|group| &group.flavors).peekable();
    flavors.peek().is_some()
        && flavors.all(|&flavor| state.flavor(flavor).is_some_and(|spec| spec.topology.is_some()))
}

/// Lists the ClusterQueues of every cohort tree for which a requeue is requested.
fn list(state: &mut State, requeued: &mut Vec<QueueId>) {
    let State { requeue_requests, tree, .. } = state;
    requeue_requests.take(tree, |root| list_below(tree, root, requeued));
}

fn list_below(tree: &QuotaTree, node: NodeId, requeued: &mut Vec<QueueId>) {
    let node = tree.node(node);
    requeued.extend(node.queue);
    for &child in &node.children {
        list_below(tree, child, requeued);
    }
}
