//! Room for requests about pods: of all, of one cluster, and of one namespace on one cluster. A log that is followed has its place until
//! its end.
//!
//! A worker that never answers fills its own room only, and so does a namespace whose users follow many logs.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use visibility::workload_pods::PodsRefusal;

/// Requests of all clusters. Connections of API servers have room for more.
const ALL: usize = 160;

/// Requests to one cluster.
const PER_CLUSTER: usize = 32;

/// Requests of one namespace to one cluster.
const PER_NAMESPACE: usize = 16;

/// Requests in flight, by cluster and namespace.
type RequestsToClusters = HashMap<Box<str>, HashMap<Box<str>, usize>>;

/// See the module.
#[derive(Default)]
pub(super) struct PodsRoom(Arc<Mutex<RequestsToClusters>>);

/// A place for one request. Dropping it makes it free.
pub(super) struct PodsPermit {
    requests: Arc<Mutex<RequestsToClusters>>,
    cluster: Box<str>,
    namespace: Box<str>,
}

impl PodsRoom {
    /// A place for a request to a cluster.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn enter(&self, cluster: &str, namespace: &str) -> Result<PodsPermit, PodsRefusal> {
        let mut requests = self.0.lock();
        let all: usize = requests.values().flat_map(HashMap::values).sum();
        let there = requests.get(cluster);
        let of_cluster: usize = there.map_or(0, |it| it.values().sum());
        let of_namespace = there.and_then(|it| it.get(namespace)).copied().unwrap_or_default();
        if all >= ALL || of_cluster >= PER_CLUSTER || of_namespace >= PER_NAMESPACE {
            return Err(PodsRefusal::TooMany(cluster.to_owned()));
        }
        let (cluster, namespace): (Box<str>, Box<str>) = (cluster.into(), namespace.into());
        *requests.entry(cluster.clone()).or_default().entry(namespace.clone()).or_default() += 1;
        Ok(PodsPermit { requests: self.0.clone(), cluster, namespace })
    }
}

impl Drop for PodsPermit {
    fn drop(&mut self) {
        let mut requests = self.requests.lock();
        let Some(there) = requests.get_mut(&self.cluster) else { return };
        if let Some(taken) = there.get_mut(&self.namespace) {
            *taken = taken.saturating_sub(1);
        }
        there.retain(|_, taken| *taken > 0);
        if there.is_empty() {
            requests.remove(&self.cluster);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(room: &PodsRoom, cluster: &str, namespace: &str, count: usize) -> Vec<PodsPermit> {
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
        assert!(room.0.lock().is_empty());
    }

    #[test]
    fn all_clusters_together_have_a_limit() {
        let room = PodsRoom::default();
        let clusters: Vec<String> = (0..ALL / PER_NAMESPACE).map(|one| one.to_string()).collect();
        let full: Vec<Vec<PodsPermit>> =
            clusters.iter().map(|cluster| fill(&room, cluster, "a", PER_NAMESPACE)).collect();
        assert!(room.enter("one-more", "a").is_err());
        drop(full);
        assert!(room.enter("one-more", "a").is_ok());
    }
}
