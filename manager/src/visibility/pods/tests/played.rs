//! A cluster that answers by path.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::Arc,
};

use axum::body::{Body, Bytes};
use futures::{StreamExt, stream};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use parking_lot::Mutex;
use remote::{KubeconfigDirectory, WorkerClients};
use runtime::{Stop, request_metrics::RequestMetrics};
use serde_json::{Value, json};
use tokio::sync::watch;
use visibility::workload_pods::{LogQuery, WorkloadCall};

use super::super::{PodsMetrics, WorkloadPodsApi};

/// Where Workloads of the tests are.
pub(super) const WORKLOADS: &str = "/apis/kueue.x-k8s.io/v1beta2/namespaces/ml/workloads";

/// Where pods of the tests are.
pub(super) const PODS: &str = "/api/v1/namespaces/ml/pods";

/// What the log of a pod is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum PlayedLog {
    /// One line.
    #[default]
    Line,
    /// Parts of a mebibyte, so many.
    Huge(usize),
    /// One line, and no end.
    Endless,
    /// It never begins.
    Silent,
    /// Status 400.
    Refused,
    /// Status 500: the kubelet is not reached.
    Unreached,
}

/// A cluster that answers by path. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct PlayedCluster(Arc<PlayedState>);

#[derive(Default)]
struct PlayedState {
    objects: Mutex<BTreeMap<String, Value>>,
    forbidden: Mutex<BTreeSet<String>>,
    hung: Mutex<BTreeSet<String>>,
    log: Mutex<PlayedLog>,
    /// The requests.
    targets: watch::Sender<Vec<String>>,
    /// Logs that are being read.
    open: watch::Sender<usize>,
}

/// A log that is being read.
struct OpenLog(Arc<PlayedState>);

impl Drop for OpenLog {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| *open -= 1);
    }
}

impl PlayedCluster {
    pub(super) fn set(&self, path: impl Into<String>, object: Value) {
        self.0.objects.lock().insert(path.into(), object);
    }

    pub(super) fn object(&self, path: &str) -> Value {
        self.0.objects.lock().get(path).cloned().unwrap_or_default()
    }

    pub(super) fn remove(&self, path: &str) {
        self.0.objects.lock().remove(path);
    }

    pub(super) fn forbid(&self, path: &str) {
        self.0.forbidden.lock().insert(path.to_owned());
    }

    /// No request for this path is answered.
    pub(super) fn hang(&self, path: &str) {
        self.0.hung.lock().insert(path.to_owned());
    }

    pub(super) fn set_log(&self, log: PlayedLog) {
        *self.0.log.lock() = log;
    }

    /// The requests for logs.
    pub(super) fn logs_read(&self) -> Vec<String> {
        let targets = self.0.targets.borrow();
        targets.iter().filter(|target| target.contains("/log")).cloned().collect()
    }

    /// Waits until so many requests have come.
    pub(super) async fn until_asked(&self, count: usize) {
        let mut targets = self.0.targets.subscribe();
        targets.wait_for(|targets| targets.len() == count).await.expect("the cluster is there");
    }

    /// Waits until so many logs are being read.
    pub(super) async fn until_open(&self, count: usize) {
        let mut open = self.0.open.subscribe();
        open.wait_for(|open| *open == count).await.expect("the cluster is there");
    }

