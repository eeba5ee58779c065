//! New nodes: those that an autoscaler can still add, and what fits with them (docs/reference/dispatch.md §2).

use super::{NodeGroup, NodeTier, PackedNodes};
use crate::{AssignedWorkload, NodeClassCapacity, refusal::CapacityShortage};

/// The new nodes that a Workload leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewNodes {
    /// How many can be added when these are used.
    pub(crate) left: i64,
    /// How many could be added at the time of the report.
    pub(crate) of: i64,
}

impl PackedNodes {
    /// The new nodes that `work` needs beside the present ones, on which it does not fit for this reason.
    pub(crate) fn check_fit_with_new_nodes(
        &self,
        work: &AssignedWorkload,
        present: CapacityShortage,
    ) -> Result<NewNodes, CapacityShortage> {
        // Most clusters have none, and packing costs.
        if self.table.report.elastic.is_empty() {
            return Err(present);
        }
        let after = self.check_fit_on(work, &[NodeTier::Present, NodeTier::New])?;
        let of = self.table.report.elastic.iter().map(|class| class.count).sum();
        Ok(NewNodes { left: after.n_unused_new_nodes(), of })
    }

    /// How many new nodes `work` needs beside the present ones; `None` if it does not fit with them.
    pub(crate) fn n_needed_new_nodes(&self, work: &AssignedWorkload) -> Option<i64> {
        let after = self.check_fit_on(work, &[NodeTier::Present, NodeTier::New]).ok()?;
        Some(self.n_unused_new_nodes() - after.n_unused_new_nodes())
    }

    /// Why `work` does not fit even without all other dispatched work and with every new node; `None` if it does.
    pub(crate) fn never_fits(&self, work: &AssignedWorkload) -> Option<CapacityShortage> {
        let classes = super::all_classes(&self.table.report).zip(&self.table.allocatable);
        let groups = classes.enumerate().map(|(index, (class, size))| NodeGroup {
            class: index,
            count: class.count,
            free: size.clone(),
        });
        let groups = groups.filter(|group| group.count > 0).collect();
        let empty = Self { table: std::sync::Arc::clone(&self.table), groups };
        empty.check_fit_on(work, &[NodeTier::Present, NodeTier::New]).err()
    }

    /// Takes the capacity of `work` on new nodes only, as far as it fits.
    pub(crate) fn place_on_new_nodes(&mut self, work: &AssignedWorkload) {
        for pods in self.largest_pods_first(work) {
            self.place_pods(pods, NodeTier::New);
        }
    }

    /// The new nodes of the report with the number of those that nothing is placed on, in the same order.
    pub(crate) fn unused_new_nodes(&self) -> Vec<NodeClassCapacity> {
        let report = &self.table.report;
        let classes = report.elastic.iter().enumerate();
        let unused = classes.map(|(index, class)| {
            let own = self.unused_groups().filter(|one| one.class == report.classes.len() + index);
            NodeClassCapacity { count: own.map(|group| group.count).sum(), ..class.clone() }
        });
        unused.collect()
    }

    fn n_unused_new_nodes(&self) -> i64 {
        self.unused_groups().map(|group| group.count).sum()
    }

    fn unused_groups(&self) -> impl Iterator<Item = &NodeGroup> {
        let size = |group: &NodeGroup| self.table.allocatable.get(group.class);
        self.on_tier(NodeTier::New).filter(move |group| size(group) == Some(&group.free))
    }
}
