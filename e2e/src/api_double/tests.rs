use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, WatchEvent, WatchParams},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::*;

const RESOURCE: &str = "/configmaps";

fn map(name: &str, labels: &Value) -> ConfigMap {
    let metadata = json!({"name": name, "namespace": "ns", "labels": labels});
    serde_json::from_value(json!({"metadata": metadata})).expect("an object")
}

async fn client(double: &ApiDouble, cluster: &str) -> Client {
    kubeconfig::client(double.kubeconfig(cluster)).await.expect("a client")
}

#[tokio::test]
async fn objects_of_one_cluster_are_written_listed_and_deleted() {
    let double = ApiDouble::start().await.expect("a double");
    let (east, west) = (double.add("east", &[]), double.add("west", &["batch/jobs"]));
    let maps: Api<ConfigMap> = Api::namespaced(client(&double, "east").await, "ns");
    let created = maps.create(&PostParams::default(), &map("a", &json!({"l": "v"}))).await;
    let created = created.expect("created").metadata;
    assert!(maps.create(&PostParams::default(), &map("a", &json!({}))).await.is_err(), "twice");
    maps.create(&PostParams::default(), &map("b", &json!({}))).await.expect("created");
    let labelled = kube::api::ListParams::default().labels("l=v");
    let listed = maps.list(&labelled).await.expect("a list").items;
    assert_eq!(listed.len(), 1);
    assert_eq!(maps.list_metadata(&labelled).await.expect("a list").items[0].metadata, created);

    let patch = json!({"metadata": {"resourceVersion": "999"}, "data": {"x": "y"}});
    let patch = Patch::Merge(patch);
    let refused = maps.patch("a", &PatchParams::default(), &patch).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 409));
    let preconditions = Preconditions { uid: created.uid, ..Preconditions::default() };
    let delete = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    maps.delete("a", &delete).await.expect("deleted");
    assert!(east.get(RESOURCE, "ns/a").is_none() && east.get(RESOURCE, "ns/b").is_some());
    assert!(west.get(RESOURCE, "ns/b").is_none());
    let maps: Api<ConfigMap> = Api::namespaced(client(&double, "west").await, "ns");
    let refused = maps.list(&labelled).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 404));
}

#[tokio::test]
async fn a_watch_repeats_the_changes_after_its_version() {
    let double = ApiDouble::start().await.expect("a double");
    let east = double.add("east", &[]);
    let object = |name: &str| serde_json::to_value(map(name, &json!({"l": "v"}))).expect("JSON");
    let first = east.create(RESOURCE, object("a")).expect("created");
    let first: Value = serde_json::from_slice(&first).expect("JSON");
    let version = first["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    east.create(RESOURCE, object("b")).expect("created");
    let maps: Api<ConfigMap> = Api::all(client(&double, "east").await);
    let params = WatchParams::default().labels("l=v").timeout(60);
    let mut events = Box::pin(maps.watch(&params, &version).await.expect("a watch"));
    let next = timeout(Duration::from_secs(10), events.next()).await.expect("in time");
    let Some(Ok(WatchEvent::Added(found))) = next else { panic!("{next:?}") };
    assert_eq!(found.metadata.name.as_deref(), Some("b"));
    assert_eq!(east.open_watches(RESOURCE), 1);
    east.merge(RESOURCE, "ns/b", json!({"data": {"x": "y"}})).expect("merged");
    let next = timeout(Duration::from_secs(10), events.next()).await.expect("in time");
    assert!(matches!(next, Some(Ok(WatchEvent::Modified(_)))), "{next:?}");
}

#[tokio::test]
async fn what_has_a_finalizer_is_marked_and_goes_with_it() {
    let east = Arc::new(DoubleCluster::new("east", &[]));
    let metadata = json!({"name": "a", "namespace": "ns", "finalizers": ["f"]});
    let mut follow = east.follow(RESOURCE);
    east.create(RESOURCE, json!({ "metadata": metadata })).expect("created");
    east.delete(RESOURCE, "ns/a", &Value::Null).expect("marked");
    let marked = east.get(RESOURCE, "ns/a").expect("it stays");
    assert!(!marked["metadata"]["deletionTimestamp"].is_null());
    east.merge(RESOURCE, "ns/a", json!({"metadata": {"finalizers": null}})).expect("merged");
    assert!(east.get(RESOURCE, "ns/a").is_none());
    let changes = follow.next().await.expect("changes");
    let seen: Vec<bool> = changes.iter().map(|(_, object)| object.is_some()).collect();
    assert_eq!(seen, [true, true, false]);
}

/// Watches report an absent kind only if discovery lacks it.
#[tokio::test]
async fn discovery_lists_what_a_cluster_serves() {
    let double = ApiDouble::start().await.expect("a double");
    let _west = double.add("west", &["batch/jobs", "/namespaces"]);
    let client = client(&double, "west").await;
    let path = |path: &str| http::Request::get(path).body(Vec::new()).expect("a request");
    for (of, expected) in
        [("apis/batch/v1", json!([{"name": "jobs"}])), ("apis/apps/v1", json!([]))]
    {
        let found: Value = client.request(path(&format!("/{of}"))).await.expect("a list");
        assert_eq!(found["resources"], expected);
        assert_eq!(found["groupVersion"], of.trim_start_matches("apis/"));
    }
    let core: Value = client.request(path("/api/v1")).await.expect("a list");
    assert_eq!(core["resources"], json!([{"name": "namespaces"}]));
    let jobs: Value = client.request(path("/apis/batch/v1/jobs")).await.expect("a list");
    assert_eq!(jobs["kind"], "List");
}
