//! The webhooks of Jobs as the API server calls them.

mod world;

use serde_json::{Value, json};

use super::*;
use crate::{config::Configuration, gates::Gates};
use world::{Server, World};

/// Webhooks for tests of others: they know nothing.
pub(in crate::webhooks) fn unused() -> JobWebhooks {
    let config = Configuration::without_file(None).expect("defaults");
    let settings = JobSettings::new(&config, &Gates::default());
    JobWebhooks::new(settings, SharedWebhookCache::default(), Server::default().client())
}

fn review(namespace: &str, object: &Value, old: &Value) -> Value {
    let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": operation, "namespace": namespace, "object": object, "oldObject": old,
        },
    })
}

fn job(queue: &str) -> Value {
    let labels = match queue {
        "" => json!({"app": "x"}),
        queue => json!({"kueue.x-k8s.io/queue-name": queue}),
    };
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "labels": labels}, "spec": {}})
}

fn owned(queue: &str, api_version: &str, kind: &str) -> Value {
    let mut job = job(queue);
    job["metadata"]["ownerReferences"] = json!([{
        "apiVersion": api_version, "kind": kind, "name": "own", "uid": "own", "controller": true,
    }]);
    job
}

const HELD: &str = "/spec/suspend=true";
const DISPATCHED: &str = "/spec/managedBy=\"kueue.x-k8s.io/multikueue\"";
const OWNER: &str = "metadata of /apis/batch/v1/namespaces/team/jobs/own";

#[tokio::test]
async fn a_job_that_names_a_queue_is_held_back_without_a_request() {
    let world = World::new("");
    assert_eq!(world.create(&job("near")).await, Ok(vec![HELD.to_owned()]));
    assert_eq!(world.create(&job("")).await, Ok(vec![]));
    assert_eq!(world.server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_job_whose_queue_leads_to_workers_is_theirs_to_run() {
    let mut world = World::new("");
    assert_eq!(world.create(&job("far")).await, Ok(vec![HELD.to_owned(), DISPATCHED.to_owned()]));
    world.gates = "MultiKueue=false";
    assert_eq!(world.create(&job("far")).await, Ok(vec![HELD.to_owned()]));
}

#[tokio::test]
async fn defaults_are_given_where_they_exist() {
    let world = World::new("").with_default_queue().with_default_priority_class();
    let expected = [
        "kueue.x-k8s.io/queue-name=\"default\"",
        "kueue.x-k8s.io/priority-class=\"default\"",
        HELD,
    ];
    assert_eq!(world.create(&job("")).await, Ok(expected.map(str::to_owned).to_vec()));
    let child = owned("", "batch/v1", "Job");
    assert_eq!(world.create(&child).await, Ok(vec![]), "its owner is of a managed kind");
}

#[tokio::test]
async fn jobs_without_a_queue_are_held_in_namespaces_that_are_managed() {
    let world = World::new("manageJobsWithoutQueueName: true");
    assert_eq!(world.create(&job("")).await, Ok(vec![HELD.to_owned()]));
    let selector = "managedJobsNamespaceSelector: {matchLabels: {kueue: 'yes'}}\n";
    let world = World::new(&format!("{selector}manageJobsWithoutQueueName: true"));
    assert_eq!(world.create(&job("")).await, Ok(vec![]));
    assert_eq!(world.create(&job("near")).await, Ok(vec![HELD.to_owned()]));
}

#[tokio::test]
async fn a_namespace_younger_than_the_watch_is_read() {
    let world = World::new("manageJobsWithoutQueueName: true");
    let ask = || world.ask("/mutate-batch-v1-job", review("young", &job(""), &Value::Null));
    let status = ask().await["status"].clone();
    assert_eq!((&status["code"], &status["reason"]), (&json!(404), &json!("NotFound")));
    assert_eq!(status["message"], "Namespace \"young\" not found");
    let path = "/api/v1/namespaces/young".to_owned();
    let young = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "young"},
    });
    world.server.put(&path, young);
    assert!(ask().await["patch"].is_string());
    assert_eq!(world.server.asked(), vec![format!("metadata of {path}"); 2]);
}

#[tokio::test]
async fn a_queue_younger_than_the_watch_is_read_and_where_it_leads() {
    let world = World::new("");
    let local = "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/localqueues/young";
    let queue = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/young";
    let check = "/apis/kueue.x-k8s.io/v1beta2/admissionchecks/young";
    let object =
        |spec: Value| json!({"metadata": {"name": "young", "namespace": "team"}, "spec": spec});
    let held = Ok(vec![HELD.to_owned()]);
    assert_eq!(world.create(&job("young")).await, held, "a queue may come later");
    world.server.put(local, object(json!({"clusterQueue": "young"})));
    assert_eq!(world.create(&job("young")).await, held);
    let checks = json!([{"name": "lost"}, {"name": "young"}]);
    let checks = json!({"admissionChecksStrategy": {"admissionChecks": checks}});
    world.server.put(queue, object(checks));
    assert_eq!(world.create(&job("young")).await, held);
    world.server.put(check, object(json!({"controllerName": "kueue.x-k8s.io/multikueue"})));
    let dispatched = Ok(vec![HELD.to_owned(), DISPATCHED.to_owned()]);
    assert_eq!(world.create(&job("young")).await, dispatched);
    let lost = "/apis/kueue.x-k8s.io/v1beta2/admissionchecks/lost";
    let asked =
        [&[local][..], &[local, queue], &[local, queue, lost, check], &[local, queue, lost, check]];
    assert_eq!(world.server.asked(), asked.concat());
}

