//! What webhooks of jobs must know about the cluster, and no more: names, where they lead, and labels of namespaces.
//!
//! [`Facts`] is pure: objects and keys go in as a watch tells them, answers come out (docs/reference/kueue.md §5.3). [`Known`]
//! shares it: written by [`follow`], read by handlers under a short lock. Invariants: of an object only what an answer
//! needs is kept; the picture is complete when every kind has been listed once.

mod follow;
mod kinds;
mod known;
mod route;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crds::names::{DEFAULT_LOCAL_QUEUE, DEFAULT_WORKLOAD_PRIORITY_CLASS};
use runtime::watch::{Change, Key};

pub use follow::follow;
pub use kinds::Fact;
pub use known::Known;
pub use route::{Link, Route};

/// A name, in as little room as it takes.
type Name = Box<str>;

/// What is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Namespace, LocalQueue, and its ClusterQueue.
    local_queues: BTreeMap<Name, BTreeMap<Name, Name>>,
    /// ClusterQueue and the names of its checks.
    cluster_queues: BTreeMap<Name, Box<[Name]>>,
    /// AdmissionCheck and its controller.
    checks: BTreeMap<Name, Name>,
    /// Namespace and its labels.
    namespaces: BTreeMap<Name, BTreeMap<String, String>>,
    priority_classes: BTreeSet<Name>,
}

impl Facts {
    /// Learns a change of the objects of a kind.
    pub fn learn<K: Fact>(&mut self, change: Change<K>) {
        match change {
            Change::Apply(object) => self.apply(object),
            Change::Delete(key) => self.delete::<K>(&key),
            Change::Reset { objects, removed } => self.reset(objects, &removed),
        }
    }

    /// Learns an object, new or another than before.
    pub fn apply<K: Fact>(&mut self, object: K) {
        object.enter(self);
    }

    /// Forgets an object.
    pub fn delete<K: Fact>(&mut self, key: &Key) {
        K::forget(key, self);
    }

    /// Learns a list: what is new or changed, and what went.
    pub fn reset<K: Fact>(&mut self, objects: Vec<K>, removed: &[Key]) {
        removed.iter().for_each(|key| self.delete::<K>(key));
        objects.into_iter().for_each(|object| self.apply(object));
    }

    /// Whether the namespace has a LocalQueue for jobs that name none.
    #[must_use]
    pub fn has_default_queue(&self, namespace: &str) -> bool {
        self.cluster_queue_of(namespace, DEFAULT_LOCAL_QUEUE).is_some()
    }

    /// Whether there is a WorkloadPriorityClass for jobs that name none.
    #[must_use]
    pub fn has_default_priority_class(&self) -> bool {
        self.priority_classes.contains(DEFAULT_WORKLOAD_PRIORITY_CLASS)
    }

    /// Labels of a namespace, if it is known.
    #[must_use]
    pub fn labels_of(&self, namespace: &str) -> Option<&BTreeMap<String, String>> {
        self.namespaces.get(namespace)
    }

    /// Learns that there is no check of this name, so that nobody acts on it.
    pub fn lack_check(&mut self, name: Box<str>) {
        self.checks.insert(name, Name::default());
    }

    fn cluster_queue_of(&self, namespace: &str, local_queue: &str) -> Option<&str> {
        let queues = self.local_queues.get(namespace)?;
        queues.get(local_queue).map(|name| &**name)
    }
}
