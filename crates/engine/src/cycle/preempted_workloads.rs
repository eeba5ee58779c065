//! Whom the heads processed so far preempt.

use crate::cycle::entry::CycleEntry;
use crate::ids::WorkloadId;
use crate::preemption::simulation::queue_of;
use crate::preemption::target::WorkloadIds;
use crate::state::State;

/// The victims of a cycle, tree by tree. Its buffers are kept between cycles.
#[derive(Debug, Default)]
pub(super) struct PreemptedWorkloads {
    all: Vec<WorkloadId>,
    /// By the root of the tree in which they hold quota.
    trees: Vec<Vec<WorkloadId>>,
    /// The roots in use.
    roots: Vec<usize>,
    /// Slices that are replaced: they go, but what they have goes to those who replace them.
    replaced: Vec<WorkloadId>,
}

impl PreemptedWorkloads {
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.replaced.clear();
        for root in self.roots.drain(..) {
            self.trees[root].clear();
        }
    }

    /// The victims that can matter to an entry: those of its tree, or all of them where machines are shared.
    pub(super) fn near(&self, state: &State, entry: &CycleEntry) -> WorkloadIds {
        if state.topologies.any() {
            return self.all.as_slice().into();
        }
        let root = state.tree.root(state.queue(entry.queue).node);
        self.trees.get(root.index()).map(|tree| tree.as_slice().into()).unwrap_or_default()
    }

    /// Whether an entry counts on the quota of a slice that is replaced.
    pub(super) fn are_replaced(&self, entry: &CycleEntry) -> bool {
        entry.targets.iter().any(|target| self.replaced.contains(&target.workload))
    }

    /// Claims the victims of an entry.
    pub(super) fn claim(&mut self, state: &State, entry: &CycleEntry) {
        self.replaced.extend(entry.replaced_slice);
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
