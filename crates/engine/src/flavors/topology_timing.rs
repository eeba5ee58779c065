//! Marks pod sets whose topology assignment is delayed by an admission check. Source: docs/reference/kueue.md §4.2.

use crate::checks::{rules, topology_timing};
use crate::flavors::assignment::Assignment;
use crate::ids::QueueId;
use crate::queues::layer::QueueLayer;
use crate::spec::TopologyTiming;
use crate::topology::layer::TopologyLayer;

/// Marks the pod sets that get no domains together with the quota. One without pods needs none.
pub(crate) fn delay_topology(
    topology: &TopologyLayer,
    queues: &QueueLayer,
    queue: QueueId,
    assignment: &mut Assignment,
) {
    // Only an admission check can delay a topology assignment.
    if rules(queues.at(queue)).is_empty() {
        return;
    }
    for one in &mut assignment.pod_sets {
        let mut flavors = one.flavor_assignments.iter().map(|choice| choice.flavor);
        let delayed = flavors.any(|flavor| {
            // A flavor without a topology has nothing to delay.
            topology.tree(flavor).is_some()
                && topology_timing(queues, queue, flavor) > TopologyTiming::WithQuota
        });
        one.delayed_topology = one.count > 0 && delayed;
    }
}
