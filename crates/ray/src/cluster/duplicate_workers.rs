//! Workers or replicas with one index, of which the younger one is deleted.
//!
//! In a cluster with an autoscaler a create without an answer is repeated under another name once the cluster has changed, by a patch of
//! the autoscaler or of a finalizer. The autoscaler names the workers that go, and would never name the second one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::context::ClusterContext;
use crate::json::text;

/// A worker or a replica that stays, by its name.
pub(super) struct IndexedPod<'a> {
    pub(super) index: Option<usize>,
    pub(super) name: &'a str,
    /// The worker, or the first one of the replica.
    pub(super) pod: &'a Value,
}

/// The names of all but the oldest of each index, in a cluster with an autoscaler. Those without an index are no duplicates.
pub(super) fn younger_duplicates<'a>(
    context: &ClusterContext<'_>,
    placed: impl Iterator<Item = IndexedPod<'a>>,
) -> BTreeSet<&'a str> {
    if !context.is_autoscaling() {
        return BTreeSet::new();
    }
    let mut by_index: BTreeMap<usize, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for IndexedPod { index, name, pod } in placed {
        let created = text(&pod["metadata"]["creationTimestamp"]);
        if let Some(index) = index {
            by_index.entry(index).or_default().insert((created, name));
        }
    }
    let younger = by_index.into_values().flat_map(|duplicates| duplicates.into_iter().skip(1));
    younger.map(|(_, name)| name).collect()
}
