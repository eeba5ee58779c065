//! Preemption targets of the entries processed so far. Kueue: `PreemptedWorkloads`.

use crate::cycle::entry::CycleEntry;
use crate::ids::WorkloadId;
use crate::preemption::simulation::queue_of;
use crate::preemption::target::WorkloadIds;
use crate::state::State;

/// The preemption targets of a cycle, by cohort tree. Its buffers are kept between cycles.
#[derive(Debug, Default)]
pub(super) struct PreemptedWorkloads {
    all: Vec<WorkloadId>,
    /// By the root of the tree in which the target has its reservation.
    trees: Vec<Vec<WorkloadId>>,
    /// The roots that have targets.
    roots: Vec<usize>,
    /// Old slices that are replaced. Their quota goes to the replacement and is not free for others.
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

    /// The targets that can affect an entry: those of its cohort tree, or all if nodes are shared through topologies.
    pub(super) fn relevant_to(&self, state: &State, entry: &CycleEntry) -> WorkloadIds {
        if state.topologies.any() {
            return self.all.as_slice().into();
        }
        let root = state.tree.root(state.queue(entry.queue).node);
        self.trees.get(root.index()).map(|tree| tree.as_slice().into()).unwrap_or_default()
    }

    /// Whether a target of the entry is an old slice that is replaced.
    pub(super) fn include_replaced_slice(&self, entry: &CycleEntry) -> bool {
        entry.targets.iter().any(|target| self.replaced.contains(&target.workload))
    }

    /// Adds the targets of an entry.
    pub(super) fn add(&mut self, state: &State, entry: &CycleEntry) {
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
