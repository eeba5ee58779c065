//! Read-only queries about Cohorts.

use crate::amount::Amount;
use crate::engine::Engine;
use crate::ids::{CohortId, FlavorId, NodeId, QueueId, ResourceId, Slot};
use crate::quota::cell::QuotaCell;
use crate::quota::subtree_usage::SubtreeUsage;

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

    /// Whether a Cohort is in a cohort cycle.
    pub fn is_in_cohort_cycle(&self, cohort: CohortId) -> bool {
        let node = self.state.quota.cohort(cohort);
        node.is_some_and(|node| self.state.quota.tree().node(node).cyclic)
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
        self.cohort_amounts(cohort, |cell| cell.subtree)
    }

    /// Usage that is charged to a Cohort: what its children use above their local quota. Zeros are left out.
    pub fn cohort_usage(&self, cohort: CohortId) -> Vec<(FlavorId, ResourceId, Amount)> {
        self.cohort_amounts(cohort, |cell| cell.usage)
    }

    /// For each of these Cohorts, usage of all ClusterQueues in its subtree, also within their local quota, which is not charged to the
    /// Cohort. Zeros are left out; empty in a cohort cycle. Kueue: `kueue_cohort_subtree_resource_reservations`.
    pub fn cohort_reservations(
        &self,
        cohorts: &[CohortId],
    ) -> Vec<Vec<(FlavorId, ResourceId, Amount)>> {
        let tree = self.state.quota.tree();
        let node = |&cohort: &CohortId| self.state.quota.cohort(cohort);
        let nodes = cohorts.iter().filter_map(node);
        let nodes = nodes.filter(|&node| !tree.is_in_cohort_cycle(node)).collect();
        let (sums, _) = SubtreeUsage::below(tree, &nodes);
        let named = |(slot, &amount): (usize, &Amount)| {
            let (flavor, resource) = tree.flavor_and_resource(Slot::from(slot));
            (amount != Amount::ZERO).then_some((flavor, resource, amount))
        };
        let sums = cohorts.iter().map(|cohort| node(cohort).and_then(|node| sums.get(&node)));
        sums.map(|sums| sums.into_iter().flatten().enumerate().filter_map(named).collect())
            .collect()
    }

    /// Empty for a Cohort that no object names.
    fn cohort_amounts(
        &self,
        cohort: CohortId,
        amount: fn(&QuotaCell) -> Amount,
    ) -> Vec<(FlavorId, ResourceId, Amount)> {
        let tree = self.state.quota.tree();
        self.state.quota.cohort(cohort).map(|node| tree.amounts(node, amount)).unwrap_or_default()
    }
}