    /// A Workload with this status, owned by the Job with the uid `job`.
    pub(super) fn set_workload(&self, metadata: &Value, status: &Value) {
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job"});
        let mut workload = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "spec": {},
            "metadata": {"name": "w", "namespace": "ml", "uid": "u", "ownerReferences": [owner]},
            "status": status,
        });
        for (field, value) in metadata.as_object().into_iter().flatten() {
            workload["metadata"][field] = value.clone();
        }
        self.set(format!("{WORKLOADS}/w"), workload);
    }

    /// Pods, each with the uid of its controller, and their list.
    pub(super) fn set_pods(&self, pods: &[(&str, &str)]) {
        let labels = json!({
            "kueue.x-k8s.io/podset": "main", "kueue.x-k8s.io/multikueue-worker-workload-pod": "true",
        });
        let pod = |(name, owner): &(&str, &str)| {
            let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": format!("of-{owner}"),
                               "uid": owner, "controller": true});
            json!({
                "metadata": {
                    "name": name, "uid": format!("uid-of-{name}"), "labels": labels,
                    "annotations": {"kueue.x-k8s.io/workload": "w"}, "ownerReferences": [owner],
                },
                "spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Running"},
            })
        };
        let pods: Vec<Value> = pods.iter().map(pod).collect();
        for pod in &pods {
            let name = pod["metadata"]["name"].as_str().expect("a name");
            self.set(format!("{PODS}/{name}"), pod.clone());
        }
        self.set(PODS, json!({"metadata": {}, "items": pods}));
    }

    pub(super) async fn answer(&self, target: &str) -> Response<Body> {
        let path = target.split('?').next().unwrap_or_default();
        self.0.targets.send_modify(|targets| targets.push(target.to_owned()));
        if self.0.hung.lock().contains(path) {
            return std::future::pending().await;
        }
        if self.0.forbidden.lock().contains(path) {
            return coded(StatusCode::FORBIDDEN, "no role allows it");
        }
        if path.ends_with("/log") {
            return self.log().await;
        }
        match self.0.objects.lock().get(path) {
            Some(object) => Response::new(Body::from(object.to_string())),
            None => coded(StatusCode::NOT_FOUND, "not found"),
        }
    }

    async fn log(&self) -> Response<Body> {
        let log = *self.0.log.lock();
        self.0.open.send_modify(|open| *open += 1);
        let open = OpenLog(self.0.clone());
        let part = |bytes: Bytes| Ok::<_, Infallible>(bytes);
        let line = stream::iter([part(Bytes::from_static(b"a line\n"))]);
        let bytes = match log {
            PlayedLog::Line => line.boxed(),
            PlayedLog::Huge(parts) => {
                let mebibyte = Bytes::from(vec![b'x'; 1 << 20]);
                stream::iter((0..parts).map(move |_| part(mebibyte.clone()))).boxed()
            }
            PlayedLog::Endless => line.chain(stream::pending()).boxed(),
            PlayedLog::Silent => return std::future::pending().await,
            PlayedLog::Unreached => {
                let message = "dial tcp: connection refused";
                return coded(StatusCode::INTERNAL_SERVER_ERROR, message);
            }
            PlayedLog::Refused => {
                return coded(StatusCode::BAD_REQUEST, "container \"main\" is waiting to start");
            }
        };
        let held = bytes.map(move |part| {
            let _ = &open;
            part
        });
        Response::new(Body::from_stream(held))
    }

    /// A client without a network.
    pub(super) fn client(&self) -> Client {
        let this = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let this = this.clone();
            async move {
                let target = request.uri().path_and_query().map(ToString::to_string);
                Ok::<_, Infallible>(this.answer(&target.unwrap_or_default()).await)
            }
        });
        Client::new(service, "default")
    }

    /// The API of a manager with this manager cluster.
    pub(super) fn api(&self, stop: &Stop) -> WorkloadPodsApi {
        let (client, files) = (self.client(), KubeconfigDirectory::default());
        let workers = WorkerClients::new(client.clone(), "ns", files, RequestMetrics::default());
        let metrics = PodsMetrics::default();
        WorkloadPodsApi::new(&client, workers, "multikueue", metrics, stop.clone())
    }
}

fn coded(code: StatusCode, message: &str) -> Response<Body> {
    let status = json!({"kind": "Status", "code": code.as_u16(), "message": message});
    let mut response = Response::new(Body::from(status.to_string()));
    *response.status_mut() = code;
    response
}

/// Asks for `pods`, or `log?…`, of the Workload.
pub(super) async fn ask(api: &WorkloadPodsApi, what: &str) -> Response<Body> {
    let (part, query) = what.split_once('?').unwrap_or((what, ""));
    let path = format!("/apis/visibility.sluice.dev/v1alpha1/namespaces/ml/workloads/w/{part}");
    let call = WorkloadCall::of(&path).expect("a path");
    api.serve(&call, &LogQuery::of(query).expect("a query")).await
}

/// The whole body; `None` if it was cut off.
pub(super) async fn text(response: Response<Body>) -> Option<String> {
    let body = response.into_body().collect().await.ok()?.to_bytes();
    Some(String::from_utf8_lossy(&body).into_owned())
}

/// Code and message of a refusal.
pub(super) async fn refusal(response: Response<Body>) -> (u16, String) {
    let code = response.status().as_u16();
    let status: Value =
        serde_json::from_str(&text(response).await.unwrap_or_default()).expect("a Status");
    (code, status["message"].as_str().unwrap_or_default().to_owned())
}
