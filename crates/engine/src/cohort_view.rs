//! Read-only queries about Cohorts and about the classes of pending Workloads.

use std::collections::BTreeSet;

use crate::amount::Amount;
use crate::engine::Engine;
use crate::ids::{CohortId, EquivalenceClassId, FlavorId, NodeId, QueueId, ResourceId, WorkloadId};

impl Engine {
    /// Names of the cohorts above a ClusterQueue, from its parent to the root; empty in a cohort cycle.
    pub fn cohorts_of_queue(&self, queue: QueueId) -> Vec<&str> {
        let node = self.state.queues.find(queue).map(|queue| queue.node);
        node.map(|node| self.cohorts_above(node)).unwrap_or_default()
    }

    /// Names of the cohorts above a Cohort, from its parent to the root; empty in a cohort cycle.
    pub fn cohorts_of_cohort(&self, cohort: CohortId) -> Vec<&str> {
        let node = self.state.quota.cohort(cohort);
        node.map(|node| self.cohorts_above(node)).unwrap_or_default()
    }

    fn cohorts_above(&self, node: NodeId) -> Vec<&str> {
        let tree = self.state.quota.tree();
        // A cycle has no root.
        if tree.node(node).cyclic {
            return Vec::new();
        }
        let names = &self.state.names;
        tree.ancestors(node).map(|above| self.state.quota.node_name(names, above)).collect()
    }

    /// Quota of the subtree of a Cohort; zeros are left out.
    pub fn cohort_quota(&self, cohort: CohortId) -> Vec<(FlavorId, ResourceId, Amount)> {
        let Some(node) = self.state.quota.cohort(cohort) else {
            return Vec::new();
        };
        let tree = self.state.quota.tree();
        let row = tree.row(node).iter().enumerate();
        let with_quota = row.filter(|(_, cell)| cell.subtree != Amount::ZERO);
        with_quota
            .map(|(slot, cell)| {
                let (flavor, resource) = tree.pair(slot.into());
                (flavor, resource, cell.subtree)
            })
            .collect()
    }

    /// The number of equivalence classes among the active and among the inadmissible Workloads of a ClusterQueue.
    pub fn pending_classes(&self, queue: QueueId) -> (usize, usize) {
        let class = |id: WorkloadId| self.state.workloads.at(id).class;
        let count = |ids: Vec<WorkloadId>| -> usize {
            ids.into_iter().map(class).collect::<BTreeSet<EquivalenceClassId>>().len()
        };
        (count(self.active_workloads(queue)), count(self.inadmissible_workloads(queue)))
    }
}
