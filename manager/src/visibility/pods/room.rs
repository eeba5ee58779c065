//! Room for requests about pods: of all, of one cluster, and of one namespace on one cluster. A log that is followed has its place until
//! its end.
//!
//! A worker that never answers fills its own room only, and so does a namespace of users that follow many logs.

use visibility::workload_pods::PodsRefusal;

use crate::nested_places::{NestedPermit, NestedPlaces};

/// Requests of all clusters. Connections of API servers have room for more.
const ALL: usize = 160;

/// Requests to one cluster.
const PER_CLUSTER: usize = 32;

/// Requests of one namespace to one cluster.
const PER_NAMESPACE: usize = 16;

/// See the module.
#[derive(Default)]
pub(super) struct PodsRoom(NestedPlaces);

impl PodsRoom {
    /// A place for a request to a cluster.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn enter(
        &self,
        cluster: &str,
        namespace: &str,
    ) -> Result<NestedPermit, PodsRefusal> {
        let place = self.0.enter(cluster, namespace, |taken| {
            taken.by_all < ALL && taken.by_outer < PER_CLUSTER && taken.by_both < PER_NAMESPACE
        });
        place.ok_or_else(|| PodsRefusal::TooMany(cluster.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(room: &PodsRoom, cluster: &str, namespace: &str, count: usize) -> Vec<NestedPermit> {
        (0..count).map(|_| room.enter(cluster, namespace).expect("room")).collect()
    }

    #[test]
    fn a_namespace_and_a_worker_fill_their_own_room_only() {
        let room = PodsRoom::default();
        let first = fill(&room, "hung", "a", PER_NAMESPACE);
        let refusal = room.enter("hung", "a").err().expect("no room");
        assert_eq!(refusal.code(), 429);
        let second = fill(&room, "hung", "b", PER_CLUSTER - PER_NAMESPACE);
        assert!(room.enter("hung", "c").is_err(), "the worker is full");
        assert!(room.enter("other", "a").is_ok() && room.enter("", "a").is_ok());
        drop(first);
        assert!(room.enter("hung", "c").is_ok());
        drop(second);
        assert!(room.0.is_empty());
    }

    #[test]
    fn all_clusters_together_have_a_limit() {
        let room = PodsRoom::default();
        let clusters: Vec<String> = (0..ALL / PER_NAMESPACE).map(|one| one.to_string()).collect();
        let full: Vec<Vec<NestedPermit>> =
            clusters.iter().map(|cluster| fill(&room, cluster, "a", PER_NAMESPACE)).collect();
        assert!(room.enter("one-more", "a").is_err());
        drop(full);
        assert!(room.enter("one-more", "a").is_ok());
    }
}
