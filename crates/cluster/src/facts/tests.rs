use crds::v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue, WorkloadPriorityClass};
use k8s_openapi::api::core::v1::Namespace;
use serde_json::{Value, json};

use super::*;

fn object<K: Fact>(kind: &str, name: &str, spec: &Value) -> K {
    let version = if kind == "Namespace" { "v1" } else { "kueue.x-k8s.io/v1beta2" };
    let metadata = json!({"namespace": "team", "name": name, "labels": {"kueue": "yes"}});
    let object = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
    serde_json::from_value(object).expect("an object")
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

fn wide(name: &str) -> Key {
    Key { namespace: None, name: name.into() }
}

/// A queue that leads to workers, and one that does not.
fn facts() -> Facts {
    let mut facts = Facts::default();
    facts.reset(vec![local_queue("far", "far"), local_queue("near", "near")], &[]);
    facts.reset(
        vec![cluster_queue("far", &["hands", "off"]), cluster_queue("near", &["hands"])],
        &[],
    );
    facts.reset(
        vec![check("hands", "example.com/hands"), check("off", "kueue.x-k8s.io/multikueue")],
        &[],
    );
    facts
}

#[test]
fn a_queue_dispatches_through_a_check_of_its_cluster_queue() {
    let facts = facts();
    let route = |namespace, queue| Route::of(&facts, &Facts::default(), namespace, queue);
    assert_eq!(route("team", "far"), Route::Known(true));
    assert_eq!(route("team", "near"), Route::Known(false), "its check has another controller");
    assert_eq!(route("team", "other"), Route::Through(Link::LocalQueue));
    assert_eq!(route("other", "far"), Route::Through(Link::LocalQueue), "another namespace");
}

#[test]
fn every_link_that_goes_ends_the_dispatch() {
    let after = |change: fn(&mut Facts)| {
        let mut facts = facts();
        change(&mut facts);
        Route::of(&facts, &Facts::default(), "team", "far")
    };
    let (queue, check) = (Link::ClusterQueue("far".into()), Link::AdmissionCheck("off".into()));
    for (expected, change) in [
        (
            Route::Through(Link::LocalQueue),
            (|facts| facts.delete::<LocalQueue>(&namespaced("far"))) as fn(&mut Facts),
        ),
        (Route::Through(queue), |facts| facts.delete::<ClusterQueue>(&wide("far"))),
        (Route::Through(check), |facts| facts.delete::<AdmissionCheck>(&wide("off"))),
        (Route::Known(false), |facts| facts.lack_check("off".into())),
        (Route::Known(false), |facts| facts.apply(cluster_queue("far", &["hands"]))),
        (Route::Known(false), |facts| facts.apply(local_queue("far", "near"))),
        (Route::Known(true), |facts| facts.delete::<LocalQueue>(&namespaced("near"))),
        (Route::Known(true), |facts| facts.delete::<AdmissionCheck>(&wide("hands"))),
    ] {
        assert_eq!(after(change), expected);
    }
}

#[test]
fn what_was_read_fills_what_is_not_known() {
    let mut read = Facts::default();
    let mut route = |learn: fn(&mut Facts)| {
        learn(&mut read);
        Route::of(&Facts::default(), &read, "team", "far")
    };
    assert_eq!(route(|_| ()), Route::Through(Link::LocalQueue));
    let next = route(|read| read.apply(local_queue("far", "all")));
    assert_eq!(next, Route::Through(Link::ClusterQueue("all".into())));
    let next = route(|read| read.apply(cluster_queue("all", &["gone", "off"])));
    assert_eq!(next, Route::Through(Link::AdmissionCheck("gone".into())));
    let next = route(|read| read.lack_check("gone".into()));
    assert_eq!(next, Route::Through(Link::AdmissionCheck("off".into())));
    let next = route(|read| read.apply(check("off", "kueue.x-k8s.io/multikueue")));
    assert_eq!(next, Route::Known(true));
}

#[test]
fn defaults_are_there_while_their_objects_are() {
    let mut facts = Facts::default();
    facts.apply(local_queue("default", ""));
    facts.apply(object::<WorkloadPriorityClass>("WorkloadPriorityClass", "default", &Value::Null));
    assert!(facts.has_default_queue("team") && !facts.has_default_queue("other"));
    assert!(facts.has_default_priority_class());
    facts.reset::<LocalQueue>(vec![], &[namespaced("default")]);
    facts.reset::<WorkloadPriorityClass>(vec![], &[wide("default")]);
    assert_eq!(facts, Facts::default(), "nothing is left behind");
}

#[test]
fn labels_of_a_namespace_are_unknown_when_it_is() {
    let mut facts = Facts::default();
    assert_eq!(facts.labels_of("team"), None);
    facts.apply(object::<Namespace>("Namespace", "team", &json!({})));
    assert_eq!(facts.labels_of("team").map(|labels| labels["kueue"].as_str()), Some("yes"));
    facts.delete::<Namespace>(&wide("team"));
    assert_eq!(facts, Facts::default());
}

#[test]
fn the_picture_is_complete_when_every_kind_was_listed() {
    fn list<K: Fact>(known: &Known) -> bool {
        known.learn(Change::Reset::<K> { objects: vec![], removed: vec![] });
        known.complete()
    }
    let known = Known::default();
    known.learn(Change::Apply(local_queue("default", "q")));
    assert!(!known.complete(), "an object is not a list");
    assert!(!list::<LocalQueue>(&known));
    assert!(!list::<ClusterQueue>(&known));
    assert!(!list::<AdmissionCheck>(&known));
    assert!(!list::<Namespace>(&known));
    assert!(!list::<Namespace>(&known));
    assert!(list::<WorkloadPriorityClass>(&known));
    assert!(known.ask(|facts| facts.has_default_queue("team")));
}
