//! The webhooks of Jobs as the API server calls them, against facts and an API server that is played.

use std::{collections::BTreeMap, sync::Mutex};

use axum::body::Body;
use crds::v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue, WorkloadPriorityClass};
use http::{Response as Answer, StatusCode, header::ACCEPT};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::client::Body as ClientBody;
use runtime::watch::Change;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;
use crate::{config::Configuration, facts::Fact, gates::Gates};

/// An API server that has these objects, by path, and notes what it is asked for.
#[derive(Clone, Default)]
struct Server {
    objects: Arc<Mutex<BTreeMap<String, Value>>>,
    asked: Arc<Mutex<Vec<String>>>,
    silent: bool,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request| server.clone().answer(request));
        Client::new(service, "default")
    }

    async fn answer(
        self,
        request: http::Request<ClientBody>,
    ) -> Result<Answer<ClientBody>, std::io::Error> {
        let path = request.uri().path().to_owned();
        let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
        let partial = accept.is_some_and(|accept| accept.contains("as=PartialObjectMetadata"));
        let of = if partial { "metadata of " } else { "" };
        self.asked.lock().expect("the questions").push(format!("{of}{path}"));
        if self.silent {
            return std::future::pending().await;
        }
        let found = self.objects.lock().expect("the objects").get(&path).cloned();
        let (code, body) = match found {
            Some(object) => (StatusCode::OK, object),
            None => {
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                    "reason": "NotFound", "message": "not found",
                });
                (StatusCode::NOT_FOUND, status)
            }
        };
        let body = ClientBody::from(body.to_string().into_bytes());
        Ok(Answer::builder().status(code).body(body).expect("a response"))
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("the questions").clone()
    }
}

/// Facts, settings and an API server.
struct World {
    known: Known,
    server: Server,
    config: String,
    gates: &'static str,
}

fn list<K: Fact>(known: &Known, objects: &[Value]) {
    let object = |object: &Value| serde_json::from_value(object.clone()).expect("an object");
    let objects = objects.iter().map(object).collect();
    known.learn(Change::Reset::<K> { objects, removed: vec![] });
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    let version = if kind == "Namespace" { "v1" } else { "kueue.x-k8s.io/v1beta2" };
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "team"}, "spec": spec})
}

impl World {
    /// Two queues, of which `far` leads to workers.
    fn new(config: &str) -> Self {
        let known = Known::default();
        let queue = |name: &str| object("LocalQueue", name, &json!({"clusterQueue": name}));
        list::<LocalQueue>(&known, &[queue("far"), queue("near")]);
        let checks = json!({"admissionChecksStrategy": {"admissionChecks": [{"name": "off"}]}});
        let near = object("ClusterQueue", "near", &json!({}));
        list::<ClusterQueue>(&known, &[object("ClusterQueue", "far", &checks), near]);
        let controller = json!({"controllerName": "kueue.x-k8s.io/multikueue"});
        list::<AdmissionCheck>(&known, &[object("AdmissionCheck", "off", &controller)]);
        let mut namespace = object("Namespace", "team", &json!({}));
        namespace["metadata"]["labels"] = json!({"kubernetes.io/metadata.name": "team"});
        list::<Namespace>(&known, &[namespace]);
        list::<WorkloadPriorityClass>(&known, &[]);
        Self { known, server: Server::default(), config: config.to_owned(), gates: "" }
    }

    fn with_default_queue(self) -> Self {
        list::<LocalQueue>(&self.known, &[object("LocalQueue", "default", &json!({}))]);
        self
    }

    fn with_default_priority_class(self) -> Self {
        let class = object("WorkloadPriorityClass", "default", &Value::Null);
        list::<WorkloadPriorityClass>(&self.known, &[class]);
        self
    }

    /// A Job that the API server has.
    fn with_job(self, name: &str, labels: &Value) -> Self {
        let path = format!("/apis/batch/v1/namespaces/team/jobs/{name}");
        let metadata = json!({"name": name, "uid": name, "labels": labels});
        let job = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata});
        self.server.objects.lock().expect("the objects").insert(path, job);
        self
    }

    async fn ask(&self, path: &str, review: Value) -> Value {
        let head = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n";
        let config = Configuration::load(&format!("{head}{}", self.config), None).expect("valid");
        let gates = Gates::parse(self.gates).expect("gates");
        let settings = JobSettings::new(&config, &gates);
        let webhooks = JobWebhooks::new(settings, self.known.clone(), self.server.client());
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(Body::from(review.to_string()))
            .expect("a request");
        let response = router(webhooks).oneshot(request).await.expect("a response");
        assert_eq!(response.status(), 200, "{path}");
        let bytes = response.into_body().collect().await.expect("a body").to_bytes();
        serde_json::from_slice::<Value>(&bytes).expect("JSON")["response"].clone()
    }

    /// What a new Job gets, as `path=value`; or the refusal.
    async fn create(&self, job: &Value) -> Result<Vec<String>, Value> {
        let answer = self.ask("/mutate-batch-v1-job", review("team", job, &Value::Null)).await;
        if answer["allowed"] != true {
            return Err(answer["status"].clone());
        }
        let Some(patch) = answer["patch"].as_str() else { return Ok(vec![]) };
        let patch: k8s_openapi::ByteString = serde_json::from_value(json!(patch)).expect("base64");
        let steps: Vec<Value> = serde_json::from_slice(&patch.0).expect("a patch");
        let text = |step: &Value| {
            let path = step["path"].as_str().expect("a path").replace("~1", "/");
            format!("{}={}", path.trim_start_matches("/metadata/labels/"), step["value"])
        };
        Ok(steps.iter().map(text).collect())
    }

    async fn refusal(&self, new: &Value, old: &Value) -> Option<String> {
        let answer = self.ask("/validate-batch-v1-job", review("team", new, old)).await;
        answer["status"]["message"].as_str().map(str::to_owned)
    }
}

/// Webhooks for tests of others: they know nothing.
pub(in crate::webhooks) fn unused() -> JobWebhooks {
    let config = Configuration::without_file(None).expect("defaults");
    let settings = JobSettings::new(&config, &Gates::default());
    JobWebhooks::new(settings, Known::default(), Server::default().client())
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
    world.server.objects.lock().expect("the objects").insert(path.clone(), young);
    assert!(ask().await["patch"].is_string());
    assert_eq!(world.server.asked(), vec![format!("metadata of {path}"); 2]);
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
    let mut objects = world.server.objects.lock().expect("the objects");
    objects.insert("/apis/example.com/v1".to_owned(), resources);
    objects.insert(path.to_owned(), flow);
    drop(objects);
    let child = owned("near", "example.com/v1", "Flow");
    let config = Configuration::load(
        &format!(
            "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{}",
            world.config
        ),
        None,
    );
    let settings = JobSettings::new(&config.expect("valid"), &Gates::default());
    let webhooks = JobWebhooks::new(settings, world.known.clone(), world.server.client());
    let job: Job = serde_json::from_value(child).expect("a Job");
    for _ in 0..2 {
        let around = surroundings::gather(&webhooks, &job, "team").await.expect("known");
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
    world.known = Known::default();
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
    for framework in FRAMEWORKS {
        for verb in ["mutate", "validate"] {
            let path = framework.webhook_path(verb);
            let answer = world.ask(&path, review("team", &json!("no object"), &Value::Null)).await;
            assert_eq!(answer, json!({"uid": "u", "allowed": true}), "{path}");
        }
    }
}
