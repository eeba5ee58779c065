//! What a watch has told so far, and so what its next event means. Pure.
//!
//! Of each object only key and resourceVersion are kept, those that the consumer knows it by.

use std::collections::{BTreeMap, BTreeSet};

use kube::{Resource, runtime::watcher::Event};

use super::{
    Change, Guarded, Key,
    doubt::{Doubts, Seen, number},
};

type Version = Box<str>;

/// An object that does not decode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) key: Key,
    pub(super) error: String,
}

/// What an event comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry<K> {
    /// The consumer must hear of it.
    Change(Change<K>),
    /// Somebody should know; told once per state of the object.
    Unreadable(Unreadable),
    /// Nothing new.
    Nothing,
}

#[derive(Debug)]
pub(super) struct Book<K> {
    known: BTreeMap<Key, Version>,
    unreadable: BTreeMap<Key, Version>,
    listing: Listing<K>,
    /// What went since somebody asked what is there, until they see it.
    gone: Option<BTreeSet<Key>>,
    doubts: Doubts,
}

/// A list under way.
#[derive(Debug)]
struct Listing<K> {
    objects: Vec<K>,
    seen: BTreeMap<Key, Version>,
    unreadable: BTreeMap<Key, Version>,
}

impl<K> Default for Listing<K> {
    fn default() -> Self {
        Self { objects: Vec::new(), seen: BTreeMap::new(), unreadable: BTreeMap::new() }
    }
}

impl<K: Resource> Book<K> {
    pub(super) fn new() -> Self {
        Self {
            known: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            listing: Listing::default(),
            gone: None,
            doubts: Doubts::default(),
        }
    }

    /// Somebody asks what is there.
    pub(super) fn look(&mut self) {
        self.gone = Some(BTreeSet::new());
        self.doubts = Doubts::default();
    }

    /// What they saw.
    pub(super) fn compare(&mut self, seen: &Seen) {
        let readable = self.known.iter().filter_map(|(key, version)| Some((key, number(version)?)));
        let gone = self.gone.take().unwrap_or_default();
        let gone = |key: &Key| gone.contains(key);
        self.doubts = Doubts::of(seen, |key| self.told(key), readable, gone);
    }

    /// An object of which nothing was told though it changed, when so much time has passed that a watch would have told.
    pub(super) fn lost(&self) -> Option<&Key> {
        self.doubts.lost(|key| self.told(key))
    }

    /// The newest version of an object that came, whether it could be read or not.
    fn told(&self, key: &Key) -> Option<u64> {
        let version = |versions: &BTreeMap<Key, Version>| number(versions.get(key)?);
        version(&self.known).max(version(&self.unreadable))
    }

    /// How many objects do not decode at present.
    pub(super) fn n_unreadable(&self) -> usize {
        self.unreadable.len()
    }

    pub(super) fn enter(&mut self, event: Event<Guarded<K>>) -> Entry<K> {
        match event {
            Event::Init => {
                self.listing = Listing::default();
                self.doubts = Doubts::default();
                Entry::Nothing
            }
            Event::InitApply(object) => self.list(object),
            Event::InitDone => Entry::Change(self.listed()),
            Event::Apply(object) => self.apply(object),
            Event::Delete(object) => self.delete(&Key::of(&object)),
        }
    }

    fn list(&mut self, object: Guarded<K>) -> Entry<K> {
        let (key, version) = (Key::of(&object), version(&object));
        match object.0 {
            Ok(object) => {
                if !same(self.known.get(&key), &version) {
                    self.listing.objects.push(stripped(object));
                }
                self.listing.seen.insert(key, version);
                Entry::Nothing
            }
            Err(invalid) => {
                // It exists, so it is not removed; the consumer keeps what it knows.
                if let Some(before) = self.known.get(&key) {
                    self.listing.seen.insert(key.clone(), before.clone());
                }
                let told = same(self.unreadable.get(&key), &version);
                self.listing.unreadable.insert(key.clone(), version);
                report(told, key, invalid.error)
            }
        }
    }

