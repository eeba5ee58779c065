//! New nodes: those that an autoscaler can still add, and what fits with them (docs/reference/dispatch.md §2).

use super::{NodeGroup, NodeTier, PackedNodes};
use crate::{AssignedWorkload, refusal::CapacityShortage};

/// The new nodes that a Workload needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewNodes {
    /// How many it needs. Zero if it fits beside others on new nodes that those need.
    pub(crate) needed: i64,
    /// How many can be added when these are used.
    pub(crate) left: i64,
    /// How many could be added at the time of the report.
    pub(crate) of: i64,
}

impl PackedNodes {
    /// The new nodes that `work` needs beside the present ones.
    pub(crate) fn check_fit_with_new_nodes(
        &self,
        work: &AssignedWorkload,
    ) -> Result<NewNodes, CapacityShortage> {
        let after = self.check_fit_on(work, &[NodeTier::Present, NodeTier::New])?;
        let (before, left) = (self.n_unused_new_nodes(), after.n_unused_new_nodes());
        let of = self.table.report.elastic.iter().map(|class| class.count).sum();
        Ok(NewNodes { needed: before - left, left, of })
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

    fn n_unused_new_nodes(&self) -> i64 {
        let unused =
            |group: &&NodeGroup| self.table.allocatable.get(group.class) == Some(&group.free);
        self.on_tier(NodeTier::New).filter(unused).map(|group| group.count).sum()
    }
}
