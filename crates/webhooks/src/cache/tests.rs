use std::sync::Arc;

use crds::v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue, WorkloadPriorityClass};
use k8s_openapi::api::core::v1::Namespace;
use serde_json::{Value, json};

use super::*;

fn object<K: CachedKind>(kind: &str, name: &str, spec: &Value) -> K {
    let version = if kind == "Namespace" { "v1" } else { "kueue.x-k8s.io/v1beta2" };
    let metadata = json!({"namespace": "team", "name": name, "labels": {"kueue": "yes"}});
    let object = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
    K::decode(&object).expect("an object")
}

fn local_queue(name: &str, cluster_queue: &str) -> LocalQueue {
    object("LocalQueue", name, &json!({"clusterQueue": cluster_queue}))
}

fn cluster_queue(name: &str, checks: &[&str]) -> ClusterQueue {
    let checks: Vec<Value> = checks.iter().map(|name| json!({"name": name})).collect();
    let spec = json!({"admissionChecksStrategy": {"admissionChecks": checks}});
    object("ClusterQueue", name, &spec)
}

fn check(name: &str, controller: &str) -> AdmissionCheck {
    object("AdmissionCheck", name, &json!({"controllerName": controller}))
}

fn namespaced(name: &str) -> Key {
    Key { namespace: Some("team".into()), name: name.into() }
}

fn cluster_scoped(name: &str) -> Key {
    Key { namespace: None, name: name.into() }
}

/// LocalQueue `far` dispatches to worker clusters, LocalQueue `near` does not.
fn cache() -> WebhookCache {
    let mut cache = WebhookCache::default();
    cache.reset(&[local_queue("far", "far"), local_queue("near", "near")], &[]);
    cache.reset(&[cluster_queue("far", &["hands", "off"]), cluster_queue("near", &["hands"])], &[]);
    cache.reset(
        &[check("hands", "example.com/hands"), check("off", "kueue.x-k8s.io/multikueue")],
        &[],
    );
    cache
}

#[test]
fn a_queue_dispatches_through_a_check_of_its_cluster_queue() {
    let cache = cache();
    let route =
        |namespace, queue| DispatchRoute::of(&cache, &WebhookCache::default(), namespace, queue);
    assert_eq!(route("team", "far"), DispatchRoute::Resolved(true));
    assert_eq!(
        route("team", "near"),
        DispatchRoute::Resolved(false),
        "its check has another controller"
    );
    assert_eq!(route("team", "other"), DispatchRoute::Unresolved(RouteObject::LocalQueue));
    assert_eq!(
        route("other", "far"),
        DispatchRoute::Unresolved(RouteObject::LocalQueue),
        "another namespace"
    );
}

#[test]
fn a_queue_stops_dispatching_when_an_object_of_its_route_is_deleted_or_changed() {
    let after = |change: fn(&mut WebhookCache)| {
        let mut cache = cache();
        change(&mut cache);
        DispatchRoute::of(&cache, &WebhookCache::default(), "team", "far")
    };
    let (queue, check) =
        (RouteObject::ClusterQueue("far".into()), RouteObject::AdmissionCheck("off".into()));
    for (expected, change) in [
        (
            DispatchRoute::Unresolved(RouteObject::LocalQueue),
            (|cache| cache.delete::<LocalQueue>(&namespaced("far"))) as fn(&mut WebhookCache),
        ),
        (DispatchRoute::Unresolved(queue), |cache| {
            cache.delete::<ClusterQueue>(&cluster_scoped("far"));
        }),
        (DispatchRoute::Unresolved(check), |cache| {
            cache.delete::<AdmissionCheck>(&cluster_scoped("off"));
        }),
        (DispatchRoute::Resolved(false), |cache| cache.insert_missing_check("off".into())),
        (DispatchRoute::Resolved(false), |cache| cache.apply(&cluster_queue("far", &["hands"]))),
        (DispatchRoute::Resolved(false), |cache| cache.apply(&local_queue("far", "near"))),
        (DispatchRoute::Resolved(true), |cache| cache.delete::<LocalQueue>(&namespaced("near"))),
        (DispatchRoute::Resolved(true), |cache| {
            cache.delete::<AdmissionCheck>(&cluster_scoped("hands"));
        }),
    ] {
        assert_eq!(after(change), expected);
    }
}

#[test]
fn a_route_uses_read_objects_where_the_cache_has_none() {
    let mut read = WebhookCache::default();
    let mut route = |insert: fn(&mut WebhookCache)| {
        insert(&mut read);
        DispatchRoute::of(&WebhookCache::default(), &read, "team", "far")
    };
    assert_eq!(route(|_| ()), DispatchRoute::Unresolved(RouteObject::LocalQueue));
    let next = route(|read| read.apply(&local_queue("far", "all")));
    assert_eq!(next, DispatchRoute::Unresolved(RouteObject::ClusterQueue("all".into())));
    let next = route(|read| read.apply(&cluster_queue("all", &["gone", "off"])));
    assert_eq!(next, DispatchRoute::Unresolved(RouteObject::AdmissionCheck("gone".into())));
    let next = route(|read| read.insert_missing_check("gone".into()));
    assert_eq!(next, DispatchRoute::Unresolved(RouteObject::AdmissionCheck("off".into())));
    let next = route(|read| read.apply(&check("off", "kueue.x-k8s.io/multikueue")));
    assert_eq!(next, DispatchRoute::Resolved(true));
}

#[test]
fn a_default_exists_as_long_as_its_object() {
    let mut cache = WebhookCache::default();
    cache.apply(&local_queue("default", ""));
    cache.apply(&object::<WorkloadPriorityClass>("WorkloadPriorityClass", "default", &Value::Null));
    assert!(cache.has_default_queue("team") && !cache.has_default_queue("other"));
    assert!(cache.has_default_priority_class());
    cache.reset::<LocalQueue>([], &[namespaced("default")]);
    cache.reset::<WorkloadPriorityClass>([], &[cluster_scoped("default")]);
    assert_eq!(cache, WebhookCache::default(), "no entry remains");
}

#[test]
fn an_unknown_namespace_has_no_labels() {
    let mut cache = WebhookCache::default();
    assert_eq!(cache.labels_of("team"), None);
    cache.apply(&object::<Namespace>("Namespace", "team", &json!({})));
    assert_eq!(cache.labels_of("team").map(|labels| labels["kueue"].as_str()), Some("yes"));
    cache.delete::<Namespace>(&cluster_scoped("team"));
    assert_eq!(cache, WebhookCache::default());
}

#[test]
fn the_cache_is_synced_when_every_kind_was_listed() {
    fn list<K: CachedKind>(cache: &SharedWebhookCache) -> bool {
        cache.handle(Change::<K>::Reset { objects: vec![], removed: vec![] });
        cache.is_synced()
    }
    let cache = SharedWebhookCache::default();
    cache.handle(Change::Apply(Arc::new(local_queue("default", "q"))));
    assert!(!cache.is_synced(), "an object is not a list");
    assert!(!list::<LocalQueue>(&cache));
    assert!(!list::<ClusterQueue>(&cache));
    assert!(!list::<AdmissionCheck>(&cache));
    assert!(!list::<Namespace>(&cache));
    assert!(!list::<Namespace>(&cache));
    assert!(list::<WorkloadPriorityClass>(&cache));
    assert!(cache.read(|cache| cache.has_default_queue("team")));
}
