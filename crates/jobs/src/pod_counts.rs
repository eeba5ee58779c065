//! Numbers of pods of pod sets. A pod set without a count has one pod.

use crds::v1beta2::PodSet;

/// Pods of all pod sets.
pub(crate) fn n_pods(sets: &[PodSet]) -> i32 {
    sets.iter().map(count).sum()
}

/// Pods of the pod set of this name; 0 without one.
pub(crate) fn pods_of(sets: &[PodSet], name: &str) -> i32 {
    sets.iter().find(|set| set.name == name).map_or(0, count)
}

/// Pods of a pod set.
#[must_use]
pub fn count(set: &PodSet) -> i32 {
    set.count.unwrap_or(1)
}
