//! Bringing derived state up to date before a cycle, and waking parked Workloads.
//!
//! Source: spec/kueue-core.md §3.6. A wake-up concerns the whole tree in which something was freed or changed; trees
//! with a cohort cycle are left alone.

use crate::ids::{NodeId, QueueId};
use crate::spec::Hold;
use crate::state::{State, namespace_matches};
use crate::topology;

/// Recomputes what follows from configuration, if it changed.
pub(super) fn refresh(state: &mut State) {
    topology::rebuild(state);
    if !std::mem::take(&mut state.tree_changed) {
        return;
    }
    state.tree.rebuild();
    let changed = std::mem::take(&mut state.changed);
    let trees: Vec<NodeId> = changed.iter().map(|&node| state.tree.root(node)).collect();
    for queue in state.queues.iter_mut().flatten() {
        queue.generation += u64::from(trees.contains(&state.tree.root(queue.node)));
    }
    let all = std::mem::take(&mut state.flavors_changed);
    for index in 0..state.queues.len() {
        if state.queues[index].is_some() {
            look_for_cycle(state, QueueId::from(index), all, &changed);
            let active = is_active(state, QueueId::from(index));
            let topology_only = is_topology_only(state, QueueId::from(index));
            let queue = state.queue_mut(QueueId::from(index));
            (queue.active, queue.topology_only) = (active, topology_only);
        }
    }
    let State { tree, queues, .. } = state;
    tree.rebuild_heights(&|id| queues[id.index()].as_ref().is_some_and(|queue| queue.active));
}

fn look_for_cycle(state: &mut State, id: QueueId, all: bool, changed: &[NodeId]) {
    let node = state.queue(id).node;
    let cyclic = state.tree.node(node).cyclic;
    if cyclic || all || changed.contains(&node) {
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
        && crate::checks::all_active(state, queue)
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

/// Wakes every tree that was marked.
pub(super) fn carry_out(state: &mut State) {
    let marked = std::mem::take(&mut state.to_wake);
    let mut roots: Vec<NodeId> = Vec::new();
    for &node in &marked {
        if state.tree.node(node).cyclic {
            continue;
        }
        let root = state.tree.root(node);
        if !roots.contains(&root) {
            roots.push(root);
            wake_below(state, root);
        }
    }
    state.to_wake = marked;
    state.to_wake.clear();
}

fn wake_below(state: &mut State, node: NodeId) {
    if let Some(queue) = state.tree.node(node).queue {
        wake_queue(state, queue);
        return;
    }
    for at in 0..state.tree.node(node).children.len() {
        let child = state.tree.node(node).children[at];
        wake_below(state, child);
    }
}

fn wake_queue(state: &mut State, id: QueueId) {
    let State { queues, workloads, namespaces, shapes, .. } = state;
    let Some(queue) = &mut queues[id.index()] else {
        return;
    };
    let selector = &queue.namespaces;
    queue.line.wake(
        workloads,
        |one| {
            one.hold == Hold::None
                && one.wake.is_none()
                && namespace_matches(selector, namespaces, one)
        },
        |shape| shapes.release(shape),
    );
    state.list_if_head(id);
}
