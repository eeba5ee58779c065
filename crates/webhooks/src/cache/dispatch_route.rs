//! Whether a LocalQueue dispatches to worker clusters: its ClusterQueue, the AdmissionChecks of that, and their controllers.
//!
//! A user may create queues and the first jobs in one go, so an object that is not in the cache may exist all the same. A
//! route that reaches such an object names it, and the caller may read it (docs/reference/kueue.md §5.3).

use crds::names::MULTI_KUEUE_CONTROLLER;

use super::{Name, WebhookCache};

/// The result of following a route from a LocalQueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DispatchRoute {
    /// Whether the LocalQueue dispatches to worker clusters.
    Resolved(bool),
    /// The route reaches an object that is not in the cache.
    Unresolved(RouteObject),
}

/// An object on a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteObject {
    /// The LocalQueue.
    LocalQueue,
    /// The ClusterQueue of this name.
    ClusterQueue(Box<str>),
    /// The AdmissionCheck of this name.
    AdmissionCheck(Box<str>),
}

impl DispatchRoute {
    /// Follows the route from a LocalQueue. It dispatches if an AdmissionCheck of its ClusterQueue belongs to the MultiKueue
    /// controller. `read` holds objects that the caller read because `cache` does not have them.
    #[must_use]
    pub fn of(
        cache: &WebhookCache,
        read: &WebhookCache,
        namespace: &str,
        local_queue: &str,
    ) -> Self {
        let all = [cache, read];
        let queue = all.iter().find_map(|cache| cache.cluster_queue_of(namespace, local_queue));
        let Some(queue) = queue else { return Self::Unresolved(RouteObject::LocalQueue) };
        // No ClusterQueue has an empty name, so there is none to read.
        if queue.is_empty() {
            return Self::Resolved(false);
        }
        let Some(checks) = all.iter().find_map(|cache| cache.cluster_queues.get(queue)) else {
            return Self::Unresolved(RouteObject::ClusterQueue(queue.into()));
        };
        let controller =
            |check: &Name| all.iter().find_map(|cache| cache.check_controllers.get(check));
        // Known checks first: one of the MultiKueue controller is enough, whatever the unknown ones
        // are.
        if checks.iter().filter_map(controller).any(|name| **name == *MULTI_KUEUE_CONTROLLER) {
            return Self::Resolved(true);
        }
        match checks.iter().find(|check| controller(check).is_none()) {
            Some(unknown) => Self::Unresolved(RouteObject::AdmissionCheck(unknown.clone())),
            None => Self::Resolved(false),
        }
    }
}