    fn listed(&mut self) -> Change<K> {
        let Listing { objects, seen, unreadable } = std::mem::take(&mut self.listing);
        let before = std::mem::replace(&mut self.known, seen);
        let removed = before.into_keys().filter(|key| !self.known.contains_key(key)).collect();
        self.unreadable = unreadable;
        Change::Reset { objects, removed }
    }

    fn apply(&mut self, object: Guarded<K>) -> Entry<K> {
        let (key, version) = (Key::of(&object), version(&object));
        match object.0 {
            Ok(object) => {
                self.unreadable.remove(&key);
                if same(self.known.get(&key), &version) {
                    return Entry::Nothing;
                }
                self.known.insert(key, version);
                Entry::Change(Change::Apply(stripped(object)))
            }
            Err(invalid) => {
                let before = self.unreadable.insert(key.clone(), version.clone());
                report(same(before.as_ref(), &version), key, invalid.error)
            }
        }
    }

    fn delete(&mut self, key: &Key) -> Entry<K> {
        if let Some(gone) = &mut self.gone {
            gone.insert(key.clone());
        }
        self.unreadable.remove(key);
        match self.known.remove_entry(key) {
            Some((key, _)) => Entry::Change(Change::Delete(key)),
            None => Entry::Nothing,
        }
    }
}

fn report<K>(told: bool, key: Key, error: String) -> Entry<K> {
    if told { Entry::Nothing } else { Entry::Unreadable(Unreadable { key, error }) }
}

fn version(object: &impl Resource) -> Version {
    object.meta().resource_version.as_deref().unwrap_or_default().into()
}

/// An object without a version may always be another.
fn same(before: Option<&Version>, now: &Version) -> bool {
    !now.is_empty() && before == Some(now)
}

