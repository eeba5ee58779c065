//! Where a LocalQueue leads, step by step: its ClusterQueue, the checks of that, and who acts on them.
//!
//! An object that a watch has not shown yet may be there all the same: a user makes queues and their first jobs in one go.
//! So a route that ends at an unknown object says which one, and whoever asks may read it (docs/reference/kueue.md §5.3).

use crds::names::MULTI_KUEUE_CONTROLLER;

use super::{Facts, Name};

/// What is known of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Whether it leads to workers.
    Known(bool),
    /// It goes through an object that is not known.
    Through(Link),
}

/// An object on a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// The LocalQueue.
    LocalQueue,
    /// The ClusterQueue of this name.
    ClusterQueue(Box<str>),
    /// The AdmissionCheck of this name.
    AdmissionCheck(Box<str>),
}

impl Route {
    /// Whether a LocalQueue hands its jobs to workers: through a check of its ClusterQueue. `read` has what was read of
    /// objects that `known` lacks.
    #[must_use]
    pub fn of(known: &Facts, read: &Facts, namespace: &str, local_queue: &str) -> Self {
        let all = [known, read];
        let queue = all.iter().find_map(|facts| facts.cluster_queue_of(namespace, local_queue));
        let Some(queue) = queue else { return Self::Through(Link::LocalQueue) };
        if queue.is_empty() {
            return Self::Known(false);
        }
        let Some(checks) = all.iter().find_map(|facts| facts.cluster_queues.get(queue)) else {
            return Self::Through(Link::ClusterQueue(queue.into()));
        };
        let controller = |check: &Name| all.iter().find_map(|facts| facts.checks.get(check));
        if checks.iter().filter_map(controller).any(|name| **name == *MULTI_KUEUE_CONTROLLER) {
            return Self::Known(true);
        }
        match checks.iter().find(|check| controller(check).is_none()) {
            Some(unknown) => Self::Through(Link::AdmissionCheck(unknown.clone())),
            None => Self::Known(false),
        }
    }
}
