//! The objects of one kind by name, kept up to date by the changes of a watch.

use std::{collections::BTreeMap, sync::Arc};

use kube::Resource;
use runtime::watch::{Change, Key};

/// The objects of one kind by name.
pub(super) struct ObjectStore<K> {
    pub(super) objects: BTreeMap<Box<str>, Arc<K>>,
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
        // A kind that is not available has nothing to list, so waiting for it would never end.
        self.listed |= change.is_list();
        match change {
            Change::Apply(object) => self.insert(object),
            Change::Delete(key) => self.remove(&key),
            Change::Reset { objects, removed } => {
                objects.into_iter().for_each(|object| self.insert(object));
                removed.iter().for_each(|key| self.remove(key));
            }
            Change::Unavailable { removed, .. } => removed.iter().for_each(|key| self.remove(key)),
        }
    }

    fn remove(&mut self, key: &Key) {
        self.objects.remove(&*key.name);
    }

    fn insert(&mut self, object: Arc<K>) {
        self.objects.insert((*Key::of(&*object).name).into(), object);
    }
}
