//! Whom the heads processed so far preempt.

use crate::ids::WorkloadId;
use crate::preemption::{Ids, queue_of};
use crate::state::State;

use crate::cycle::nominate::Entry;

/// The victims of a cycle, tree by tree. Its buffers are kept between cycles.
#[derive(Debug, Default)]
pub(super) struct Victims {
    all: Vec<WorkloadId>,
    /// By the root of the tree in which they hold quota.
    trees: Vec<Vec<WorkloadId>>,
    /// The roots in use.
    roots: Vec<usize>,
}

impl Victims {
    pub(super) fn clear(&mut self) {
        self.all.clear();
        for root in self.roots.drain(..) {
            self.trees[root].clear();
        }
    }

    /// The victims that can matter to an entry: those of its tree, or all of them where machines are shared.
    pub(super) fn near(&self, state: &State, entry: &Entry) -> Ids {
        if state.topologies.any() {
            return self.all.as_slice().into();
        }
        let root = state.tree.root(state.queue(entry.queue).node);
        self.trees.get(root.index()).map(|tree| tree.as_slice().into()).unwrap_or_default()
    }

    /// Claims the victims of an entry.
    pub(super) fn claim(&mut self, state: &State, entry: &Entry) {
        for target in &entry.targets {
            let root = state.tree.root(state.queue(queue_of(state, target.workload)).node).index();
            if self.trees.len() <= root {
                self.trees.resize_with(root + 1, Vec::new);
            }
            if self.trees[root].is_empty() {
                self.roots.push(root);
            }
            self.trees[root].push(target.workload);
            self.all.push(target.workload);
        }
    }
}
