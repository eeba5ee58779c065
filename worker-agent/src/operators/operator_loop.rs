//! The loop of the operators: watches in, passes out.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use appwrapper::evicted_nodes;
use ray::service::ServiceMemory;
use runtime::watch::{Change, Key, WatchChange};
use serde_json::Value;
use tokio::{
    sync::mpsc,
    time::{self, Instant},
};

use super::{
    MOST_PASSES,
    object_cache::{ObjectCache, ObjectId},
    parent::{ParentId, ParentKind, PassFacts, concerned},
    pass::{OperatorPass, PassIo, PassReport, StoredObject},
    pass_queue::{PassOutcome, PassQueue, rest_after},
    pass_tasks::{PassTaskEnd, PassTasks},
};

/// How long a deletion is remembered: longer than any pass takes to learn of its writes.
const DELETIONS: Duration = Duration::from_secs(600);

/// The kind of the nodes that are watched: those that pods must leave.
const NODE: &str = "Node";

/// A change of a watch.
pub(super) struct NumberedChange {
    /// The number of the watch.
    pub(super) watch: usize,
    /// The kind of its objects.
    pub(super) kind: String,
    pub(super) change: Change<Value>,
}

/// Watches that have not listed yet. Nothing is decided before all have: pods that are not listed would be made again.
///
/// A watch counts once, however often it lists: another list of one says nothing about the others.
struct UnlistedWatches(BTreeSet<usize>);

