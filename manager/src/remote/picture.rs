//! The objects of a kind as a watch tells them, by name.

use std::collections::BTreeMap;

use kube::Resource;
use runtime::watch::{Change, Key};

/// The objects of a kind, by name.
pub(super) struct Picture<K> {
    pub(super) objects: BTreeMap<Box<str>, K>,
    /// Whether they were listed once, so that what is not here does not exist.
    pub(super) listed: bool,
}

impl<K> Default for Picture<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), listed: false }
    }
}

impl<K: Resource> Picture<K> {
    /// Enters a change.
    pub(super) fn take(&mut self, change: Change<K>) {
        match change {
            Change::Apply(object) => self.put(object),
            Change::Delete(key) => {
                self.objects.remove(&key.name);
            }
            Change::Reset { objects, removed } => {
                objects.into_iter().for_each(|object| self.put(object));
                for key in removed {
                    self.objects.remove(&key.name);
                }
                self.listed = true;
            }
        }
    }

    fn put(&mut self, object: K) {
        self.objects.insert(Key::of(&object).name, object);
    }
}
