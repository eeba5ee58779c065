//! The objects of one kind by name, kept up to date by the changes of a watch.

use std::collections::BTreeMap;

use kube::Resource;
use runtime::watch::{Change, Key};

/// The objects of one kind by name.
pub(super) struct ObjectStore<K> {
    pub(super) objects: BTreeMap<Box<str>, K>,
    /// All objects were listed once, so an absent object does not exist.
    pub(super) listed: bool,
}

impl<K> Default for ObjectStore<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), listed: false }
    }
}

impl<K: Resource> ObjectStore<K> {
    /// Handles one change.
    pub(super) fn handle(&mut self, change: Change<K>) {
        match change {
            Change::Apply(object) => self.insert(object),
            Change::Delete(key) => {
                self.objects.remove(&key.name);
            }
            Change::Reset { objects, removed } => {
                objects.into_iter().for_each(|object| self.insert(object));
                for key in removed {
                    self.objects.remove(&key.name);
                }
                self.listed = true;
            }
        }
    }

    fn insert(&mut self, object: K) {
        self.objects.insert(Key::of(&object).name, object);
    }
}
