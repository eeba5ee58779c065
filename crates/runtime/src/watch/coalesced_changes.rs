//! Changes that a subscriber of a store has not taken yet. Pure.
//!
//! Only the newest state of each object is pending, so a slow subscriber neither delays the others nor needs more memory than
//! the objects that exist and those that it was sent. An object that came and went unseen is not sent at all. A list makes one
//! [`Reset`](WatchChange::Reset) of everything that is pending, as if the subscriber had listed then.

use std::collections::BTreeMap;

use super::{Key, Unavailable, WatchChange};

#[derive(Debug)]
pub(super) struct CoalescedChanges<T> {
    by_key: BTreeMap<Key, PendingObject<T>>,
    /// Keys by number, oldest first. An object keeps its number when it changes again, so that none is put off forever.
    order: BTreeMap<u64, Key>,
    last_number: u64,
    /// A list was completed.
    reset: bool,
    /// The kind became unavailable, after the list if there is one.
    unavailable: Option<Unavailable>,
}

#[derive(Debug)]
struct PendingObject<T> {
    number: u64,
    /// `None` if it was deleted.
    object: Option<T>,
    /// An earlier state of the object was taken.
    taken: bool,
}

impl<T> Default for CoalescedChanges<T> {
    fn default() -> Self {
        Self {
            by_key: BTreeMap::new(),
            order: BTreeMap::new(),
            last_number: 0,
            reset: false,
            unavailable: None,
        }
    }
}

impl<T> CoalescedChanges<T> {
    /// An object changed, or was deleted (`None`). `existed` says whether it existed before.
    pub(super) fn push(&mut self, key: Key, object: Option<T>, existed: bool) {
        if let Some(pending) = self.by_key.get_mut(&key) {
            // A deletion matters only to a subscriber that was sent the object.
            if object.is_some() || pending.taken {
                pending.object = object;
            } else if let Some(pending) = self.by_key.remove(&key) {
                self.order.remove(&pending.number);
            }
            return;
        }
        if object.is_none() && !existed {
            return;
        }
        self.last_number += 1;
        let number = self.last_number;
        self.order.insert(number, key.clone());
        // Without a pending state, what existed before was taken.
        self.by_key.insert(key, PendingObject { number, object, taken: existed });
    }

    /// The objects were listed, after everything that was pushed.
    pub(super) fn push_list(&mut self) {
        self.reset = true;
        self.unavailable = None;
    }

    /// The kind became unavailable, after everything that was pushed.
    pub(super) fn push_unavailable(&mut self, reason: Unavailable) {
        self.unavailable = Some(reason);
    }

    /// Takes the next change.
    pub(super) fn pop(&mut self) -> Option<WatchChange<T>> {
        if std::mem::take(&mut self.reset) {
            let (objects, removed) = self.take_all();
            return Some(WatchChange::Reset { objects, removed });
        }
        // Changes from before the kind became unavailable are sent first.
        if let Some(reason) = self.unavailable
            && self.by_key.values().all(|pending| pending.object.is_none())
        {
            self.unavailable = None;
            let (_, removed) = self.take_all();
            return Some(WatchChange::Unavailable { reason, removed });
        }
        let (_, key) = self.order.pop_first()?;
        Some(match self.by_key.remove(&key)?.object {
            Some(object) => WatchChange::Apply(object),
            None => WatchChange::Delete(key),
        })
    }

