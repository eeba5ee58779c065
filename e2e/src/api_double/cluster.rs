//! The objects of one cluster, and what clients in this process do with them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::body::Bytes;
use serde_json::Value;
use tokio::sync::watch;

use super::{
    object::{self, DoubleRefusal, StoredText, WrittenObject},
    resource::{DoubleEvent, RepeatedChange, ResourceObjects},
};

/// A cluster. Resources are named `GROUP/PLURAL`, objects `NAMESPACE/NAME`.
#[derive(Debug)]
pub struct DoubleCluster {
    name: Box<str>,
    /// Empty for every resource.
    served: BTreeSet<Box<str>>,
    objects: Mutex<DoubleObjects>,
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
        Self { name: name.into(), served, objects: Mutex::default() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn serves(&self, resource: &str) -> bool {
        self.served.is_empty() || self.served.contains(resource)
    }

    /// The resources of a group; `None` if it serves every resource.
    pub(super) fn served_in(&self, group: &str) -> Option<Vec<&str>> {
        let split = self.served.iter().filter_map(|resource| resource.split_once('/'));
        let names = split.filter(|(of, _)| *of == group).map(|(_, name)| name);
        (!self.served.is_empty()).then(|| names.collect())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, DoubleObjects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates an object. Returns its text.
    ///
    /// # Errors
    /// If it exists.
    pub fn create(&self, resource: &str, object: Value) -> Result<Bytes, DoubleRefusal> {
        let key = object::key(&object);
        let mut objects = self.lock();
        objects.version += 1;
        let version = objects.version;
        let of_resource = objects.resources.entry(resource.into()).or_default();
        if of_resource.objects.contains_key(key.as_str()) {
            return Err(DoubleRefusal::AlreadyExists);
        }
        let uid = format!("{}-00000000-0000-4000-8000-{version:012x}", self.name);
        let object = Arc::new(StoredText::new(object::created(object, &uid)?, version));
        of_resource.put(&key, Arc::clone(&object));
        drop(objects);
        Ok(object.text.clone())
    }

    /// Merges a patch into an object. Returns its text.
    ///
    /// # Errors
    /// If it does not exist, or a precondition does not hold.
    pub fn merge(&self, resource: &str, key: &str, patch: Value) -> Result<Bytes, DoubleRefusal> {
        self.write(resource, key, |before| object::merged(before, patch))
    }

    /// Deletes an object, with the preconditions of a request. Returns its text.
    pub(super) fn delete(
        &self,
        resource: &str,
        key: &str,
        preconditions: &Value,
    ) -> Result<Bytes, DoubleRefusal> {
        self.write(resource, key, |before| object::deleted(before, preconditions))
    }

    fn write(
        &self,
        resource: &str,
        key: &str,
        write: impl FnOnce(&Value) -> Result<WrittenObject, DoubleRefusal>,
    ) -> Result<Bytes, DoubleRefusal> {
        let mut objects = self.lock();
        let next = objects.version + 1;
        let of_resource = objects.resources.get_mut(resource).ok_or(DoubleRefusal::NotFound)?;
        let former = Arc::clone(of_resource.objects.get(key).ok_or(DoubleRefusal::NotFound)?);
        let stored = match write(&former.value())? {
            WrittenObject::Same => return Ok(former.text.clone()),
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
        Ok(stored.text.clone())
    }

    /// An object.
    #[must_use]
    pub fn get(&self, resource: &str, key: &str) -> Option<Value> {
        Some(self.stored(resource, key)?.value())
    }

    /// An object as it is stored.
    pub(super) fn stored(&self, resource: &str, key: &str) -> Option<Arc<StoredText>> {
        self.lock().resources.get(resource)?.objects.get(key).cloned()
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
        self.follow_after(resource, None)
    }

    /// Follows a resource from this version on, or from now on.
    pub(super) fn follow_after(
        self: &Arc<Self>,
        resource: &str,
        version: Option<u64>,
    ) -> DoubleFollow {
        let mut objects = self.lock();
        let version = version.unwrap_or(objects.version);
        let newest = objects.resources.entry(resource.into()).or_default().subscribe();
        drop(objects);
        DoubleFollow { cluster: Arc::clone(self), resource: resource.into(), version, newest }
    }

    /// The watches of a resource that are open.
    #[must_use]
    pub fn open_watches(&self, resource: &str) -> usize {
        self.lock().resources.get(resource).map_or(0, |all| all.open_watches)
    }

    pub(super) fn count_watch(&self, resource: &str, count: impl FnOnce(&mut usize)) {
        let mut objects = self.lock();
        count(&mut objects.resources.entry(resource.into()).or_default().open_watches);
    }
}

impl DoubleFollow {
    /// The next changes, of which there is at least one.
    ///
    /// # Errors
    /// If more was changed than is kept.
    pub async fn next(&mut self) -> Result<Vec<DoubleChange>, DoubleRefusal> {
        let changes = self.next_logged().await?.into_iter().map(|change| {
            let value = change.object.value();
            let key = object::key(&value).into();
            (key, (change.event != DoubleEvent::Deleted).then_some(value))
        });
        Ok(changes.collect())
    }

    /// The next changes as they are logged.
    pub(super) async fn next_logged(&mut self) -> Result<Vec<RepeatedChange>, DoubleRefusal> {
        loop {
            self.newest.borrow_and_update();
            let changes = self.logged()?;
            if let Some(last) = changes.last() {
                self.version = last.object.version;
                return Ok(changes);
            }
            // The sender lives as long as the cluster.
            let _ = self.newest.changed().await;
        }
    }

    /// The changes that are logged already. They remain the next ones.
    pub(super) fn logged(&self) -> Result<Vec<RepeatedChange>, DoubleRefusal> {
        let objects = self.cluster.lock();
        let of_resource = objects.resources.get(&self.resource).ok_or(DoubleRefusal::NotServed)?;
        Ok(of_resource.since(self.version)?.cloned().collect())
    }
}
