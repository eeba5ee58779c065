//! The copies of one kind that a worker has: clones of Workloads, or jobs.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{Metadata, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Resource;
use runtime::watch::{Change, Key};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::control::{
    change::{for_each_object, is_list},
    outbox::{Tracked, decode, upsert, version},
};

/// See the module.
#[derive(Debug)]
pub(super) struct Copies<K> {
    objects: BTreeMap<Key, Tracked<K>>,
    /// They were listed since the worker was connected.
    listed: bool,
}

impl<K> Default for Copies<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), listed: false }
    }
}

impl<K> Copies<K> {
    pub(super) fn get(&self, key: &Key) -> Option<&Tracked<K>> {
        self.objects.get(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Tracked<K>)> {
        self.objects.iter()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.objects.keys()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether they were listed since the worker was connected: a copy that is not here does not exist.
    pub(super) fn is_listed(&self) -> bool {
        self.listed
    }

    /// The connection ended: what was observed stays, and does not count as listed.
    pub(super) fn disconnect(&mut self) {
        self.listed = false;
    }

    pub(super) fn remove(&mut self, key: &Key) {
        self.objects.remove(key);
    }
}

impl<K: Resource + Metadata<Ty = ObjectMeta>> Copies<K> {
    /// Records a change. Returns the keys that it concerns. The first list of a connection is complete: a copy that it lacks is
    /// gone.
    pub(super) fn observe(&mut self, change: Change<K>) -> BTreeSet<Key> {
        let first = is_list(&change) && !std::mem::replace(&mut self.listed, true);
        let before: BTreeSet<Key> =
            if first { self.objects.keys().cloned().collect() } else { BTreeSet::new() };
        let mut concerned = BTreeSet::new();
        for_each_object(change, |key, object| {
            upsert(&mut self.objects, key.clone(), object);
            concerned.insert(key);
        });
        for gone in before.difference(&concerned) {
            self.objects.remove(gone);
        }
        concerned.extend(before);
        concerned
    }
}

impl<K: Resource + DeserializeOwned> Copies<K> {
    /// Records the answer to a create or a delete. The answer to a deletion that is done is a status; the watch reports the
    /// rest.
    pub(super) fn observe_answer(&mut self, key: &Key, answer: Value) {
        if is_status(&answer) {
            return;
        }
        let Some(object) = decode::<K>(answer) else {
            return;
        };
        match self.objects.get_mut(key) {
            Some(tracked) => {
                tracked.observe(object);
            }
            // An object that is being deleted may be gone by now; only the watch knows.
            None if object.meta().deletion_timestamp.is_none() && version(&object) > 0 => {
                self.objects.insert(key.clone(), Tracked::new(object));
            }
            None => {}
        }
    }
}

/// Whether an answer is the status of a deletion that is done, and no object.
pub(super) fn is_status(answer: &Value) -> bool {
    answer.get("kind").and_then(Value::as_str) == Some("Status")
}
