//! The objects of one kind, shared by the tasks of a process.
//!
//! A store is filled by its watch and holds every object once. A [`Subscription`] starts with a
//! [`Reset`](super::WatchChange::Reset) of everything that is known, if it was listed, and continues with every change
//! (`coalesced_changes`). A subscriber may come at any time and needs no list.

use std::{
    collections::BTreeMap,
    marker::PhantomData,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    Change, Key, Unavailable, WatchChange,
    coalesced_changes::CoalescedChanges,
    delivery::{ErasedObject, SharedObject, downcast},
};

/// The objects of kind `K`. Cheap to clone.
pub struct Store<K> {
    pub(super) shared: Arc<SharedStore>,
    kind: PhantomData<fn() -> K>,
}

/// Changes of a store, for one subscriber.
pub struct Subscription<K> {
    mailbox: Arc<Mailbox>,
    /// Kept, so that the store is not dropped before its subscribers.
    _store: Arc<SharedStore>,
    kind: PhantomData<fn() -> K>,
}

/// The objects of a store of any kind.
#[derive(Default)]
pub(super) struct SharedStore(Mutex<StoreState>);

#[derive(Default)]
struct StoreState {
    objects: BTreeMap<Key, SharedObject>,
    listed: bool,
    unavailable: Option<Unavailable>,
    subscribers: Vec<Weak<Mailbox>>,
}

/// A change of one object.
struct ObjectChange {
    key: Key,
    /// `None` if it was deleted.
    object: Option<SharedObject>,
    /// The object existed before.
    existed: bool,
}

/// What a list, or its failure, says about a kind.
#[derive(Clone, Copy)]
enum ListOutcome {
    Listed,
    Unavailable(Unavailable),
}

#[derive(Default)]
struct Mailbox {
    pending: Mutex<CoalescedChanges<SharedObject>>,
    filled: Notify,
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self::of(Arc::clone(&self.shared))
    }
}

/// A store that no watch fills.
impl<K> Default for Store<K> {
    fn default() -> Self {
        Self::of(Arc::default())
    }
}

impl<K> Store<K> {
    pub(super) fn of(shared: Arc<SharedStore>) -> Self {
        Self { shared, kind: PhantomData }
    }

    /// Subscribes to the objects that are known now and to every change.
    #[must_use]
    pub fn subscribe(&self) -> Subscription<K> {
        let store = Arc::clone(&self.shared);
        Subscription { mailbox: store.subscribe(), _store: store, kind: PhantomData }
    }
}

impl<K: Send + Sync + 'static> Subscription<K> {
    /// The next change. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Change<K> {
        loop {
            let next = self.mailbox.pending.lock().pop();
            match next {
                Some(change) => return change.map(downcast::<K>),
                // `notify_one` leaves a permit, so a change between the two lines is not missed.
                None => self.mailbox.filled.notified().await,
            }
        }
    }
}

impl SharedStore {
    fn subscribe(&self) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox::default());
        // Held until the subscriber is registered: no change is lost between copy and registration.
        let mut state = self.0.lock();
        {
            let mut pending = mailbox.pending.lock();
            for (key, object) in &state.objects {
                pending.push(key.clone(), Some(Arc::clone(object)), false);
            }
            // After the objects, so that they are sent as one `Reset`.
            if state.listed {
                pending.push_list();
            }
            if let Some(reason) = state.unavailable {
                pending.push_unavailable(reason);
            }
        }
        state.subscribers.push(Arc::downgrade(&mailbox));
        mailbox
    }

    /// Records a change and passes it on.
    pub(super) fn handle(&self, change: WatchChange<ErasedObject>) {
        let (objects, list) = flatten(change);
        let mut state = self.0.lock();
        let objects: Vec<_> =
            objects.into_iter().map(|(key, object)| state.set(key, object)).collect();
        match list {
            None => {}
            Some(ListOutcome::Listed) => (state.listed, state.unavailable) = (true, None),
            // `listed` stays: the objects of a forbidden kind are still known.
            Some(ListOutcome::Unavailable(reason)) => state.unavailable = Some(reason),
        }
        state.subscribers.retain(|mailbox| {
            // Subscribers are dropped without notice; the next change removes them.
            let Some(mailbox) = mailbox.upgrade() else { return false };
            mailbox.put(&objects, list);
            true
        });
    }
}

impl StoreState {
    /// Records an object; `None` if it was deleted.
    fn set(&mut self, key: Key, object: Option<SharedObject>) -> ObjectChange {
        let existed = match &object {
            Some(object) => self.objects.insert(key.clone(), Arc::clone(object)).is_some(),
            None => self.objects.remove(&key).is_some(),
        };
        ObjectChange { key, object, existed }
    }
}

