//! What a Workload takes of each leaf, over all its pod sets.
//!
//! Domains of one pod set differ, so that sums are kept only where several pod sets have domains.

use std::collections::BTreeMap;

use crate::amount::Amount;
use crate::flavors::assignment::Assignment;
use crate::ids::{DomainId, FlavorId, ResourceId, TopologyNodeId};
use crate::settings::EngineSettings;
use crate::topology::domain_tree::DomainTree;

/// What the pods of a leaf are charged to: its node in every tree, or the leaf in the tree of its flavor.
type ChargedLeaf = (Option<TopologyNodeId>, Option<(FlavorId, DomainId)>);

/// The usage of each leaf by one Workload.
#[derive(Debug)]
pub(super) struct PlannedUsage {
    /// `None` if at most one pod set has domains, or each is checked alone.
    sums: Option<BTreeMap<(ChargedLeaf, ResourceId), Amount>>,
}

impl PlannedUsage {
    /// Nothing yet of an assignment.
    pub(super) fn of(settings: &EngineSettings, assignment: &Assignment) -> Self {
        let n_placed = assignment.pod_sets.iter().filter(|one| !one.domains.is_empty()).count();
        Self { sums: (settings.check_pod_sets_together && n_placed > 1).then(BTreeMap::new) }
    }

    /// Adds to what a leaf is asked for. Returns the sum.
    pub(super) fn add(
        &mut self,
        flavor: FlavorId,
        tree: &DomainTree,
        leaf: DomainId,
        resource: ResourceId,
        amount: Amount,
    ) -> Amount {
        let Some(sums) = &mut self.sums else {
            return amount;
        };
        let node = tree.node(leaf);
        let charged = (node, node.is_none().then_some((flavor, leaf)));
        let sum = sums.entry((charged, resource)).or_insert(Amount::ZERO);
        *sum += amount;
        *sum
    }
}
