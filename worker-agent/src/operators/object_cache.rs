//! The objects that operators read: what watches sent, and what their own writes answered.
//!
//! A write is visible to the next pass although its watch event has not come yet. Without that a pass would make the pods of the former
//! one again. The newer version of an object wins; an object that was deleted after a write began does not come back with its answer.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use runtime::watch::Key;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    parent::{ParentId, concerned},
    resources::CLUSTER_ROLE_BINDING,
};

/// The identity of an object: its kind, which is unique among those that are operated, and its key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ObjectId {
    pub(super) kind: String,
    pub(super) key: Key,
}

impl ObjectId {
    pub(super) fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let namespace = object["metadata"]["namespace"].as_str().map(Arc::from);
        let name = text(&object["metadata"]["name"]).into();
        Self { kind: text(&object["kind"]), key: Key { namespace, name } }
    }
}

/// An operated object, and what the decision about it reads. A pass shares them with the cache: a large RayCluster has a thousand pods.
pub(super) type ObjectFamily = (Arc<Value>, Vec<Arc<Value>>);

/// The objects that operators read.
#[derive(Default)]
pub(super) struct ObjectCache {
    /// By namespace first: a pass reads one.
    objects: BTreeMap<Option<Arc<str>>, BTreeMap<ObjectId, Arc<Value>>>,
    deleted: HashMap<ObjectId, NotedDeletion>,
}

/// When a watch reported a deletion, and the uid of the object if it was known.
struct NotedDeletion {
    at: Instant,
    uid: Option<Value>,
}

impl NotedDeletion {
    /// Whether the deletion may be that of the object that answered a request, which was sent at `sent`.
    fn outdates(&self, object: &Value, sent: Instant) -> bool {
        // The successor of a pod has its name.
        let is_same = self.uid.as_ref().is_none_or(|uid| object["metadata"]["uid"] == *uid);
        is_same && self.at >= sent
    }
}

impl ObjectCache {
    /// Takes an object from a watch. Returns whether it is news.
    pub(super) fn observe(&mut self, object: Arc<Value>) -> bool {
        let id = ObjectId::of(&object);
        let objects = self.objects.entry(id.key.namespace.clone()).or_default();
        if objects.get(&id).is_some_and(|known| is_as_new(known, &object)) {
            return false;
        }
        objects.insert(id, object);
        true
    }

    /// Whether an object is known.
    pub(super) fn has(&self, id: &ObjectId) -> bool {
        self.objects.get(&id.key.namespace).is_some_and(|objects| objects.contains_key(id))
    }

    /// The keys of all objects of a kind.
    pub(super) fn keys_of(&self, kind: &str) -> Vec<Key> {
        let ids = self.objects.values().flat_map(BTreeMap::keys);
        ids.filter(|id| id.kind == kind).map(|id| id.key.clone()).collect()
    }

    /// Objects of a kind without namespaces.
    pub(super) fn without_namespace(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.shared_without_namespace(kind).map(|object| &**object)
    }

    fn shared_without_namespace(&self, kind: &str) -> impl Iterator<Item = &Arc<Value>> {
        let objects = self.objects.get(&None).into_iter().flatten();
        objects.filter(move |(id, _)| id.kind == kind).map(|(_, object)| object)
    }

    /// Takes the answer to a request that was sent at `sent`. Returns whether it is news.
    pub(super) fn take_answer(&mut self, mut object: Arc<Value>, sent: Instant) -> bool {
        if object["kind"] == "Secret" {
            forget_content(Arc::make_mut(&mut object));
        }
        let deleted = self.deleted.get(&ObjectId::of(&object));
        deleted.is_none_or(|deleted| !deleted.outdates(&object, sent)) && self.observe(object)
    }

    /// Removes an object that a watch reports as deleted.
    ///
    /// Two watches may report the same deletion, the second one after the successor is known. The successor is lost then until a
    /// pass makes it again and meets it.
    pub(super) fn remove(&mut self, id: &ObjectId, now: Instant) -> Option<Arc<Value>> {
        let objects = self.objects.get_mut(&id.key.namespace);
        let removed = objects.and_then(|objects| objects.remove(id));
        if self.objects.get(&id.key.namespace).is_some_and(BTreeMap::is_empty) {
            self.objects.remove(&id.key.namespace);
        }
        let uid = removed.as_ref().map(|object| object["metadata"]["uid"].clone());
        let noted = self.deleted.remove(id).and_then(|noted| noted.uid);
        self.deleted.insert(id.clone(), NotedDeletion { at: now, uid: uid.or(noted) });
        removed
    }