impl Mailbox {
    fn put(&self, objects: &[ObjectChange], list: Option<ListOutcome>) {
        let mut pending = self.pending.lock();
        for ObjectChange { key, object, existed } in objects {
            pending.push(key.clone(), object.clone(), *existed);
        }
        match list {
            None => {}
            Some(ListOutcome::Listed) => pending.push_list(),
            Some(ListOutcome::Unavailable(reason)) => pending.push_unavailable(reason),
        }
        self.filled.notify_one();
    }
}

/// The changed objects of a change, `None` if deleted, and the outcome of a list if it has one. Removals come first.
fn flatten(
    change: WatchChange<ErasedObject>,
) -> (Vec<(Key, Option<SharedObject>)>, Option<ListOutcome>) {
    let here = |one: ErasedObject| (one.key, Some(one.object));
    let gone = |removed: Vec<Key>| removed.into_iter().map(|key| (key, None));
    match change {
        WatchChange::Apply(object) => (vec![here(object)], None),
        WatchChange::Delete(key) => (vec![(key, None)], None),
        WatchChange::Reset { objects, removed } => {
            let all = gone(removed).chain(objects.into_iter().map(here));
            (all.collect(), Some(ListOutcome::Listed))
        }
        WatchChange::Unavailable { reason, removed } => {
            (gone(removed).collect(), Some(ListOutcome::Unavailable(reason)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key { namespace: None, name: name.into() }
    }

    fn object(name: &str, version: u32) -> ErasedObject {
        ErasedObject { key: key(name), object: Arc::new(version) }
    }

    fn list(objects: Vec<ErasedObject>) -> WatchChange<ErasedObject> {
        WatchChange::Reset { objects, removed: Vec::new() }
    }

    /// What is pending for a subscriber.
    fn taken(subscription: &Subscription<u32>) -> Vec<WatchChange<u32>> {
        let mut pending = subscription.mailbox.pending.lock();
        let next = std::iter::from_fn(|| pending.pop());
        next.map(|change| change.map(|object| *downcast::<u32>(object))).collect()
    }

    #[test]
    fn a_subscriber_starts_with_the_list_and_continues_with_changes() {
        let store: Store<u32> = Store::default();
        let early = store.subscribe();
        assert_eq!(taken(&early), [], "nothing was listed");
        store.shared.handle(list(vec![object("a", 1), object("b", 2)]));
        let late = store.subscribe();
        let first = WatchChange::Reset { objects: vec![1, 2], removed: Vec::new() };
        assert_eq!(taken(&early), std::slice::from_ref(&first));
        assert_eq!(taken(&late), [first]);
        store.shared.handle(WatchChange::Delete(key("a")));
        store.shared.handle(WatchChange::Apply(object("b", 3)));
        let changes = [WatchChange::Delete(key("a")), WatchChange::Apply(3)];
        assert_eq!(taken(&early), changes);
        assert_eq!(taken(&late), changes);
        let first = WatchChange::Reset { objects: vec![3], removed: Vec::new() };
        assert_eq!(taken(&store.subscribe()), [first]);
    }

    #[test]
    fn a_late_subscriber_learns_that_a_kind_is_unavailable() {
        let store: Store<u32> = Store::default();
        let unavailable = |reason, removed| WatchChange::Unavailable { reason, removed };
        store.shared.handle(unavailable(Unavailable::NotServed, Vec::new()));
        let absent = [WatchChange::Unavailable { reason: Unavailable::NotServed, removed: vec![] }];
        assert_eq!(taken(&store.subscribe()), absent);
        store.shared.handle(list(vec![object("a", 1)]));
        let first = WatchChange::Reset { objects: vec![1], removed: Vec::new() };
        assert_eq!(taken(&store.subscribe()), std::slice::from_ref(&first));
        store.shared.handle(unavailable(Unavailable::Forbidden, Vec::new()));
        let forbidden =
            WatchChange::Unavailable { reason: Unavailable::Forbidden, removed: vec![] };
        assert_eq!(taken(&store.subscribe()), [first, forbidden]);
    }

    #[test]
    fn a_subscriber_that_is_gone_is_forgotten() {
        let store: Store<u32> = Store::default();
        drop(store.subscribe());
        let kept = store.subscribe();
        store.shared.handle(list(Vec::new()));
        assert_eq!(store.shared.0.lock().subscribers.len(), 1);
        drop(kept);
    }

    #[tokio::test]
    async fn a_waiting_subscriber_is_woken_by_a_change() {
        let store: Store<u32> = Store::default();
        let mut subscription = store.subscribe();
        let task = tokio::spawn(async move { subscription.next().await });
        tokio::task::yield_now().await;
        store.shared.handle(WatchChange::Apply(object("a", 7)));
        assert_eq!(task.await.expect("a change"), WatchChange::Apply(Arc::new(7)));
    }
}
