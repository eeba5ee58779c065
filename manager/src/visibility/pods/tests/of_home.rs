//! Workloads of the manager cluster: what belongs to them, and a cluster that hangs, refuses or sends without an end.

use http_body_util::BodyExt;
use runtime::Stop;
use serde_json::{Value, json};

use super::{
    super::log_stream::SILENCE,
    played::{PODS, PlayedCluster, PlayedLog, ask, refusal, text},
};

/// A cluster that runs a Workload with the pods `a` and `b`, beside a pod that copies their labels.
fn cluster() -> PlayedCluster {
    let cluster = PlayedCluster::default();
    let admitted = json!({"type": "Admitted", "status": "True", "reason": "R", "message": "",
                          "lastTransitionTime": "2026-01-01T00:00:00Z"});
    cluster.set_workload(&json!({}), &json!({"conditions": [admitted]}));
    cluster.set_pods(&[("b", "job"), ("a", "job"), ("thief", "another")]);
    cluster
}

#[tokio::test]
async fn the_pods_of_a_workload_are_listed_and_others_are_not() {
    let api = cluster().api(&Stop::new());
    let list = text(ask(&api, "pods").await).await.expect("a list");
    let list: Value = serde_json::from_str(&list).expect("JSON");
    let names: Vec<&Value> =
        list["items"].as_array().into_iter().flatten().map(|one| &one["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(list["cluster"], "");
    assert!(list["incomplete"].is_null(), "{list}");
}

#[tokio::test]
async fn the_log_of_a_pod_is_passed_on_with_the_wishes_of_the_caller() {
    let cluster = cluster();
    let api = cluster.api(&Stop::new());
    let response = ask(&api, "log?pod=a&container=main&tailLines=5").await;
    assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(text(response).await.as_deref(), Some("a line\n"));
    assert_eq!(cluster.logs_read(), [format!("{PODS}/a/log?container=main&tailLines=5")]);
}

#[tokio::test]
async fn no_log_of_another_pod_is_read() {
    let cluster = cluster();
    let api = cluster.api(&Stop::new());
    for pod in ["thief", "absent"] {
        let expected = format!("Workload \"w\" has no pod {pod:?} on the manager cluster");
        let refused = refusal(ask(&api, &format!("log?pod={pod}")).await).await;
        assert_eq!(refused, (404, expected));
    }
    let several = refusal(ask(&api, "log").await).await;
    assert_eq!(several, (400, "Workload \"w\" has 2 pods, and pod= names none: a, b".to_owned()));
    assert!(cluster.logs_read().is_empty());
    cluster.set_pods(&[("thief", "another")]);
    let none = refusal(ask(&api, "log").await).await;
    assert_eq!(none, (404, "Workload \"w\" has no pods on the manager cluster".to_owned()));
    cluster.set_pods(&[("only", "job"), ("thief", "another")]);
    assert_eq!(text(ask(&api, "log").await).await.as_deref(), Some("a line\n"));
}

#[tokio::test]
async fn a_pod_is_found_by_the_owners_of_its_owners() {
    let cluster = cluster();
    let api = cluster.api(&Stop::new());
    let path = "/apis/batch/v1/namespaces/ml/jobs/of-another";
    let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job",
                       "controller": true});
    let job = |uid: &str| json!({"metadata": {"uid": uid, "ownerReferences": [owner]}});
    cluster.set(path, job("another"));
    assert_eq!(text(ask(&api, "log?pod=thief").await).await.as_deref(), Some("a line\n"));
    // Another Job of the name is not the owner.
    cluster.set(path, job("recreated"));
    assert_eq!(ask(&api, "log?pod=thief").await.status(), 404);
}

#[tokio::test]
async fn a_pod_that_another_one_of_its_name_replaced_is_not_read() {
    let cluster = cluster();
    let api = cluster.api(&Stop::new());
    cluster.set_log(PlayedLog::Endless);
    let response = ask(&api, "log?pod=a&follow=true").await;
    assert_eq!(response.status(), 200);
    drop(response);
    cluster.until_open(0).await;
    // Between the search and the log: the list has the former pod.
    let replaced = json!({"metadata": {"name": "a", "uid": "another"}});
    cluster.set_pods(&[("a", "job")]);
    cluster.set(format!("{PODS}/a"), replaced);
    assert_eq!(ask(&api, "log").await.status(), 404);
    cluster.until_open(0).await;
}

#[tokio::test]
async fn a_missing_right_names_its_role() {
    let cluster = cluster();
    let api = cluster.api(&Stop::new());
    cluster.forbid(&format!("{PODS}/a/log"));
    let (code, message) = refusal(ask(&api, "log?pod=a").await).await;
    let begin = "the account of the manager may not get pods/log on the manager cluster: see the ClusterRole sluice-logs";
    assert!(code == 502 && message.starts_with(begin), "{code} {message}");
    cluster.forbid(PODS);
    let (code, message) = refusal(ask(&api, "pods").await).await;
    assert!(code == 502 && message.contains("may not list pods"), "{code} {message}");
}