#[tokio::test]
async fn a_job_with_a_managed_owner_starts_with_that() {
    let child = owned("near", "batch/v1", "Job");
    let world = World::new("").with_job("own", &json!({"kueue.x-k8s.io/queue-name": "near"}));
    assert_eq!(world.create(&child).await, Ok(vec![]));
    assert_eq!(world.server.asked(), [OWNER]);
    let world = World::new("").with_job("own", &json!({}));
    assert_eq!(world.create(&child).await, Ok(vec![HELD.to_owned()]));
    let world = World::new("manageJobsWithoutQueueName: true").with_job("own", &json!({}));
    assert_eq!(world.create(&child).await, Ok(vec![]));
}

#[tokio::test]
async fn owners_are_read_only_where_it_matters() {
    let world = World::new("");
    let widget = owned("near", "example.com/v1", "Widget");
    assert_eq!(world.create(&widget).await, Ok(vec![HELD.to_owned()]));
    assert_eq!(world.create(&owned("", "batch/v1", "Job")).await, Ok(vec![]));
    let mut held = owned("near", "batch/v1", "Job");
    held["spec"]["suspend"] = json!(true);
    assert_eq!(world.create(&held).await, Ok(vec![]));
    assert_eq!(world.server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn an_owner_that_does_not_exist_is_named() {
    let world = World::new("");
    let refused = world.create(&owned("near", "batch/v1", "Job")).await;
    let details = json!({"name": "own", "group": "batch", "kind": "Job"});
    let status = json!({
        "code": 404, "reason": "NotFound", "message": "Job.batch \"own\" not found", "details": details,
    });
    assert_eq!(refused, Err(status));
}

#[tokio::test]
async fn the_resource_of_a_kind_of_others_is_asked_for_once() {
    let world = World::new("integrations: {externalFrameworks: [Flow.v1.example.com]}");
    let resources = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1",
        "resources": [{
            "name": "flows", "singularName": "flow", "namespaced": true, "kind": "Flow", "verbs": ["get"],
        }],
    });
    let flow = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": {"name": "own", "uid": "own", "labels": {"kueue.x-k8s.io/queue-name": "near"}},
    });
    let path = "/apis/example.com/v1/namespaces/team/flows/own";
    world.server.put("/apis/example.com/v1", resources);
    world.server.put(path, flow);
    let webhooks = world.webhooks();
    let child = owned("near", "example.com/v1", "Flow");
    let job: Job = serde_json::from_value(child).expect("a Job");
    for _ in 0..2 {
        let around = surroundings::gather(&webhooks, &job, "team").await.expect("cache");
        assert!(around.ancestor_managed && around.owner_managed);
    }
    let path = format!("metadata of {path}");
    assert_eq!(world.server.asked(), ["/apis/example.com/v1", &path, &path]);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_is_waited_for_only_so_long() {
    let mut world = World::new("");
    world.server.silent = true;
    let refused = world.create(&owned("near", "batch/v1", "Job")).await.expect_err("refused");
    assert_eq!((&refused["code"], &refused["reason"]), (&json!(504), &json!("Timeout")));
}

#[tokio::test]
async fn nothing_is_defaulted_before_everything_was_listed() {
    let mut world = World::new("");
    world.cache = SharedWebhookCache::default();
    let refused = world.create(&job("near")).await.expect_err("refused");
    assert_eq!(refused["code"], 503);
}

#[tokio::test]
async fn a_bad_job_is_refused_with_the_field() {
    let world = World::new("").with_default_queue();
    let mut bad = job("near");
    bad["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = json!("0");
    let text = world.refusal(&bad, &Value::Null).await.expect("refused");
    assert!(text.starts_with("metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]: "), "{text}");
    assert_eq!(world.refusal(&job("near"), &Value::Null).await, None);
    let mut before = job("near");
    before["spec"]["suspend"] = json!(true);
    let mut after = job("");
    after["spec"]["suspend"] = json!(true);
    let text = world.refusal(&after, &before).await.expect("refused");
    assert!(
        text.ends_with("queue-name must not be empty in namespace with default queue"),
        "{text}"
    );
    assert_eq!(World::new("").refusal(&after, &before).await, None);
}

#[tokio::test]
async fn kinds_without_webhooks_are_allowed_as_they_are() {
    let world = World::new("integrations: {frameworks: [pod]}");
    for framework in INTEGRATIONS {
        for verb in ["mutate", "validate"] {
            let path = framework.webhook_path(verb);
            let answer = world.ask(&path, review("team", &json!("no object"), &Value::Null)).await;
            assert_eq!(answer, json!({"uid": "u", "allowed": true}), "{path}");
        }
    }
}
