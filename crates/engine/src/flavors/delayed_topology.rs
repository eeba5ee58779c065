//! Marks pod sets whose topology assignment is delayed by an admission check. Source: docs/reference/kueue.md §4.2.

use crate::checks::{rules, topology_timing};
use crate::flavors::assignment::Assignment;
use crate::ids::QueueId;
use crate::spec::TopologyTiming;
use crate::state::State;

/// Marks the pod sets whose topology is not assigned together with the quota.
pub(crate) fn delay_topology(state: &State, queue: QueueId, assignment: &mut Assignment) {
    // Only an admission check can delay a topology assignment.
    if rules(state.queue(queue)).is_empty() {
        return;
    }
    for one in &mut assignment.pod_sets {
        let mut flavors = one.flavor_assignments.iter().map(|choice| choice.flavor);
        one.delayed_topology = flavors.any(|flavor| {
            state.topologies.tree(flavor).is_some()
                && topology_timing(state, queue, flavor) > TopologyTiming::WithQuota
        });
    }
}