#[tokio::test]
async fn owners_that_cannot_be_read_hide_their_own_pods_only() {
    let cluster = cluster();
    let api = cluster.api(&Stop::new());
    // The pod names the Workload, so the list may lack one of its pods.
    cluster.forbid("/apis/batch/v1/namespaces/ml/jobs/of-another");
    let list = text(ask(&api, "pods").await).await.expect("a list");
    let list: Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2));
    let incomplete = list["incomplete"].as_str().unwrap_or_default();
    assert!(incomplete.contains("may not get Job"), "{list}");
    let (code, message) = refusal(ask(&api, "log?pod=thief").await).await;
    assert!(code == 502 && message.contains("may not get Job"), "{code} {message}");
    assert_eq!(ask(&api, "log?pod=a").await.status(), 200);
    // One of another operator does not.
    let mut other: Value = cluster.object(&format!("{PODS}/thief"));
    other["metadata"]["annotations"] = json!({});
    let own: Value = cluster.object(&format!("{PODS}/a"));
    cluster.set(PODS, json!({"metadata": {}, "items": [own, other]}));
    let list = text(ask(&api, "pods").await).await.expect("a list");
    assert!(list.contains(r#""name":"a""#) && !list.contains("incomplete"), "{list}");
}

#[tokio::test]
async fn the_cluster_says_why_a_container_has_no_log() {
    let cluster = cluster();
    cluster.set_log(PlayedLog::Refused);
    let api = cluster.api(&Stop::new());
    let expected = "the manager cluster: container \"main\" is waiting to start".to_owned();
    assert_eq!(refusal(ask(&api, "log?pod=a").await).await, (400, expected));
    cluster.set_log(PlayedLog::Unreached);
    let expected = "the manager cluster: dial tcp: connection refused".to_owned();
    assert_eq!(refusal(ask(&api, "log?pod=a").await).await, (502, expected));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_answer_is_late() {
    let cluster = cluster();
    let api = cluster.api(&Stop::new());
    cluster.set_log(PlayedLog::Silent);
    let late = (504, "the manager cluster has not answered in time".to_owned());
    assert_eq!(refusal(ask(&api, "log?pod=a").await).await, late);
    cluster.hang(&format!("{PODS}/a"));
    assert_eq!(refusal(ask(&api, "log?pod=a").await).await, late);
    cluster.hang(PODS);
    assert_eq!(refusal(ask(&api, "pods").await).await, late);
    // One that hangs while a log is followed is noticed, though the log may be silent.
    let followed = ask(&api, "log?pod=b&follow=true").await;
    assert_eq!(followed.status(), 200);
    cluster.hang(&format!("{PODS}/b"));
    assert_eq!(text(followed).await, None);
}

#[tokio::test]
async fn a_huge_log_is_passed_on_as_it_is_taken() {
    let cluster = cluster();
    let api = cluster.api(&Stop::new());
    cluster.set_log(PlayedLog::Huge(96));
    let mut body = ask(&api, "log?pod=a").await.into_body();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        length += frame.expect("no end").data_ref().map_or(0, axum::body::Bytes::len);
    }
    assert_eq!(length, 96 << 20);
}

#[tokio::test]
async fn the_end_of_the_caller_ends_the_request() {
    let cluster = cluster();
    cluster.set_log(PlayedLog::Endless);
    let api = cluster.api(&Stop::new());
    let response = ask(&api, "log?pod=a&follow=true").await;
    cluster.until_open(1).await;
    drop(response);
    cluster.until_open(0).await;
}

#[tokio::test]
async fn the_end_of_the_manager_cuts_logs_off() {
    let cluster = cluster();
    cluster.set_log(PlayedLog::Endless);
    let stop = Stop::new();
    let response = ask(&cluster.api(&stop), "log?pod=a&follow=true").await;
    stop.cancel();
    assert_eq!(text(response).await, None);
    cluster.until_open(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_log_lasts_while_its_pod_does() {
    let cluster = cluster();
    let api = cluster.api(&Stop::new());
    cluster.set_log(PlayedLog::Endless);
    assert_eq!(text(ask(&api, "log?pod=a").await).await, None, "it is not followed");
    for log in [PlayedLog::Endless, PlayedLog::Silent] {
        cluster.set_log(log);
        cluster.set_pods(&[("a", "job")]);
        let read = tokio::spawn(text(ask(&api, "log?pod=a&follow=true").await));
        tokio::time::sleep(10 * SILENCE).await;
        assert!(!read.is_finished(), "{log:?}");
        cluster.remove(&format!("{PODS}/a"));
        let read = tokio::time::timeout(2 * SILENCE, read).await.expect("an end");
        assert_eq!(read.expect("no panic"), None, "{log:?}");
    }
}

#[tokio::test]
async fn a_workload_that_nothing_runs_says_what_it_waits_for() {
    let cluster = cluster();
    let api = cluster.api(&Stop::new());
    cluster.set_workload(&json!({}), &json!({}));
    let pending = (409, "Workload \"w\" has no pods yet: it is pending".to_owned());
    assert_eq!(refusal(ask(&api, "log?pod=a").await).await, pending);
    cluster.remove(&format!("{}/w", super::played::WORKLOADS));
    let unknown = (404, "workloads.kueue.x-k8s.io \"w\" not found".to_owned());
    assert_eq!(refusal(ask(&api, "pods").await).await, unknown);
}