fn stripped<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{Value, json};

    use super::*;

    type Told = Entry<ConfigMap>;

    fn json_map(name: &str, version: &str) -> Value {
        json!({"metadata": {
            "name": name, "namespace": "here", "resourceVersion": version,
            "managedFields": [{"manager": "x"}],
        }})
    }

    fn good(name: &str, version: &str) -> Guarded<ConfigMap> {
        serde_json::from_value(json_map(name, version)).expect("an object")
    }

    fn bad(name: &str, version: &str) -> Guarded<ConfigMap> {
        let mut object = json_map(name, version);
        object["data"] = json!("not a map");
        let guarded: Guarded<ConfigMap> = serde_json::from_value(object).expect("a guarded object");
        assert!(guarded.0.is_err());
        guarded
    }

    fn key(name: &str) -> Key {
        Key { namespace: Some("here".into()), name: name.into() }
    }

    /// A list of these, and what it comes to: names and versions of what is sent, names of what is removed.
    fn list(
        book: &mut Book<ConfigMap>,
        objects: Vec<Guarded<ConfigMap>>,
    ) -> (Vec<String>, Vec<String>) {
        book.enter(Event::Init);
        for object in objects {
            book.enter(Event::InitApply(object));
        }
        let Entry::Change(Change::Reset { objects, removed }) = book.enter(Event::InitDone) else {
            panic!("a list is a reset");
        };
        let sent = objects.iter().map(|object| format!("{}@{}", Key::of(object), version(object)));
        (sent.collect(), removed.iter().map(ToString::to_string).collect())
    }

    fn is_apply(entry: &Told) -> bool {
        matches!(entry, Entry::Change(Change::Apply(_)))
    }

    #[test]
    fn a_new_list_sends_what_differs_and_names_what_went() {
        let mut book = Book::new();
        let (sent, removed) = list(&mut book, vec![good("a", "1"), good("b", "1"), good("c", "1")]);
        assert_eq!(sent, ["here/a@1", "here/b@1", "here/c@1"]);
        assert!(removed.is_empty());
        let (sent, removed) = list(&mut book, vec![good("a", "1"), good("b", "2"), good("d", "3")]);
        assert_eq!(sent, ["here/b@2", "here/d@3"]);
        assert_eq!(removed, ["here/c"]);
        assert_eq!(list(&mut book, Vec::new()).1, ["here/a", "here/b", "here/d"]);
        assert_eq!(list(&mut book, Vec::new()), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_list_that_was_broken_off_leaves_no_trace() {
        let mut book = Book::new();
        list(&mut book, vec![good("a", "1")]);
        book.enter(Event::Init);
        book.enter(Event::InitApply(good("b", "2")));
        let (sent, removed) = list(&mut book, vec![good("a", "1"), good("b", "2")]);
        assert_eq!(sent, ["here/b@2"]);
        assert!(removed.is_empty());
    }

    #[test]
    fn events_are_told_once() {
        let mut book: Book<ConfigMap> = Book::new();
        assert!(is_apply(&book.enter(Event::Apply(good("a", "1")))));
        assert_eq!(book.enter(Event::Apply(good("a", "1"))), Entry::Nothing);
        assert!(is_apply(&book.enter(Event::Apply(good("a", "2")))));
        let gone = Entry::Change(Change::Delete(key("a")));
        assert_eq!(book.enter(Event::Delete(good("a", "3"))), gone);
        assert_eq!(book.enter(Event::Delete(good("a", "3"))), Entry::Nothing);
        assert!(is_apply(&book.enter(Event::Apply(good("a", "2")))));
    }

    #[test]
    fn managed_fields_are_not_kept() {
        let mut book = Book::new();
        let Entry::Change(Change::Apply(object)) = book.enter(Event::Apply(good("a", "1"))) else {
            panic!("an object is applied");
        };
        assert_eq!(object.metadata.managed_fields, None);
        book.enter(Event::Init);
        book.enter(Event::InitApply(good("b", "1")));
        assert!(book.listing.objects.iter().all(|object| object.metadata.managed_fields.is_none()));
        assert_eq!(book.listing.objects.len(), 1);
    }

    #[test]
    fn an_unreadable_object_is_named_once_per_state_and_counted() {
        let mut book: Book<ConfigMap> = Book::new();
        for (object, told) in [(bad("a", "1"), true), (bad("a", "1"), false), (bad("a", "2"), true)]
        {
            let entry = book.enter(Event::Apply(object));
            assert_eq!(matches!(entry, Entry::Unreadable(one) if one.key == key("a")), told);
        }
        assert_eq!(book.n_unreadable(), 1);
        book.enter(Event::Apply(bad("b", "1")));
        assert_eq!(book.n_unreadable(), 2);
        assert!(is_apply(&book.enter(Event::Apply(good("a", "3")))));
        assert_eq!(book.enter(Event::Delete(bad("b", "2"))), Entry::Nothing);
        assert_eq!(book.n_unreadable(), 0);
    }

    #[test]
    fn what_was_known_of_an_unreadable_object_stands_until_it_is_deleted() {
        let mut book = Book::new();
        list(&mut book, vec![good("a", "1"), good("b", "1")]);
        let (sent, removed) = list(&mut book, vec![bad("a", "2"), good("b", "1"), bad("c", "1")]);
        assert!(sent.is_empty() && removed.is_empty(), "{sent:?} {removed:?}");
        assert_eq!(book.n_unreadable(), 2);
        assert_eq!(list(&mut book, vec![good("b", "1")]).1, ["here/a"]);
        assert_eq!(book.n_unreadable(), 0);
    }

    #[test]
    fn an_unreadable_object_that_is_deleted_is_removed() {
        let mut book = Book::new();
        list(&mut book, vec![good("a", "1")]);
        book.enter(Event::Apply(bad("a", "2")));
        let gone = Entry::Change(Change::Delete(key("a")));
        assert_eq!(book.enter(Event::Delete(bad("a", "3"))), gone);
    }
}