    /// Takes every object: those that exist, and the keys of those that were deleted.
    fn take_all(&mut self) -> (Vec<T>, Vec<Key>) {
        let (mut objects, mut removed) = (Vec::new(), Vec::new());
        for key in std::mem::take(&mut self.order).into_values() {
            match self.by_key.remove(&key).and_then(|pending| pending.object) {
                Some(object) => objects.push(object),
                None => removed.push(key),
            }
        }
        (objects, removed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An object in a test: its key and a version.
    type Object = (u8, u32);

    fn key(number: u8) -> Key {
        Key { namespace: None, name: number.to_string().into() }
    }

    #[derive(Debug, Clone)]
    enum Action {
        Apply(u8),
        Delete(u8),
        List,
        NotServed,
        Forbidden,
        Take,
    }

    /// What exists, and what a subscriber knows of it.
    #[derive(Default)]
    struct Model {
        exists: BTreeMap<Key, Object>,
        known: BTreeMap<Key, Object>,
        pending: CoalescedChanges<Object>,
        version: u32,
    }

    impl Model {
        fn act(&mut self, action: &Action) {
            match action {
                Action::Apply(number) => self.apply(*number),
                Action::Delete(number) => self.delete(&key(*number)),
                Action::List => self.pending.push_list(),
                Action::NotServed => {
                    let all: Vec<Key> = self.exists.keys().cloned().collect();
                    all.iter().for_each(|key| self.delete(key));
                    self.pending.push_unavailable(Unavailable::NotServed);
                }
                Action::Forbidden => self.pending.push_unavailable(Unavailable::Forbidden),
                Action::Take => {
                    self.take();
                }
            }
        }

        fn apply(&mut self, number: u8) {
            self.version += 1;
            let object = (number, self.version);
            let existed = self.exists.insert(key(number), object).is_some();
            self.pending.push(key(number), Some(object), existed);
        }

        fn delete(&mut self, key: &Key) {
            let existed = self.exists.remove(key).is_some();
            self.pending.push(key.clone(), None, existed);
        }

        /// Takes one change, as a subscriber does. Returns whether there was one.
        fn take(&mut self) -> bool {
            let Some(change) = self.pending.pop() else { return false };
            let (objects, removed) = match change {
                WatchChange::Apply(object) => (vec![object], vec![]),
                WatchChange::Delete(key) => (vec![], vec![key]),
                WatchChange::Reset { objects, removed } => (objects, removed),
                WatchChange::Unavailable { removed, .. } => (vec![], removed),
            };
            for key in removed {
                assert!(self.known.remove(&key).is_some(), "{key} was never sent");
            }
            for object in objects {
                let before = self.known.insert(key(object.0), object);
                assert!(before.is_none_or(|before| before.1 < object.1), "{object:?} is not newer");
            }
            true
        }
    }

    fn action() -> impl Strategy<Value = Action> {
        prop_oneof![
            6 => (0..6_u8).prop_map(Action::Apply),
            4 => (0..6_u8).prop_map(Action::Delete),
            1 => Just(Action::List),
            1 => Just(Action::NotServed),
            1 => Just(Action::Forbidden),
            5 => Just(Action::Take),
        ]
    }

    proptest! {
        #[test]
        fn a_subscriber_ends_with_what_exists(actions in prop::collection::vec(action(), 0..60)) {
            let mut model = Model::default();
            for action in &actions {
                model.act(action);
                let n_pending = model.pending.by_key.len();
                prop_assert_eq!(n_pending, model.pending.order.len());
                prop_assert!(n_pending <= model.exists.len() + model.known.len());
            }
            while model.take() {}
            prop_assert_eq!(&model.known, &model.exists);
        }
    }

    /// The changes that are taken after these actions, as text.
    fn taken(actions: &[Action]) -> Vec<String> {
        let mut model = Model::default();
        actions.iter().for_each(|action| model.act(action));
        let name = |key: &Key| key.name.to_string();
        let names = |keys: &[Key]| keys.iter().map(name).collect::<Vec<_>>().join(" ");
        let next = std::iter::from_fn(|| model.pending.pop());
        next.map(|change| match change {
            WatchChange::Apply((number, version)) => format!("{number}@{version}"),
            WatchChange::Delete(key) => format!("-{}", key.name),
            WatchChange::Reset { objects, removed } => {
                let objects: Vec<String> = objects.iter().map(|one| one.0.to_string()).collect();
                format!("reset {} -{}", objects.join(" "), names(&removed))
            }
            WatchChange::Unavailable { reason, removed } => {
                format!("{reason:?} -{}", names(&removed))
            }
        })
        .collect()
    }

    #[test]
    fn a_slow_subscriber_gets_the_newest_state_of_each_object_in_order() {
        use Action::{Apply, Delete, Take};
        assert_eq!(taken(&[Apply(1), Apply(2), Apply(1)]), ["1@3", "2@2"]);
        assert_eq!(taken(&[Apply(1), Take, Apply(2), Apply(1), Delete(1)]), ["2@2", "-1"]);
        assert_eq!(taken(&[Apply(1), Delete(1), Apply(2)]), ["2@2"], "1 was never seen");
        assert_eq!(taken(&[Apply(1), Take, Delete(1), Apply(1)]), ["1@2"]);
    }

    #[test]
    fn a_list_is_one_change_with_everything_that_is_pending() {
        use Action::{Apply, Delete, Forbidden, List, NotServed, Take};
        let first = [Apply(1), Apply(2), List];
        assert_eq!(taken(&first), ["reset 1 2 -"]);
        let later = [Apply(1), Take, Apply(2), Delete(1), List, Apply(3)];
        assert_eq!(taken(&later), ["reset 2 3 -1"]);
        assert_eq!(taken(&[Apply(1), Take, NotServed]), ["NotServed -1"]);
        assert_eq!(taken(&[Apply(1), List, Forbidden]), ["reset 1 -", "Forbidden -"]);
        assert_eq!(taken(&[Apply(1), Take, Apply(1), Forbidden]), ["1@2", "Forbidden -"]);
        assert_eq!(taken(&[Forbidden, List]), ["reset  -"], "the list is newer");
    }
}
