//! The fixture: cache, settings and a mock API server.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use ::jobs::Kinds;
use axum::body::Body;
use config::{Configuration, JobKinds, gates::Gates};
use crds::v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue, WorkloadPriorityClass};
use http::{Response, StatusCode, header::ACCEPT};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Client, client::Body as ClientBody};
use runtime::watch::Change;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{
    super::{JobSettings, JobWebhooks, router},
    review,
};
use crate::cache::{CachedKind, SharedWebhookCache};

/// A mock API server with objects by path, which records requests.
#[derive(Clone, Default)]
pub(super) struct MockApiServer {
    objects: Arc<Mutex<BTreeMap<String, Value>>>,
    requests: Arc<Mutex<Vec<String>>>,
    pub(super) silent: bool,
}

impl MockApiServer {
    pub(super) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request| server.clone().answer(request));
        Client::new(service, "default")
    }

    async fn answer(
        self,
        request: http::Request<ClientBody>,
    ) -> Result<Response<ClientBody>, std::io::Error> {
        let path = request.uri().path().to_owned();
        let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
        let partial = accept.is_some_and(|accept| accept.contains("as=PartialObjectMetadata"));
        let of = if partial { "metadata of " } else { "" };
        self.requests.lock().expect("the questions").push(format!("{of}{path}"));
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
        Ok(Response::builder().status(code).body(body).expect("a response"))
    }

    /// Adds an object.
    pub(super) fn put(&self, path: &str, object: Value) {
        self.objects.lock().expect("the objects").insert(path.to_owned(), object);
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("the questions").clone()
    }
}

/// Cache, settings and mock API server.
pub(super) struct Fixture {
    pub(super) cache: SharedWebhookCache,
    pub(super) server: MockApiServer,
    pub(super) config: String,
    pub(super) gates: &'static str,
}

fn list<K: CachedKind>(cache: &SharedWebhookCache, objects: &[Value]) {
    let object = |object: &Value| Arc::new(K::decode(object).expect("an object"));
    let objects = objects.iter().map(object).collect();
    cache.handle(Change::<K>::Reset { objects, removed: vec![] });
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    let version = if kind == "Namespace" { "v1" } else { "kueue.x-k8s.io/v1beta2" };
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "team"}, "spec": spec})
}

impl Fixture {
    /// Two LocalQueues, of which `far` dispatches.
    pub(super) fn new(config: &str) -> Self {
        let cache = SharedWebhookCache::default();
        let queue = |name: &str| object("LocalQueue", name, &json!({"clusterQueue": name}));
        list::<LocalQueue>(&cache, &[queue("far"), queue("near")]);
        let checks = json!({"admissionChecksStrategy": {"admissionChecks": [{"name": "off"}]}});
        let near = object("ClusterQueue", "near", &json!({}));
        list::<ClusterQueue>(&cache, &[object("ClusterQueue", "far", &checks), near]);
        let controller = json!({"controllerName": "kueue.x-k8s.io/multikueue"});
        list::<AdmissionCheck>(&cache, &[object("AdmissionCheck", "off", &controller)]);
        let mut namespace = object("Namespace", "team", &json!({}));
        namespace["metadata"]["labels"] = json!({"kubernetes.io/metadata.name": "team"});
        list::<Namespace>(&cache, &[namespace]);
        list::<WorkloadPriorityClass>(&cache, &[]);
        Self { cache, server: MockApiServer::default(), config: config.to_owned(), gates: "" }
    }

    pub(super) fn with_default_queue(self) -> Self {
        list::<LocalQueue>(&self.cache, &[object("LocalQueue", "default", &json!({}))]);
        self
    }

    pub(super) fn with_default_priority_class(self) -> Self {
        let class = object("WorkloadPriorityClass", "default", &Value::Null);
        list::<WorkloadPriorityClass>(&self.cache, &[class]);
        self
    }

    /// Adds a Job to the API server.
    pub(super) fn with_job(self, name: &str, labels: &Value) -> Self {
        let path = format!("/apis/batch/v1/namespaces/team/jobs/{name}");
        let metadata = json!({"name": name, "uid": name, "labels": labels});
        let job = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata});
        self.server.put(&path, job);
        self
    }

    /// Webhooks with these settings.
    pub(super) fn webhooks(&self) -> JobWebhooks {
        let head = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n";
        let config = Configuration::load(&format!("{head}{}", self.config), None).expect("valid");
        let kinds = JobKinds::configured(&config, &Gates::default(), &Kinds::default());
        let gates = Gates::parse(self.gates).expect("gates");
        let settings = JobSettings::new(&config, &gates, &kinds);
        JobWebhooks::new(settings, self.cache.clone(), self.server.client())
    }

    pub(super) async fn call(&self, path: &str, review: Value) -> Value {
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(Body::from(review.to_string()))
            .expect("a request");
        let response = router(self.webhooks()).oneshot(request).await.expect("a response");
        assert_eq!(response.status(), 200, "{path}");
        let bytes = response.into_body().collect().await.expect("a body").to_bytes();
        serde_json::from_slice::<Value>(&bytes).expect("JSON")["response"].clone()
    }

    /// The defaults of a new Job, as `path=value`; or the refusal.
    pub(super) async fn create(&self, job: &Value) -> Result<Vec<String>, Value> {
        let answer = self.call("/mutate-batch-v1-job", review("team", job, &Value::Null)).await;
        if answer["allowed"] != true {
            return Err(answer["status"].clone());
        }
        let Some(patch) = answer["patch"].as_str() else { return Ok(vec![]) };
        Ok(patch_steps(patch))
    }

    pub(super) async fn refusal(&self, new: &Value, old: &Value) -> Option<String> {
        let answer = self.call("/validate-batch-v1-job", review("team", new, old)).await;
        answer["status"]["message"].as_str().map(str::to_owned)
    }
}

/// The steps of an answered patch, as `path=value`.
fn patch_steps(patch: &str) -> Vec<String> {
    let patch: k8s_openapi::ByteString = serde_json::from_value(json!(patch)).expect("base64");
    let steps: Vec<Value> = serde_json::from_slice(&patch.0).expect("a patch");
    let text = |step: &Value| {
        let path = step["path"].as_str().expect("a path").replace("~1", "/");
        format!("{}={}", path.trim_start_matches("/metadata/labels/"), step["value"])
    };
    steps.iter().map(text).collect()
}

/// The same as one text.
pub(super) fn patch_text(patch: &str) -> String {
    patch_steps(patch).join(" ")
}
