//! The objects of one cluster, and what clients in this process do with them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use tokio::sync::watch;

use super::{
    object::{self, DoubleRefusal, StoredText, WrittenObject},
    resource::{DoubleEvent, ResourceObjects},
};

/// A cluster. Resources are named `GROUP/PLURAL`, objects `NAMESPACE/NAME`.
#[derive(Debug)]
pub struct DoubleCluster {
    name: Box<str>,
    /// Empty for every resource.
    served: BTreeSet<Box<str>>,
    objects: Mutex<DoubleObjects>,
    /// Open watches of clients of the server, by resource.
    watches: Mutex<BTreeMap<Box<str>, usize>>,
}

#[derive(Debug, Default)]
pub(super) struct DoubleObjects {
    /// That of the newest change.
    pub(super) version: u64,
    pub(super) resources: BTreeMap<Box<str>, ResourceObjects>,
}

/// A change as a client in this process sees it; `None` after a deletion.
pub type DoubleChange = (Box<str>, Option<Value>);

/// The changes of one resource, for a client in this process.
pub struct DoubleFollow {
    cluster: Arc<DoubleCluster>,
    resource: Box<str>,
    version: u64,
    newest: watch::Receiver<u64>,
}

impl DoubleCluster {
    pub(super) fn new(name: &str, served: &[&str]) -> Self {
        let served = served.iter().map(|one| Box::from(*one)).collect();
        Self { name: name.into(), served, objects: Mutex::default(), watches: Mutex::default() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn serves(&self, resource: &str) -> bool {
        self.served.is_empty() || self.served.contains(resource)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, DoubleObjects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates an object.
    ///
    /// # Errors
    /// If it exists.
    pub fn create(&self, resource: &str, object: Value) -> Result<Value, DoubleRefusal> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let key = format!("{}/{}", text("namespace"), text("name"));
        let mut objects = self.lock();
        objects.version += 1;
        let version = objects.version;
        let uid = format!("00000000-0000-4000-8000-{version:012x}");
        let of_resource = objects.resources.entry(resource.into()).or_default();
        if of_resource.objects.contains_key(key.as_str()) {
            return Err(DoubleRefusal::AlreadyExists);
        }
        let uid = format!("{}-{uid}", self.name);
        let object = Arc::new(StoredText::new(object::created(object, &uid)?, version));
        of_resource.put(&key, Arc::clone(&object));
        drop(objects);
        Ok(object.value())
    }

    /// Merges a patch into an object.
    ///
    /// # Errors
    /// If it does not exist, or a precondition does not hold.
    pub fn merge(&self, resource: &str, key: &str, patch: Value) -> Result<Value, DoubleRefusal> {
        self.write(resource, key, |before| object::merged(before, patch))
    }

    /// Deletes an object, with the preconditions of a request.
    pub(super) fn delete(
        &self,
        resource: &str,
        key: &str,
        preconditions: &Value,
    ) -> Result<Value, DoubleRefusal> {
        self.write(resource, key, |before| object::deleted(before, preconditions))
    }

    fn write(
        &self,
        resource: &str,
        key: &str,
        write: impl FnOnce(&Value) -> Result<WrittenObject, DoubleRefusal>,
    ) -> Result<Value, DoubleRefusal> {
        let mut objects = self.lock();
        let next = objects.version + 1;
        let of_resource = objects.resources.get_mut(resource).ok_or(DoubleRefusal::NotFound)?;
        let before = of_resource.objects.get(key).ok_or(DoubleRefusal::NotFound)?.value();
        let stored = match write(&before)? {
            WrittenObject::Same => return Ok(before),
            WrittenObject::Changed(after) => {
                let stored = Arc::new(StoredText::new(after, next));
                of_resource.put(key, Arc::clone(&stored));
                stored
            }
            WrittenObject::Gone(last) => {
                let stored = Arc::new(StoredText::new(last, next));
                of_resource.remove(key, Arc::clone(&stored));
                stored
            }
        };
        objects.version = next;
        drop(objects);
        Ok(stored.value())
    }

    /// An object.
    #[must_use]
    pub fn get(&self, resource: &str, key: &str) -> Option<Value> {
        let objects = self.lock();
        let stored = objects.resources.get(resource)?.objects.get(key)?.clone();
        drop(objects);
        Some(stored.value())
    }

    /// The names of the objects of a resource.
    #[must_use]
    pub fn keys(&self, resource: &str) -> Vec<Box<str>> {
        let objects = self.lock();
        let all = objects.resources.get(resource);
        all.into_iter().flat_map(|all| all.objects.keys().cloned()).collect()
    }

    /// Follows a resource from now on.
    #[must_use]
    pub fn follow(self: &Arc<Self>, resource: &str) -> DoubleFollow {
        let mut objects = self.lock();
        let version = objects.version;
        let newest = objects.resources.entry(resource.into()).or_default().subscribe();
        drop(objects);
        DoubleFollow { cluster: Arc::clone(self), resource: resource.into(), version, newest }
    }

    /// The watches of a resource that are open.
    #[must_use]
    pub fn open_watches(&self, resource: &str) -> usize {
        let watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.get(resource).copied().unwrap_or_default()
    }

    pub(super) fn count_watch(&self, resource: &str, count: impl FnOnce(&mut usize)) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        count(watches.entry(resource.into()).or_default());
    }
}

impl DoubleFollow {
    /// The next changes, of which there is at least one.
    ///
    /// # Errors
    /// If more was changed than is kept.
    pub async fn next(&mut self) -> Result<Vec<DoubleChange>, DoubleRefusal> {
        loop {
            self.newest.borrow_and_update();
            let changes = self.changes()?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            // The sender lives as long as the cluster.
            let _ = self.newest.changed().await;
        }
    }

    fn changes(&mut self) -> Result<Vec<DoubleChange>, DoubleRefusal> {
        let objects = self.cluster.lock();
        let of_resource = objects.resources.get(&self.resource).ok_or(DoubleRefusal::NotServed)?;
        let logged: Vec<_> = of_resource.since(self.version)?.cloned().collect();
        drop(objects);
        self.version = logged.last().map_or(self.version, |change| change.object.version);
        let changed = logged.into_iter().map(|change| {
            let value = change.object.value();
            let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
            let key = format!("{}/{}", text("namespace"), text("name")).into();
            (key, (change.event != DoubleEvent::Deleted).then_some(value))
        });
        Ok(changed.collect())
    }
}
