//! Topology requests that are refused before any search, so that a Workload gets no quota for them.
//!
//! Source: docs/reference/kueue.md §4.11, §4.13.

use crate::reason::NoFitReason;
use crate::topology::elastic_assignment::unsupported_constraint;
use crate::topology::{NO_SLICE_SIZE, PlacementFailure};
use crate::workloads::equivalence_class::{EquivalenceClass, members, worker_pod_set};

/// Why a pod set with pods gets no topology assignment, in whatever topology. `count` is the number of pods of a pod set.
pub(crate) fn refusal(
    class: &EquivalenceClass,
    pod_set: usize,
    delayed: bool,
    count: impl Fn(usize) -> i64,
) -> Option<NoFitReason> {
    // Also of a delayed pod set: a second pass would never place it, and it would keep its quota.
    let constraint = unsupported_constraint(class, &class.pod_sets[pod_set]);
    // Without a delay the search finds this out.
    let no_size = || NoFitReason::TopologyPlacement(Box::new(PlacementFailure::NoSliceSize));
    constraint.or_else(|| (delayed && lacks_slice_size(class, pod_set, count)).then(no_size))
}

/// Whether slices are requested without a size. A leader follows the workers of its group, so that it needs none.
fn lacks_slice_size(
    class: &EquivalenceClass,
    pod_set: usize,
    count: impl Fn(usize) -> i64,
) -> bool {
    let request = class.pod_sets[pod_set].topology.as_ref();
    let first = request.and_then(|request| request.slices.first());
    first.is_some_and(|&(_, size)| size == NO_SLICE_SIZE)
        && worker_pod_set(&members(class, pod_set), count) == Some(pod_set)
}
