//! The objects that the consumer of a watch knows, and what the next event of the stream changes. Pure.
//!
//! Input: events of one stream after the other. Output: [`WatchEffect`]s. Per object only key and resourceVersion are kept.

use std::collections::{BTreeMap, BTreeSet};

use kube::{Resource, runtime::watcher::Event};

use super::{
    Key, Unavailable, WatchChange,
    delivery::Decoder,
    missed_events::{ObjectVersions, Suspects, number},
};
use crate::api_object::ApiObject;

type ResourceVersion = Box<str>;

/// An object that does not decode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) key: Key,
    pub(super) error: String,
}

/// The effect of one event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WatchEffect<K> {
    /// The consumer receives this change.
    Change(WatchChange<K>),
    /// An object does not decode. Reported once per version of the object.
    Unreadable(Unreadable),
    /// No effect.
    Nothing,
}

pub(super) struct KnownObjects<K> {
    decode: Decoder<K>,
    known: BTreeMap<Key, ResourceVersion>,
    unreadable: BTreeMap<Key, ResourceVersion>,
    listing: ListInProgress<K>,
    /// Objects that were deleted between the request of a consistency list and its answer.
    deleted: Option<BTreeSet<Key>>,
    /// The object with the highest version when a consistency list was requested.
    newest: Option<(Key, u64)>,
    suspects: Suspects,
    /// Why the kind is not available; `None` before the first answer, and after a list.
    unavailable: Option<Unavailable>,
}

/// A list in progress.
#[derive(Debug)]
struct ListInProgress<K> {
    objects: Vec<K>,
    seen: BTreeMap<Key, ResourceVersion>,
    unreadable: BTreeMap<Key, ResourceVersion>,
    /// How often an object was listed once more.
    n_repeated: usize,
}

impl<K> Default for ListInProgress<K> {
    fn default() -> Self {
        let (seen, unreadable) = (BTreeMap::new(), BTreeMap::new());
        Self { objects: Vec::new(), seen, unreadable, n_repeated: 0 }
    }
}

impl<K> KnownObjects<K> {
    pub(super) fn new(decode: Decoder<K>) -> Self {
        Self {
            decode,
            known: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            listing: ListInProgress::default(),
            deleted: None,
            newest: None,
            suspects: Suspects::default(),
            unavailable: None,
        }
    }

    /// The kind is not available. Returns the change, once per transition.
    pub(super) fn unavailable(&mut self, reason: Unavailable) -> Option<WatchChange<K>> {
        if self.unavailable.replace(reason) == Some(reason) {
            return None;
        }
        let removed = match reason {
            // No object outlives its kind. One that exists again later is sent with the next list.
            Unavailable::NotServed => {
                self.unreadable.clear();
                std::mem::take(&mut self.known).into_keys().collect()
            }
            // The objects still exist, and most of them have not changed.
            Unavailable::Forbidden => Vec::new(),
        };
        Some(WatchChange::Unavailable { reason, removed })
    }

    /// Whether the kind was reported as not served, and was not listed since.
    pub(super) fn is_not_served(&self) -> bool {
        self.unavailable == Some(Unavailable::NotServed)
    }

    /// A consistency list is requested now.
    pub(super) fn start_check(&mut self) {
        self.deleted = Some(BTreeSet::new());
        let numbers = self.known.iter().filter_map(|(key, version)| Some((key, number(version)?)));
        let newest = numbers.max_by_key(|(_, version)| *version);
        self.newest = newest.map(|(key, version)| (key.clone(), version));
        self.suspects = Suspects::default();
    }

    /// The consistency list was answered.
    pub(super) fn compare(&mut self, listed: &ObjectVersions) {
        let readable = self.known.iter().filter_map(|(key, version)| Some((key, number(version)?)));
        let deleted = self.deleted.take().unwrap_or_default();
        let deleted = |key: &Key| deleted.contains(key);
        self.suspects = Suspects::of(listed, |key| self.delivered(key), readable, deleted);
        // The list is the newest state, so only a restore from a backup shows a lower version. The stream is silent then until the
        // cluster has reached its version again.
        if let Some((key, version)) =
            self.newest.take().filter(|(_, newest)| listed.version < *newest)
        {
            self.suspects.add(key, version);
        }
    }

