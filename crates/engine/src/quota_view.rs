//! Read-only queries about the quota of ClusterQueues.

use crate::amount::Amount;
use crate::engine::Engine;
use crate::ids::{FlavorId, QueueId, ResourceId, Slot};
use crate::quota::available::available;

/// Quota of a ClusterQueue for one flavor and resource. What it can still use without preemption is
/// `max(nominal - used, 0) + borrowable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueQuota {
    /// The flavor.
    pub flavor: FlavorId,
    /// The resource.
    pub resource: ResourceId,
    /// `nominalQuota`.
    pub nominal: Amount,
    /// Usage of the ClusterQueue, or what others have borrowed of its nominal quota if that leaves less.
    pub used: Amount,
    /// What it can still borrow beyond its nominal quota.
    pub borrowable: Amount,
}

impl Engine {
    /// Quota of a ClusterQueue as of the last cycle; flavors and resources without quota and usage are left out. Empty in a cohort cycle.
    pub fn queue_quota(&self, queue: QueueId) -> Vec<QueueQuota> {
        let tree = self.state.quota.tree();
        let node = self.state.queues.find(queue).map(|queue| queue.node);
        let Some(node) = node.filter(|&node| !tree.is_in_cohort_cycle(node)) else {
            return Vec::new();
        };
        let row = tree.row(node).iter().enumerate();
        let quota = row.map(|(slot, cell)| {
            let slot = Slot::from(slot);
            let (flavor, resource) = tree.flavor_and_resource(slot);
            let (nominal, left) = (cell.subtree, available(tree, node, slot).max(Amount::ZERO));
            let borrowable = (left - (nominal - cell.usage).max(Amount::ZERO)).max(Amount::ZERO);
            let used = cell.usage.max(nominal + borrowable - left);
            QueueQuota { flavor, resource, nominal, used, borrowable }
        });
        let none = Amount::ZERO;
        quota
            .filter(|one| [one.nominal, one.used, one.borrowable].iter().any(|&it| it != none))
            .collect()
    }
}
