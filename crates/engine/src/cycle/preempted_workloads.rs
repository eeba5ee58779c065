//! Preemption targets of the entries processed so far. Kueue: `PreemptedWorkloads`.

use crate::cycle::entry::CycleEntry;
use crate::dense_table::DenseTable;
use crate::ids::{NodeId, WorkloadId};
use crate::preemption::simulation::queue_of;
use crate::preemption::target::WorkloadIds;
use crate::queues::layer::QueueLayer;
use crate::quota::layer::QuotaLayer;
use crate::topology::layer::TopologyLayer;
use crate::workloads::layer::WorkloadLayer;

/// The preemption targets of a cycle, by cohort tree. Its buffers are kept between cycles.
#[derive(Debug, Default)]
pub(super) struct PreemptedWorkloads {
    all: Vec<WorkloadId>,
    /// By the root of the tree in which the target has its reservation.
    trees: DenseTable<NodeId, Vec<WorkloadId>>,
    /// The roots that have targets.
    roots: Vec<NodeId>,
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
    pub(super) fn relevant_to(
        &self,
        quota: &QuotaLayer,
        topology: &TopologyLayer,
        queues: &QueueLayer,
        entry: &CycleEntry,
    ) -> WorkloadIds {
        if topology.any() {
            return self.all.as_slice().into();
        }
        let root = quota.tree().root(queues.at(entry.queue).node);
        self.trees.get(root).map(|tree| tree.as_slice().into()).unwrap_or_default()
    }

    /// Whether a target of the entry is an old slice that is replaced.
    pub(super) fn include_replaced_slice(&self, entry: &CycleEntry) -> bool {
        entry.targets.iter().any(|target| self.replaced.contains(&target.workload))
    }

    /// Adds the targets of an entry.
    pub(super) fn add(
        &mut self,
        quota: &QuotaLayer,
        workloads: &WorkloadLayer,
        queues: &QueueLayer,
        entry: &CycleEntry,
    ) {
        // Not free for others: the replacement takes over its quota (docs/reference/kueue.md
        // §4.13).
        self.replaced.extend(entry.replaced_slice);
        for target in &entry.targets {
            let root = quota.tree().root(queues.at(queue_of(workloads, target.workload)).node);
            let tree = self.trees.entry(root);
            if tree.is_empty() {
                self.roots.push(root);
            }
            tree.push(target.workload);
            self.all.push(target.workload);
        }
    }
}
