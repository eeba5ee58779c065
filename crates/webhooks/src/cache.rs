//! The objects that webhooks of jobs read: where LocalQueues lead, labels of namespaces, and default names.
//!
//! [`WebhookCache`] is pure: it takes [`Change`]s of watches and answers queries (docs/reference/kueue.md §5.3).
//! [`SharedWebhookCache`] shares it between [`follow_stores`], which writes, and the webhook handlers, which read under a short
//! lock. Invariants: the cache keeps only the fields that a query needs; it is synced once every kind has been listed.

mod cached_kind;
mod dispatch_route;
mod shared;
mod subscriptions;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crds::names::{DEFAULT_LOCAL_QUEUE, DEFAULT_WORKLOAD_PRIORITY_CLASS};
use runtime::watch::{Change, Key};

pub use cached_kind::CachedKind;
pub use dispatch_route::{DispatchRoute, RouteObject};
pub use shared::SharedWebhookCache;
pub use subscriptions::follow_stores;

/// The name of an object. A boxed string, because the cache holds many.
type Name = Box<str>;

/// Queues, admission checks, namespaces and priority classes of one cluster.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WebhookCache {
    /// ClusterQueue by namespace and LocalQueue.
    local_queues: BTreeMap<Name, BTreeMap<Name, Name>>,
    /// Admission checks by ClusterQueue.
    cluster_queues: BTreeMap<Name, Box<[Name]>>,
    /// Controller by AdmissionCheck; empty if the AdmissionCheck does not exist.
    check_controllers: BTreeMap<Name, Name>,
    /// Labels by namespace.
    namespaces: BTreeMap<Name, BTreeMap<String, String>>,
    priority_classes: BTreeSet<Name>,
}

impl WebhookCache {
    /// Handles one change of a watch.
    pub fn handle<K: CachedKind>(&mut self, change: Change<K>) {
        match change {
            Change::Apply(object) => self.apply(&*object),
            Change::Delete(key) => self.delete::<K>(&key),
            Change::Reset { objects, removed } => {
                self.reset(objects.iter().map(|object| &**object), &removed);
            }
            Change::Unavailable { removed, .. } => self.reset::<K>([], &removed),
        }
    }

    /// Adds or updates an object.
    pub fn apply<K: CachedKind>(&mut self, object: &K) {
        object.insert(self);
    }

    /// Removes an object.
    pub fn delete<K: CachedKind>(&mut self, key: &Key) {
        K::remove(key, self);
    }

    /// Handles a list: adds or updates `objects`, removes `removed`.
    pub fn reset<'a, K: CachedKind>(
        &mut self,
        objects: impl IntoIterator<Item = &'a K>,
        removed: &[Key],
    ) {
        removed.iter().for_each(|key| self.delete::<K>(key));
        objects.into_iter().for_each(|object| self.apply(object));
    }

    /// Whether the namespace has a default LocalQueue, for jobs without a queue name.
    #[must_use]
    pub fn has_default_queue(&self, namespace: &str) -> bool {
        self.cluster_queue_of(namespace, DEFAULT_LOCAL_QUEUE).is_some()
    }

    /// Whether there is a default WorkloadPriorityClass, for jobs without a priority class.
    #[must_use]
    pub fn has_default_priority_class(&self) -> bool {
        self.priority_classes.contains(DEFAULT_WORKLOAD_PRIORITY_CLASS)
    }

    /// Labels of a namespace; none if the namespace is not in the cache.
    #[must_use]
    pub fn labels_of(&self, namespace: &str) -> Option<&BTreeMap<String, String>> {
        self.namespaces.get(namespace)
    }

    /// Records that an AdmissionCheck does not exist, so that it has no controller.
    pub fn insert_missing_check(&mut self, name: Box<str>) {
        self.check_controllers.insert(name, Name::default());
    }

    fn cluster_queue_of(&self, namespace: &str, local_queue: &str) -> Option<&str> {
        let queues = self.local_queues.get(namespace)?;
        queues.get(local_queue).map(|name| &**name)
    }
}