    /// Marks an object that was asked to go, until its watch says more.
    pub(super) fn mark_deleted(&mut self, id: &ObjectId, uid: &str) {
        let objects = self.objects.get_mut(&id.key.namespace);
        let object = objects.and_then(|objects| objects.get_mut(id));
        let Some(object) = object.filter(|it| it["metadata"]["uid"] == uid) else { return };
        if object["metadata"]["deletionTimestamp"].is_null() {
            // Only whether it is set counts; the API server's value comes with the watch.
            Arc::make_mut(object)["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
        }
    }

    /// Forgets deletions from before this time: no write that began earlier is without an answer.
    pub(super) fn forget_deletions(&mut self, before: Instant) {
        self.deleted.retain(|_, deletion| deletion.at >= before);
    }

    /// An operated object, and what the decision about it reads.
    pub(super) fn family(&self, parent: &ParentId) -> Option<ObjectFamily> {
        let objects = self.objects.get(&parent.key.namespace)?;
        let id = ObjectId { kind: parent.kind.name().to_owned(), key: parent.key.clone() };
        let object = objects.get(&id)?;
        let children = objects.values().filter(|child| parent.kind.reads(object, child));
        let bindings = self
            .shared_without_namespace(CLUSTER_ROLE_BINDING)
            .filter(|binding| concerned(binding).contains(parent));
        let mut children: Vec<Arc<Value>> = children.chain(bindings).cloned().collect();
        // As they were made, so that the oldest of several comes first.
        children.sort_by_cached_key(|child| version(child));
        Some((Arc::clone(object), children))
    }
}

/// Removes the content of a Secret: no decision reads it.
pub(super) fn forget_content(object: &mut Value) {
    if let Some(object) =
        object.as_object_mut().filter(|it| it.get("kind") == Some(&json!("Secret")))
    {
        object.remove("data");
        object.remove("stringData");
    }
}

/// Whether the known object is as new as another one. Versions of one API server are numbers that grow.
fn is_as_new(known: &Value, other: &Value) -> bool {
    match (version(known), version(other)) {
        (Some(known), Some(other)) => known >= other,
        _ => false,
    }
}

fn version(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::operators::parent::ParentKind;

    fn pod(version: u64) -> Arc<Value> {
        Arc::new(json!({
            "kind": "Pod",
            "metadata": {
                "namespace": "ns", "name": "p", "uid": "u",
                "resourceVersion": version.to_string(), "labels": {"ray.io/cluster": "c"},
            },
        }))
    }

    fn cluster() -> Arc<Value> {
        Arc::new(json!({"kind": "RayCluster", "metadata": {"namespace": "ns", "name": "c"}}))
    }

    fn children(cache: &ObjectCache) -> Vec<Arc<Value>> {
        let key = Key { namespace: Some("ns".into()), name: "c".into() };
        let id = ParentId { kind: ParentKind::RayCluster, key };
        cache.family(&id).expect("a cluster").1
    }

    #[test]
    fn passes_share_objects_until_one_of_them_changes() {
        let mut cache = ObjectCache::default();
        cache.observe(cluster());
        cache.observe(pod(3));
        let before = children(&cache);
        assert!(Arc::ptr_eq(&before[0], &children(&cache)[0]));
        cache.mark_deleted(&ObjectId::of(&pod(3)), "u");
        assert_eq!(before, [pod(3)], "a pass reads what it began with");
    }

    #[test]
    fn an_older_event_does_not_replace_the_answer_to_a_write() {
        let mut cache = ObjectCache::default();
        cache.observe(cluster());
        cache.take_answer(pod(9), Instant::now());
        assert!(!cache.observe(pod(7)));
        assert_eq!(children(&cache), [pod(9)]);
    }

    #[test]
    fn an_answer_does_not_bring_back_what_was_deleted_since() {
        let mut cache = ObjectCache::default();
        cache.observe(cluster());
        let began = Instant::now();
        cache.remove(&ObjectId::of(&pod(9)), began + Duration::from_millis(1));
        cache.take_answer(pod(9), began);
        assert_eq!(children(&cache), Vec::<Arc<Value>>::new());
        // A pod of the same name that is made later is another one.
        cache.take_answer(pod(12), began + Duration::from_millis(2));
        assert_eq!(children(&cache), [pod(12)]);
    }

    #[test]
    fn a_successor_of_a_deleted_object_is_taken_from_the_answer_at_once() {
        let mut cache = ObjectCache::default();
        cache.observe(cluster());
        cache.observe(pod(9));
        let now = Instant::now();
        cache.remove(&ObjectId::of(&pod(9)), now);
        let mut successor = pod(12);
        Arc::make_mut(&mut successor)["metadata"]["uid"] = json!("v");
        cache.take_answer(pod(10), now);
        assert_eq!(children(&cache), Vec::<Arc<Value>>::new(), "it was deleted");
        cache.take_answer(successor.clone(), now);
        assert_eq!(children(&cache), [successor.clone()]);
        // Another watch reports the deletion of the first one as well.
        let id = ObjectId::of(&pod(9));
        cache.remove(&id, now);
        cache.take_answer(successor.clone(), now + Duration::from_millis(1));
        assert_eq!(children(&cache), [successor]);
    }

    #[test]
    fn the_content_of_a_secret_is_not_held() {
        let mut cache = ObjectCache::default();
        cache.observe(cluster());
        let labels = json!({"ray.io/cluster": "c"});
        let secret = json!({
            "kind": "Secret", "data": {"ca.key": "a2V5"},
            "metadata": {"namespace": "ns", "name": "s", "labels": labels},
        });
        cache.take_answer(Arc::new(secret), Instant::now());
        let held = children(&cache);
        assert!(held.len() == 1 && held[0].get("data").is_none(), "{held:?}");
    }

    #[test]
    fn a_cluster_has_the_bindings_that_name_it() {
        let mut cache = ObjectCache::default();
        cache.observe(cluster());
        for namespace in ["ns", "other"] {
            cache.observe(Arc::new(json!({
                "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("c-{namespace}-auth"), "labels": {
                    "ray.openshift.ai/cluster-name": "c",
                    "ray.openshift.ai/cluster-namespace": namespace,
                }},
            })));
        }
        let found = children(&cache);
        let names: Vec<&Value> = found.iter().map(|one| &one["metadata"]["name"]).collect();
        assert_eq!(names, ["c-ns-auth"]);
    }

    #[test]
    fn only_the_object_that_was_deleted_is_marked() {
        let mut cache = ObjectCache::default();
        cache.observe(cluster());
        cache.observe(pod(3));
        cache.mark_deleted(&ObjectId::of(&pod(3)), "another");
        assert_eq!(children(&cache), [pod(3)]);
        cache.mark_deleted(&ObjectId::of(&pod(3)), "u");
        assert!(children(&cache)[0]["metadata"]["deletionTimestamp"].is_string());
    }
}
