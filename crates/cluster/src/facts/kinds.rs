//! What is kept of each kind.

use std::fmt::Debug;

use crds::v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue, WorkloadPriorityClass};
use k8s_openapi::api::core::v1::Namespace;
use kube::Resource;
use runtime::watch::Key;
use serde::de::DeserializeOwned;

use super::{Facts, Name};

/// A kind that something is kept of.
pub trait Fact:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static
{
    /// The name of its watch, and which bit says that it was listed.
    const WATCH: (&'static str, u8);

    /// Enters what is kept of an object.
    fn enter(self, facts: &mut Facts);

    /// Takes out what is kept of an object.
    fn forget(key: &Key, facts: &mut Facts);
}

/// How many kinds there are.
pub(super) const N_KINDS: u8 = 5;

impl Fact for LocalQueue {
    const WATCH: (&'static str, u8) = ("localqueues", 0);

    fn enter(self, facts: &mut Facts) {
        let Key { namespace, name } = Key::of(&self);
        let queues = facts.local_queues.entry(namespace.unwrap_or_default()).or_default();
        queues.insert(name, self.spec.cluster_queue.into());
    }

    fn forget(key: &Key, facts: &mut Facts) {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let Some(queues) = facts.local_queues.get_mut(namespace) else { return };
        queues.remove(&key.name);
        if queues.is_empty() {
            facts.local_queues.remove(namespace);
        }
    }
}

impl Fact for ClusterQueue {
    const WATCH: (&'static str, u8) = ("clusterqueues", 1);

    fn enter(self, facts: &mut Facts) {
        let name = Key::of(&self).name;
        let strategy = self.spec.admission_checks_strategy.unwrap_or_default();
        let checks = strategy.admission_checks.into_iter().map(|check| Name::from(check.name));
        facts.cluster_queues.insert(name, checks.collect());
    }

    fn forget(key: &Key, facts: &mut Facts) {
        facts.cluster_queues.remove(&key.name);
    }
}

impl Fact for AdmissionCheck {
    const WATCH: (&'static str, u8) = ("admissionchecks", 2);

    fn enter(self, facts: &mut Facts) {
        facts.checks.insert(Key::of(&self).name, self.spec.controller_name.into());
    }

    fn forget(key: &Key, facts: &mut Facts) {
        facts.checks.remove(&key.name);
    }
}

impl Fact for Namespace {
    const WATCH: (&'static str, u8) = ("namespaces", 3);

    fn enter(self, facts: &mut Facts) {
        let name = Key::of(&self).name;
        facts.namespaces.insert(name, self.metadata.labels.unwrap_or_default());
    }

    fn forget(key: &Key, facts: &mut Facts) {
        facts.namespaces.remove(&key.name);
    }
}

impl Fact for WorkloadPriorityClass {
    const WATCH: (&'static str, u8) = ("workloadpriorityclasses", 4);

    fn enter(self, facts: &mut Facts) {
        facts.priority_classes.insert(Key::of(&self).name);
    }

    fn forget(key: &Key, facts: &mut Facts) {
        facts.priority_classes.remove(&key.name);
    }
}
