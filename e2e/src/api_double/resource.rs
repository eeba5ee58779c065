//! The objects of one resource, and the changes that a watch repeats.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
};

use tokio::sync::watch;

use super::object::{DoubleRefusal, StoredText};

/// Changes that are kept for watches that start again.
const KEPT: usize = 20_000;

/// What happened to an object, as watches name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DoubleEvent {
    Added,
    Modified,
    Deleted,
}

impl DoubleEvent {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// A change that watches repeat.
#[derive(Clone, Debug)]
pub(super) struct RepeatedChange {
    pub(super) event: DoubleEvent,
    pub(super) object: Arc<StoredText>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct ResourceObjects {
    /// By `namespace/name`; the namespace is empty for objects of the cluster.
    pub(super) objects: BTreeMap<Box<str>, Arc<StoredText>>,
    changes: VecDeque<RepeatedChange>,
    /// The version of the newest change that is forgotten.
    forgotten: u64,
    /// Wakes watches, with the version of the newest change.
    newest: watch::Sender<u64>,
    /// Watches of clients of the server.
    pub(super) open_watches: usize,
}

impl Default for ResourceObjects {
    fn default() -> Self {
        let (objects, changes) = (BTreeMap::new(), VecDeque::new());
        Self { objects, changes, forgotten: 0, newest: watch::Sender::new(0), open_watches: 0 }
    }
}

impl ResourceObjects {
    /// The objects of a namespace, or of all.
    pub(super) fn in_namespace(
        &self,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = (&str, &Arc<StoredText>)> {
        let prefix = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let start = Bound::Included(Box::from(prefix.as_str()));
        let range = self.objects.range::<Box<str>, _>((start, Bound::Unbounded));
        let range = range.map(|(key, object)| (&**key, object));
        range.take_while(move |(key, _)| key.starts_with(&prefix))
    }

    /// Stores an object and wakes the watches.
    pub(super) fn put(&mut self, key: &str, object: Arc<StoredText>) {
        let former = self.objects.insert(key.into(), Arc::clone(&object));
        let event = former.map_or(DoubleEvent::Added, |_| DoubleEvent::Modified);
        self.log(event, object);
    }

    /// Removes an object, which has this content at last, and wakes the watches.
    pub(super) fn remove(&mut self, key: &str, last: Arc<StoredText>) {
        self.objects.remove(key);
        self.log(DoubleEvent::Deleted, last);
    }

    fn log(&mut self, event: DoubleEvent, object: Arc<StoredText>) {
        let version = object.version;
        self.changes.push_back(RepeatedChange { event, object });
        if self.changes.len() > KEPT
            && let Some(first) = self.changes.pop_front()
        {
            self.forgotten = first.object.version;
        }
        self.newest.send_replace(version);
    }

    /// The changes after a version.
    pub(super) fn since(
        &self,
        version: u64,
    ) -> Result<impl Iterator<Item = &RepeatedChange>, DoubleRefusal> {
        if version < self.forgotten {
            return Err(DoubleRefusal::Expired);
        }
        let first = self.changes.partition_point(|change| change.object.version <= version);
        Ok(self.changes.range(first..))
    }

    /// Wakes at the next change.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}
