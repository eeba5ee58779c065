//! The kinds in the cache, and the fields that it keeps of each.

use std::fmt::Debug;

use crds::{
    decode::Decode,
    v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue, WorkloadPriorityClass},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::Resource;
use runtime::watch::Key;

use super::{Name, WebhookCache};

/// A kind of object that the [`WebhookCache`] keeps.
///
/// Contract: `insert` replaces everything that an earlier object of the same key inserted, and `remove` undoes `insert`,
/// so that a cache equals an empty one after all objects are removed. `remove` of an absent key does nothing.
/// [`BIT`](Self::BIT) is unique. Callers may rely on: order between objects of different keys does not matter.
///
/// ```ignore
/// impl CachedKind for WorkloadPriorityClass {
///     const BIT: u8 = 4;
///
///     fn insert(&self, cache: &mut WebhookCache) {
///         cache.priority_classes.insert((*Key::of(self).name).into());
///     }
///
///     fn remove(key: &Key, cache: &mut WebhookCache) {
///         cache.priority_classes.remove(&*key.name);
///     }
/// }
/// ```
pub trait CachedKind:
    Resource<DynamicType = ()> + Clone + Debug + Decode + Send + Sync + 'static
{
    /// The bit of the kind in the set of listed kinds.
    const BIT: u8;

    /// Inserts the kept fields of an object.
    fn insert(&self, cache: &mut WebhookCache);

    /// Removes the kept fields of an object.
    fn remove(key: &Key, cache: &mut WebhookCache);
}

/// Number of kinds.
pub(super) const N_KINDS: u8 = 5;

impl CachedKind for LocalQueue {
    const BIT: u8 = 0;

    fn insert(&self, cache: &mut WebhookCache) {
        let Key { namespace, name } = Key::of(self);
        let namespace = namespace.as_deref().unwrap_or_default();
        let queues = cache.local_queues.entry(namespace.into()).or_default();
        queues.insert((*name).into(), self.spec.cluster_queue.as_str().into());
    }

    fn remove(key: &Key, cache: &mut WebhookCache) {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let Some(queues) = cache.local_queues.get_mut(namespace) else { return };
        queues.remove(&*key.name);
        if queues.is_empty() {
            cache.local_queues.remove(namespace);
        }
    }
}

impl CachedKind for ClusterQueue {
    const BIT: u8 = 1;

    fn insert(&self, cache: &mut WebhookCache) {
        let name = Key::of(self).name;
        let strategy = self.spec.admission_checks_strategy.iter();
        let checks = strategy.flat_map(|strategy| &strategy.admission_checks);
        let checks = checks.map(|check| Name::from(check.name.as_str()));
        cache.cluster_queues.insert((*name).into(), checks.collect());
    }

    fn remove(key: &Key, cache: &mut WebhookCache) {
        cache.cluster_queues.remove(&*key.name);
    }
}

impl CachedKind for AdmissionCheck {
    const BIT: u8 = 2;

    fn insert(&self, cache: &mut WebhookCache) {
        cache
            .check_controllers
            .insert((*Key::of(self).name).into(), self.spec.controller_name.as_str().into());
    }

    fn remove(key: &Key, cache: &mut WebhookCache) {
        cache.check_controllers.remove(&*key.name);
    }
}

impl CachedKind for Namespace {
    const BIT: u8 = 3;

    fn insert(&self, cache: &mut WebhookCache) {
        let name = Key::of(self).name;
        cache.namespaces.insert((*name).into(), self.metadata.labels.clone().unwrap_or_default());
    }

    fn remove(key: &Key, cache: &mut WebhookCache) {
        cache.namespaces.remove(&*key.name);
    }
}

impl CachedKind for WorkloadPriorityClass {
    const BIT: u8 = 4;

    fn insert(&self, cache: &mut WebhookCache) {
        cache.priority_classes.insert((*Key::of(self).name).into());
    }

    fn remove(key: &Key, cache: &mut WebhookCache) {
        cache.priority_classes.remove(&*key.name);
    }
}