    /// An object whose change was not delivered within the grace period of a consistency check.
    pub(super) fn lost(&self) -> Option<&Key> {
        self.suspects.lost(|key| self.delivered(key))
    }

    /// The newest version that the stream delivered, decodable or not.
    fn delivered(&self, key: &Key) -> Option<u64> {
        let version = |versions: &BTreeMap<Key, ResourceVersion>| number(versions.get(key)?);
        version(&self.known).max(version(&self.unreadable))
    }

    /// Number of objects that do not decode at present.
    pub(super) fn n_unreadable(&self) -> usize {
        self.unreadable.len()
    }

    /// Whether the list in progress repeats its objects, so that it never ends: the pages of a list have each object once.
    pub(super) fn list_repeats(&self) -> bool {
        let listing = &self.listing;
        listing.n_repeated > listing.seen.len() + listing.unreadable.len()
    }

    pub(super) fn handle(&mut self, event: Event<ApiObject>) -> WatchEffect<K> {
        match event {
            Event::Init => {
                // A list that was interrupted starts again with its first page.
                self.listing = ListInProgress::default();
                // The new list itself shows what a consistency check would look for.
                self.suspects = Suspects::default();
                WatchEffect::Nothing
            }
            Event::InitApply(object) => self.list(&object),
            Event::InitDone => WatchEffect::Change(self.finish_list()),
            Event::Apply(object) => self.apply(&object),
            Event::Delete(object) => self.delete(&Key::of(&object)),
        }
    }

    fn list(&mut self, object: &ApiObject) -> WatchEffect<K> {
        let (key, version) = (Key::of(object), version(object));
        if self.listing.seen.contains_key(&key) || self.listing.unreadable.contains_key(&key) {
            self.listing.n_repeated += 1;
        }
        // An object that was sent decodes, so it is not decoded again.
        if same(self.known.get(&key), &version) {
            self.listing.seen.insert(key, version);
            return WatchEffect::Nothing;
        }
        match (self.decode)(&key, object.text()) {
            Ok(object) => {
                self.listing.objects.push(object);
                self.listing.seen.insert(key, version);
                WatchEffect::Nothing
            }
            Err(error) => {
                // The object exists, so it is not removed: the consumer keeps the last version that decoded.
                if let Some(before) = self.known.get(&key) {
                    self.listing.seen.insert(key.clone(), before.clone());
                }
                let reported = same(self.unreadable.get(&key), &version);
                self.listing.unreadable.insert(key.clone(), version);
                report(reported, key, error)
            }
        }
    }

    fn finish_list(&mut self) -> WatchChange<K> {
        let ListInProgress { objects, seen, unreadable, .. } = std::mem::take(&mut self.listing);
        let before = std::mem::replace(&mut self.known, seen);
        let removed = before.into_keys().filter(|key| !self.known.contains_key(key)).collect();
        self.unreadable = unreadable;
        self.unavailable = None;
        WatchChange::Reset { objects, removed }
    }

    fn apply(&mut self, object: &ApiObject) -> WatchEffect<K> {
        let (key, version) = (Key::of(object), version(object));
        if same(self.known.get(&key), &version) {
            // The version that the consumer has came back, after one that did not decode.
            self.unreadable.remove(&key);
            return WatchEffect::Nothing;
        }
        match (self.decode)(&key, object.text()) {
            Ok(object) => {
                self.unreadable.remove(&key);
                self.known.insert(key, version);
                WatchEffect::Change(WatchChange::Apply(object))
            }
            Err(error) => {
                let before = self.unreadable.insert(key.clone(), version.clone());
                report(same(before.as_ref(), &version), key, error)
            }
        }
    }