impl UnlistedWatches {
    fn of(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn note<T>(&mut self, watch: usize, change: &WatchChange<T>) {
        if change.is_list() {
            self.0.remove(&watch);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The loop: one task owns what is known and which object is next.
pub(super) struct OperatorLoop {
    io: Arc<PassIo>,
    cache: ObjectCache,
    queue: PassQueue,
    passes: PassTasks<PassReport>,
    unlisted: UnlistedWatches,
    /// What passes about RayServices left for the next ones.
    memories: BTreeMap<ParentId, ServiceMemory>,
}

impl OperatorLoop {
    pub(super) fn new(io: Arc<PassIo>, n_watches: usize) -> Self {
        Self {
            io,
            cache: ObjectCache::default(),
            queue: PassQueue::default(),
            passes: PassTasks::new(),
            unlisted: UnlistedWatches::of(n_watches),
            memories: BTreeMap::new(),
        }
    }

    pub(super) async fn run(&mut self, mut changes: mpsc::Receiver<NumberedChange>) {
        loop {
            let due = self.queue.next_due(MOST_PASSES);
            let timer = async {
                match due {
                    Some(due) => time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                change = changes.recv() => match change {
                    Some(change) => self.observe(change),
                    // The sources end with the leadership.
                    None => return,
                },
                Some(ended) = self.passes.next() => match ended {
                    PassTaskEnd::Report(report) => self.settle(report),
                    PassTaskEnd::Panicked(id) => {
                        let now = Instant::now();
                        self.queue.finish(&id, PassOutcome::Interrupted, Duration::ZERO, now);
                    }
                },
                () = timer => {}
            }
            if self.unlisted.is_empty() {
                self.start_passes();
            }
        }
    }

    fn observe(&mut self, NumberedChange { watch, kind, change }: NumberedChange) {
        self.unlisted.note(watch, &change);
        let kind = kind.as_str();
        match change {
            WatchChange::Apply(object) => self.apply(&object),
            WatchChange::Delete(key) => self.remove(&ObjectId { kind: kind.to_owned(), key }),
            WatchChange::Reset { objects, removed } => {
                objects.iter().for_each(|object| self.apply(object));
                self.remove_all(kind, removed);
            }
            WatchChange::Unavailable { reason, removed } => {
                tracing::info!(kind, ?reason, "a kind cannot be observed");
                self.remove_all(kind, removed);
            }
        }
    }

    fn apply(&mut self, object: &Arc<Value>) {
        // Only marked nodes are watched, so that one that appears was marked.
        let is_new_node = object["kind"] == NODE && !self.cache.has(&ObjectId::of(object));
        if is_new_node {
            self.wake_wrappers();
        }
        // Unchanged objects of a further list start no pass.
        if self.cache.observe(Arc::clone(object)) {
            self.note_changes(object);
        }
    }

    fn note_changes(&mut self, object: &Value) {
        let now = Instant::now();
        concerned(object).into_iter().for_each(|id| self.queue.note_change(id, now));
    }

    /// A node was marked, or is not marked any more: pods of any AppWrapper may be on it.
    fn wake_wrappers(&mut self) {
        for key in self.cache.keys_of(ParentKind::AppWrapper.name()) {
            let id = ParentId { kind: ParentKind::AppWrapper, key };
            self.queue.note_change(id, Instant::now());
        }
    }

    fn facts(&self, id: &ParentId) -> PassFacts {
        let memory = self.memories.get(id).cloned().unwrap_or_default();
        let settings = &self.io.settings.wrapper;
        let evicted_nodes = match id.kind {
            ParentKind::AppWrapper => evicted_nodes(self.cache.without_namespace(NODE), settings),
            _ => BTreeMap::new(),
        };
        PassFacts { memory, evicted_nodes }
    }

    fn remove_all(&mut self, kind: &str, keys: Vec<Key>) {
        for key in keys {
            self.remove(&ObjectId { kind: kind.to_owned(), key });
        }
    }

    fn remove(&mut self, id: &ObjectId) {
        if id.kind == NODE {
            self.wake_wrappers();
        }
        if let Some(object) = self.cache.remove(id, Instant::now()) {
            self.note_changes(&object);
        }
    }

    fn start_passes(&mut self) {
        let now = Instant::now();
        for id in self.queue.take_due(now, MOST_PASSES) {
            match self.cache.family(&id) {
                Some(family) => {
                    let (facts, task_id) = (self.facts(&id), id.clone());
                    let pass = OperatorPass::new(Arc::clone(&self.io), id, family, facts);
                    self.passes.spawn(task_id, pass.run());
                }
                // It is gone, or of a kind that is not operated.
                None => {
                    self.memories.remove(&id);
                    self.queue.finish(&id, PassOutcome::Complete(None), Duration::ZERO, now);
                }
            }
        }
    }

    /// Takes over what a pass wrote, so that the next one sees it.
    fn settle(&mut self, report: PassReport) {
        let now = Instant::now();
        for StoredObject { sent, object } in report.stored {
            let concerned = concerned(&object);
            // An object that was only met again starts no pass: a refused create would be repeated without a pause.
            if self.cache.take_answer(object, sent) {
                concerned.into_iter().for_each(|id| self.queue.note_change(id, now));
            }
        }
        // The watch may show a deleted object once more.
        for (id, uid) in &report.deleted {
            self.cache.mark_deleted(id, uid);
        }
        if let Some(memory) = report.memory {
            self.memories.insert(report.id.clone(), memory);
        }
        self.cache.forget_deletions(now.checked_sub(DELETIONS).unwrap_or(now));
        let rest = rest_after(report.n_children);
        self.queue.finish(&report.id, report.outcome, rest, now);
    }
}

#[cfg(test)]
mod tests {
    use runtime::watch::Unavailable;

    use super::*;

    #[test]
    fn another_list_of_one_watch_does_not_stand_for_the_list_of_another() {
        let list = || WatchChange::<()>::Reset { objects: vec![], removed: vec![] };
        let mut unlisted = UnlistedWatches::of(2);
        unlisted.note(0, &list());
        unlisted.note(0, &list());
        unlisted.note(1, &WatchChange::Apply(()));
        assert!(!unlisted.is_empty());
        let absent =
            WatchChange::<()>::Unavailable { reason: Unavailable::NotServed, removed: vec![] };
        unlisted.note(1, &absent);
        assert!(unlisted.is_empty(), "a kind that is not served has nothing to list");
    }
}
