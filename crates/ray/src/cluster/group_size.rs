//! How many pods a worker group has.
//!
//! Source: docs/reference/ray.md §3 "Pods (reconcilePods)".

use crate::v1::WorkerGroupSpec;

/// The most pods that one pass makes in a group. The next pass makes the others.
pub(crate) const MOST_PODS_PER_PASS: usize = 1000;

/// How many replicas a group has by its spec, within its bounds.
pub(crate) fn desired_replicas(group: &WorkerGroupSpec) -> i64 {
    if group.suspend == Some(true) {
        return 0;
    }
    let most = i64::from(group.max_replicas.unwrap_or(i32::MAX));
    let fewest = i64::from(group.min_replicas.unwrap_or_default());
    // No validation compares `replicas` with the bounds, so it is clamped here.
    let wanted = group.replicas.or(group.min_replicas).map_or(0, i64::from);
    wanted.max(fewest).min(most).max(0)
}

/// How many pods a replica has.
pub(crate) fn hosts(group: &WorkerGroupSpec) -> i64 {
    group.num_of_hosts.map_or(1, i64::from).max(0)
}