    fn delete(&mut self, key: &Key) -> WatchEffect<K> {
        // The answer to a consistency list that was requested before may still contain the object.
        if let Some(deleted) = &mut self.deleted {
            deleted.insert(key.clone());
        }
        self.unreadable.remove(key);
        match self.known.remove_entry(key) {
            Some((key, _)) => WatchEffect::Change(WatchChange::Delete(key)),
            None => WatchEffect::Nothing,
        }
    }
}

fn report<K>(reported: bool, key: Key, error: String) -> WatchEffect<K> {
    if reported { WatchEffect::Nothing } else { WatchEffect::Unreadable(Unreadable { key, error }) }
}

fn version(object: &impl Resource) -> ResourceVersion {
    object.meta().resource_version.as_deref().unwrap_or_default().into()
}

/// Versions are equal only if they are present: an object without resourceVersion may have changed.
fn same(before: Option<&ResourceVersion>, now: &ResourceVersion) -> bool {
    !now.is_empty() && before == Some(now)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{Value, json};

    use super::*;

    type Effect = WatchEffect<ConfigMap>;

    fn json_map(name: &str, version: &str) -> Value {
        json!({"metadata": {
            "name": name, "namespace": "here", "resourceVersion": version,
            "managedFields": [{"manager": "x"}],
        }})
    }

    fn known_objects() -> KnownObjects<ConfigMap> {
        KnownObjects::new(Box::new(|_, text| {
            serde_json::from_str(text).map_err(|error| error.to_string())
        }))
    }

    fn good(name: &str, version: &str) -> ApiObject {
        serde_json::from_value(json_map(name, version)).expect("an object")
    }

    fn bad(name: &str, version: &str) -> ApiObject {
        let mut object = json_map(name, version);
        object["data"] = json!("not a map");
        assert!(serde_json::from_value::<ConfigMap>(object.clone()).is_err());
        serde_json::from_value(object).expect("an object")
    }

    fn key(name: &str) -> Key {
        Key { namespace: Some("here".into()), name: name.into() }
    }

    /// Delivers a list. Returns name and version of each object sent, and the name of each object removed.
    fn list(
        known_objects: &mut KnownObjects<ConfigMap>,
        objects: Vec<ApiObject>,
    ) -> (Vec<String>, Vec<String>) {
        known_objects.handle(Event::Init);
        for object in objects {
            known_objects.handle(Event::InitApply(object));
        }
        let WatchEffect::Change(WatchChange::Reset { objects, removed }) =
            known_objects.handle(Event::InitDone)
        else {
            panic!("a list is a reset");
        };
        let sent = objects.iter().map(|object| format!("{}@{}", Key::of(object), version(object)));
        (sent.collect(), removed.iter().map(ToString::to_string).collect())
    }

    /// Compares with a consistency list of this version and these objects. Returns what is lost.
    fn check(
        known_objects: &mut KnownObjects<ConfigMap>,
        version: u64,
        objects: &[(&str, u64)],
    ) -> Option<String> {
        let objects = objects.iter().map(|(name, version)| (key(name), *version)).collect();
        known_objects.compare(&ObjectVersions { version, objects });
        known_objects.lost().map(ToString::to_string)
    }

    #[test]
    fn a_list_below_a_version_from_before_the_check_shows_that_the_cluster_went_back() {
        let mut known_objects = known_objects();
        list(&mut known_objects, vec![good("a", "10"), good("b", "40")]);
        known_objects.start_check();
        // Delivered after the request of the list, which may be older.
        known_objects.handle(Event::Apply(good("c", "50")));
        assert_eq!(check(&mut known_objects, 40, &[("a", 10), ("b", 40)]), None);
        known_objects.start_check();
        let lost = check(&mut known_objects, 30, &[("a", 10), ("b", 20)]);
        assert_eq!(lost.as_deref(), Some("here/c"));
        known_objects.handle(Event::Apply(good("c", "51")));
        assert_eq!(known_objects.lost(), None, "the stream still delivers");
    }

    fn is_apply(effect: &Effect) -> bool {
        matches!(effect, WatchEffect::Change(WatchChange::Apply(_)))
    }

    #[test]
    fn a_list_repeats_if_most_of_its_objects_were_listed_before() {
        let mut known_objects = known_objects();
        known_objects.handle(Event::Init);
        for (object, repeats) in [
            (good("a", "1"), false),
            (bad("b", "1"), false),
            (good("a", "1"), false),
            (bad("b", "2"), false),
            (good("a", "1"), true),
        ] {
            known_objects.handle(Event::InitApply(object));
            assert_eq!(known_objects.list_repeats(), repeats);
        }
        known_objects.handle(Event::Init);
        assert!(!known_objects.list_repeats(), "a new list");
    }

    #[test]
    fn a_re_list_sends_changed_objects_and_names_removed_ones() {
        let mut known_objects = known_objects();
        let (sent, removed) =
            list(&mut known_objects, vec![good("a", "1"), good("b", "1"), good("c", "1")]);
        assert_eq!(sent, ["here/a@1", "here/b@1", "here/c@1"]);
        assert!(removed.is_empty());
        let (sent, removed) =
            list(&mut known_objects, vec![good("a", "1"), good("b", "2"), good("d", "3")]);
        assert_eq!(sent, ["here/b@2", "here/d@3"]);
        assert_eq!(removed, ["here/c"]);
        assert_eq!(list(&mut known_objects, Vec::new()).1, ["here/a", "here/b", "here/d"]);
        assert_eq!(list(&mut known_objects, Vec::new()), (Vec::new(), Vec::new()));
    }

    #[test]
    fn an_interrupted_list_has_no_effect() {
        let mut known_objects = known_objects();
        list(&mut known_objects, vec![good("a", "1")]);
        known_objects.handle(Event::Init);
        known_objects.handle(Event::InitApply(good("b", "2")));
        let (sent, removed) = list(&mut known_objects, vec![good("a", "1"), good("b", "2")]);
        assert_eq!(sent, ["here/b@2"]);
        assert!(removed.is_empty());
    }

    #[test]
    fn each_version_is_delivered_once() {
        let mut known_objects = known_objects();
        assert!(is_apply(&known_objects.handle(Event::Apply(good("a", "1")))));
        assert_eq!(known_objects.handle(Event::Apply(good("a", "1"))), WatchEffect::Nothing);
        assert!(is_apply(&known_objects.handle(Event::Apply(good("a", "2")))));
        let deleted = WatchEffect::Change(WatchChange::Delete(key("a")));
        assert_eq!(known_objects.handle(Event::Delete(good("a", "3"))), deleted);
        assert_eq!(known_objects.handle(Event::Delete(good("a", "3"))), WatchEffect::Nothing);
        assert!(is_apply(&known_objects.handle(Event::Apply(good("a", "2")))));
    }

    #[test]
    fn managed_fields_are_removed() {
        let mut known_objects = known_objects();
        let WatchEffect::Change(WatchChange::Apply(object)) =
            known_objects.handle(Event::Apply(good("a", "1")))
        else {
            panic!("an object is applied");
        };
        assert_eq!(object.metadata.managed_fields, None);
        known_objects.handle(Event::Init);
        known_objects.handle(Event::InitApply(good("b", "1")));
        assert!(
            known_objects
                .listing
                .objects
                .iter()
                .all(|object| object.metadata.managed_fields.is_none())
        );
        assert_eq!(known_objects.listing.objects.len(), 1);
    }

    #[test]
    fn an_undecodable_object_is_reported_once_per_version_and_counted() {
        let mut known_objects = known_objects();
        for (object, reported) in
            [(bad("a", "1"), true), (bad("a", "1"), false), (bad("a", "2"), true)]
        {
            let effect = known_objects.handle(Event::Apply(object));
            assert_eq!(
                matches!(effect, WatchEffect::Unreadable(one) if one.key == key("a")),
                reported
            );
        }
        assert_eq!(known_objects.n_unreadable(), 1);
        known_objects.handle(Event::Apply(bad("b", "1")));
        assert_eq!(known_objects.n_unreadable(), 2);
        assert!(is_apply(&known_objects.handle(Event::Apply(good("a", "3")))));
        assert_eq!(known_objects.handle(Event::Delete(bad("b", "2"))), WatchEffect::Nothing);
        assert_eq!(known_objects.n_unreadable(), 0);
    }

    #[test]
    fn an_undecodable_object_keeps_its_last_decoded_version_until_it_is_deleted() {
        let mut known_objects = known_objects();
        list(&mut known_objects, vec![good("a", "1"), good("b", "1")]);
        let (sent, removed) =
            list(&mut known_objects, vec![bad("a", "2"), good("b", "1"), bad("c", "1")]);
        assert!(sent.is_empty() && removed.is_empty(), "{sent:?} {removed:?}");
        assert_eq!(known_objects.n_unreadable(), 2);
        assert_eq!(list(&mut known_objects, vec![good("b", "1")]).1, ["here/a"]);
        assert_eq!(known_objects.n_unreadable(), 0);
    }

    #[test]
    fn an_undecodable_object_that_is_deleted_is_removed() {
        let mut known_objects = known_objects();
        list(&mut known_objects, vec![good("a", "1")]);
        known_objects.handle(Event::Apply(bad("a", "2")));
        let deleted = WatchEffect::Change(WatchChange::Delete(key("a")));
        assert_eq!(known_objects.handle(Event::Delete(bad("a", "3"))), deleted);
    }

    fn unavailable(
        known_objects: &mut KnownObjects<ConfigMap>,
        reason: Unavailable,
    ) -> Option<Vec<String>> {
        match known_objects.unavailable(reason)? {
            WatchChange::Unavailable { reason: sent, removed } if sent == reason => {
                Some(removed.iter().map(ToString::to_string).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_kind_that_is_not_served_any_more_removes_every_object_once() {
        let mut known_objects = known_objects();
        list(&mut known_objects, vec![good("a", "1"), bad("b", "1"), good("c", "1")]);
        let removed = unavailable(&mut known_objects, Unavailable::NotServed);
        assert_eq!(removed.expect("a change"), ["here/a", "here/c"]);
        assert_eq!(known_objects.n_unreadable(), 0);
        assert_eq!(unavailable(&mut known_objects, Unavailable::NotServed), None);
        let (sent, removed) = list(&mut known_objects, vec![good("a", "1")]);
        assert_eq!((sent, removed), (vec!["here/a@1".to_owned()], Vec::new()));
        assert!(unavailable(&mut known_objects, Unavailable::NotServed).is_some());
    }

    #[test]
    fn a_forbidden_kind_keeps_its_objects_until_it_is_listed_again() {
        let mut known_objects = known_objects();
        list(&mut known_objects, vec![good("a", "1"), good("b", "1")]);
        assert_eq!(unavailable(&mut known_objects, Unavailable::Forbidden), Some(Vec::new()));
        assert_eq!(unavailable(&mut known_objects, Unavailable::Forbidden), None);
        let (sent, removed) = list(&mut known_objects, vec![good("a", "2")]);
        assert_eq!((sent, removed), (vec!["here/a@2".to_owned()], vec!["here/b".to_owned()]));
    }

    #[test]
    fn a_forbidden_kind_may_turn_out_not_to_be_served() {
        let mut known_objects = known_objects();
        list(&mut known_objects, vec![good("a", "1")]);
        assert_eq!(unavailable(&mut known_objects, Unavailable::Forbidden), Some(Vec::new()));
        let removed = unavailable(&mut known_objects, Unavailable::NotServed);
        assert_eq!(removed.expect("a change"), ["here/a"]);
    }
}
