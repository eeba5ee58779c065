//! The copies of one kind that a worker has: clones of Workloads, or jobs.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kube::Resource;
use runtime::watch::{Change, Key, Unavailable};

use crate::control::{
    change::for_each_object,
    key_map::KeyMap,
    outbox::{Tracked, upsert, version},
    time::moved,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Copies<K> {
    objects: KeyMap<Key, Tracked<K>>,
    /// They were listed since the worker was connected.
    listed: bool,
    /// A list of the present connection was not forbidden.
    complete: bool,
    /// Since when the worker forbids to list them.
    forbidden_since: Option<Timestamp>,
    /// The worker does not serve them, by the last list of the present connection.
    not_served: bool,
}

impl<K> Default for Copies<K> {
    fn default() -> Self {
        Self {
            objects: KeyMap::new(),
            listed: false,
            complete: false,
            forbidden_since: None,
            not_served: false,
        }
    }
}

impl<K> Copies<K> {
    pub(crate) fn get(&self, key: &Key) -> Option<&Tracked<K>> {
        self.objects.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Tracked<K>)> {
        self.objects.iter()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.objects.keys()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether they were listed since the worker was connected, as far as they can be.
    pub(crate) fn is_listed(&self) -> bool {
        self.listed
    }

    /// Since when a copy that is not here may exist all the same, because the worker forbids to list them.
    pub(crate) fn forbidden_since(&self) -> Option<Timestamp> {
        self.forbidden_since
    }

    /// Whether the worker is known not to serve them.
    pub(crate) fn is_not_served(&self) -> bool {
        self.not_served
    }

    /// The connection ended: what was observed stays, does not count as listed, and is older than whatever is observed next.
    pub(crate) fn disconnect(&mut self) {
        (self.listed, self.complete, self.not_served) = (false, false, false);
        self.objects.for_each_mut(|_, tracked| tracked.connection_ended());
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { objects: _, listed: _, complete: _, not_served: _, forbidden_since } = self;
        *forbidden_since = forbidden_since.map(|at| moved(at, by));
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        self.objects.remove(key);
    }
}

impl<K: Resource> Copies<K> {
    /// Records a change. Returns the keys that it concerns. The first list of a connection that is not forbidden is complete: a
    /// copy that it lacks is gone. `observe_version` gets what the watch shows, with the version, and lacks; it may object to a
    /// removal, because the watch lags behind the answers.
    pub(crate) fn observe(
        &mut self,
        change: Change<K>,
        now: Timestamp,
        mut observe_version: impl FnMut(&Key, Option<u64>) -> bool,
    ) -> BTreeSet<Key> {
        let listed = change.is_list();
        if listed {
            let is_for =
                |why| matches!(&change, Change::Unavailable { reason, .. } if *reason == why);
            let forbidden = is_for(Unavailable::Forbidden);
            self.not_served = is_for(Unavailable::NotServed);
            // The first refusal counts: from then on the worker is not reached for this kind.
            self.forbidden_since = forbidden.then(|| self.forbidden_since.unwrap_or(now));
            self.listed = true;
        }
        // A forbidden list is empty and proves no removal.
        let is_complete = listed && self.forbidden_since.is_none();
        let first = is_complete && !std::mem::replace(&mut self.complete, true);
        let before: BTreeSet<Key> =
            if first { self.objects.keys().cloned().collect() } else { BTreeSet::new() };
        let mut concerned = BTreeSet::new();
        for_each_object(change, |key, object| {
            if observe_version(&key, object.as_deref().map(version)) {
                upsert(&mut self.objects, key.clone(), object);
            }
            concerned.insert(key);
        });
        for gone in before.difference(&concerned).filter(|key| observe_version(key, None)) {
            self.objects.remove(gone);
        }
        concerned.extend(before);
        concerned
    }

    /// Records the object that a create or a delete was answered with, if any. The watch reports the rest.
    pub(crate) fn observe_answer(&mut self, key: &Key, answer: Option<K>) {
        let Some(object) = answer else {
            return;
        };
        match self.objects.get_mut(key) {
            Some(tracked) => {
                tracked.observe(object);
                // An answer over the former connection is older than the next list.
                if !self.listed {
                    tracked.connection_ended();
                }
            }
            // An object that is being deleted may be gone by now; only the watch knows.
            None if object.meta().deletion_timestamp.is_none() && version(&object) > 0 => {
                self.objects.insert(key.clone(), Tracked::new(object));
            }
            None => {}
        }
    }
}
