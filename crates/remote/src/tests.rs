//! A worker's task against a TLS server that accepts some tokens and has no resources.

mod cluster_profiles;
mod confirmed_lists;
mod hub;
mod supervision;

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use axum::{
    Router,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Json, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use cluster::control::{ConnectionStatus, ManagerInput, WorkerInput};
use http_body_util::BodyExt;
use jobs::Kinds;
use kube::Client;
use leader::{ClientMetrics, Workers};
use runtime::{
    Stop,
    certs::{self, CertPair},
    server::Server,
    tls::{self, CertificateSlot, ServerTls},
    watch::Store,
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{
        mpsc::{Receiver, Sender, channel},
        watch,
    },
    task::JoinHandle,
    time::timeout,
};

use crate::{
    context::{ConnectionSettings, ConnectionTiming, WorkerContext},
    kubeconfig_file::KubeconfigDirectory,
    kubeconfig_secret::Fingerprint,
    reconcile::{KubeconfigLocation, KubeconfigVersion, TargetConnection},
    worker::{WorkerCommand, WorkerLoop},
};

/// Inputs about connections that a test has not looked at yet.
const SEEN: usize = 4096;

/// A timeout for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Makes a named pipe, which nothing writes to.
pub(crate) fn make_pipe(path: &std::path::Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
}

/// An API server that serves its version to clients with an accepted token.
struct TestServer {
    authority: CertPair,
    address: SocketAddr,
    state: Arc<ApiState>,
    running: Option<(Stop, JoinHandle<()>)>,
}

#[derive(Default)]
struct ApiState {
    tokens: watch::Sender<BTreeSet<&'static str>>,
    /// Tokens of requests other than for the version.
    used: watch::Sender<BTreeSet<String>>,
    /// Nothing that is stored can be read.
    storeless: watch::Sender<bool>,
    /// Number of requests for the version.
    n_probes: watch::Sender<u64>,
    /// The uid of the namespace kube-system, if it is not the usual one.
    other_uid: watch::Sender<Option<&'static str>>,
    /// Number of requests for that namespace.
    n_identities: watch::Sender<u64>,
}

async fn answer(State(state): State<Arc<ApiState>>, request: Request) -> Response {
    let header = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    let token = header.unwrap_or_default().trim_start_matches("Bearer ").to_owned();
    let probe = request.uri().path() == "/version";
    if probe {
        state.n_probes.send_modify(|n| *n += 1);
    }
    if !state.tokens.borrow().contains(token.as_str()) {
        return status(StatusCode::UNAUTHORIZED, "who are you");
    }
    if probe {
        return Json(json!({ "major": "1", "minor": "36" })).into_response();
    }
    if *state.storeless.borrow() {
        return status(StatusCode::INTERNAL_SERVER_ERROR, "no leader");
    }
    if request.uri().path() == "/api/v1/namespaces/kube-system" {
        state.n_identities.send_modify(|n| *n += 1);
        let uid = state.other_uid.borrow().unwrap_or("this-place");
        let metadata = json!({ "name": "kube-system", "uid": uid });
        return Json(json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": metadata }))
        .into_response();
    }
    state.used.send_modify(|used| {
        used.insert(token);
    });
    status(StatusCode::NOT_FOUND, "there is no such kind")
}

fn status(code: StatusCode, message: &str) -> Response {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": message, "reason": "", "code": code.as_u16() });
    (code, Json(status)).into_response()
}

impl TestServer {
    async fn new(tokens: impl IntoIterator<Item = &'static str>) -> Self {
        let now = jiff::Timestamp::now();
        let authority = certs::make_authority("a worker", now).expect("an authority");
        let state = Arc::new(ApiState::default());
        state.tokens.send_replace(tokens.into_iter().collect());
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self { authority, address, state, running: None };
        server.start().await;
        server
    }

    async fn start(&mut self) {
        let now = jiff::Timestamp::now();
        let names = ["localhost".to_owned()];
        let pair = certs::issue(&self.authority, &names, now).expect("a certificate");
        let slot = CertificateSlot::new();
        slot.load(&pair.certificate, &pair.key).expect("a pair");
        let tls = tls::server_config(slot, &ServerTls::default()).expect("a configuration");
        let listener = TcpListener::bind(self.address).await.expect("a port");
        self.address = listener.local_addr().expect("an address");
        let router = Router::new().fallback(answer).with_state(Arc::clone(&self.state));
        let stop = Stop::new();
        let server = tokio::spawn(Server::tls(router, tls).run(listener, stop.clone()));
        self.running = Some((stop, server));
    }

    async fn stop(&mut self) {
        let (stop, server) = self.running.take().expect("it runs");
        stop.cancel();
        server.await.expect("the server");
    }

    /// Waits for a request with this token other than for the version.
    async fn wait_for_use(&self, token: &str) {
        let mut used = self.state.used.subscribe();
        let seen = used.wait_for(|used| used.contains(token));
        timeout(TIMEOUT, seen).await.expect("in time").expect("the state");
    }

    /// Waits for a few more requests for the identity.
    async fn wait_for_identities(&self) {
        let mut n_identities = self.state.n_identities.subscribe();
        let enough = *n_identities.borrow() + 2;
        let seen = n_identities.wait_for(|n| *n >= enough);
        timeout(TIMEOUT, seen).await.expect("in time").expect("the state");
    }

    /// Waits for a few more probes.
    async fn wait_for_probes(&self) {
        let mut n_probes = self.state.n_probes.subscribe();
        let enough = *n_probes.borrow() + 4;
        let seen = n_probes.wait_for(|n| *n >= enough);
        timeout(TIMEOUT, seen).await.expect("in time").expect("the state");
    }

    fn kubeconfig(&self, token: &str) -> String {
        let server = format!("https://localhost:{}", self.address.port());
        let authority = STANDARD.encode(&self.authority.certificate);
        json!({
            "current-context": "c",
            "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
            "clusters": [{ "name": "c", "cluster": {
                "server": server, "certificate-authority-data": authority } }],
            "users": [{ "name": "u", "user": { "token": token } }],
        })
        .to_string()
    }
}

/// A worker's task, with a home cluster that has one Secret.
struct TestTask {
    secret: watch::Sender<String>,
    commands: watch::Sender<WorkerCommand>,
    inputs: Receiver<ManagerInput>,
    run: JoinHandle<()>,
}

impl TestTask {
    fn begin(kubeconfig: String) -> Self {
        let command = WorkerCommand::Connect(target(&kubeconfig));
        let (secret, kept) = watch::channel(kubeconfig);
        let (seen, heard) = channel(SEEN);
        let context = Arc::new(context(home(kept), &["east"], seen));
        let (commands, received) = watch::channel(command);
        let run = tokio::spawn(WorkerLoop::new("east", context).run(received, Stop::new()));
        Self { secret, commands, inputs: heard, run }
    }

    fn rotate(&self, kubeconfig: String) {
        let command = WorkerCommand::Connect(target(&kubeconfig));
        self.secret.send_replace(kubeconfig);
        self.commands.send_replace(command);
    }

    async fn status(&mut self) -> ConnectionStatus {
        next_status(&mut self.inputs).await
    }
}

/// The next status of the worker.
async fn next_status(inputs: &mut Receiver<ManagerInput>) -> ConnectionStatus {
    loop {
        match timeout(TIMEOUT, inputs.recv()).await.expect("in time") {
            Some(ManagerInput::Worker(name, WorkerInput::Connection(status)))
                if &*name == "east" =>
            {
                return status;
            }
            Some(ManagerInput::Worker(_, WorkerInput::GivenUp)) => {}
            other => panic!("{other:?} is not a status"),
        }
    }
}

/// A context with a control that knows these MultiKueueClusters. `seen` gets the status of connections.
fn context(home: Client, names: &[&str], seen: Sender<ManagerInput>) -> WorkerContext {
    let context = unregistered_context(home, "1m", seen);
    context.inputs.try_send(hub::registered(names)).expect("there is room");
    context
}

/// A context with a control that has not listed MultiKueueClusters.
fn unregistered_context(
    home: Client,
    lost_after: &str,
    seen: Sender<ManagerInput>,
) -> WorkerContext {
    let workers = Workers::default();
    let inputs = hub::begin(home.clone(), workers.clone(), lost_after, seen);
    let timing = ConnectionTiming {
        probe_every: Duration::from_millis(20),
        deadline: Duration::from_secs(5),
        first_pause: Duration::from_millis(20),
    };
    let settings = ConnectionSettings {
        kinds: Kinds::default(),
        watches_queues: false,
        home,
        namespace: "kueue-system".to_owned(),
        secrets: Store::default(),
        profiles: None,
        kubeconfig_files: KubeconfigDirectory::default(),
        origin: "here".to_owned(),
        metrics: ClientMetrics::default(),
        check_every: None,
        timing,
    };
    let leadership = runtime::lease::Leadership::alone();
    WorkerContext { settings, leadership, inputs, workers, last_claim: AtomicU64::new(0) }
}

fn target(kubeconfig: &str) -> TargetConnection {
    let fingerprint = Fingerprint::of(kubeconfig.as_bytes());
    let location = KubeconfigLocation::Secret("east".into());
    let kubeconfig = KubeconfigVersion { location, fingerprint };
    TargetConnection::Connect { kubeconfig, registration: None }
}

fn home(secret: watch::Receiver<String>) -> Client {
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let secret = secret.clone();
        async move {
            let path = request.uri().path().to_owned();
            if secret.borrow().is_empty() && request.method() == http::Method::GET {
                return Ok(supervision::unnamed_404());
            }
            let body = if request.method() == http::Method::PATCH {
                assert!(path.starts_with("/apis/kueue.x-k8s.io/v1beta2/multikueueclusters/"));
                patched(request).await
            } else {
                assert_eq!(path, "/api/v1/namespaces/kueue-system/secrets/east");
                let data = STANDARD.encode(secret.borrow().as_bytes());
                json!({ "metadata": { "name": "east" }, "data": { "kubeconfig": data } })
            };
            let body = kube::client::Body::from(body.to_string().into_bytes());
            Ok::<_, std::convert::Infallible>(http::Response::new(body))
        }
    });
    Client::new(service, "kueue-system")
}

/// A MultiKueueCluster with the fields of a patch.
async fn patched(request: http::Request<kube::client::Body>) -> Value {
    let path = request.uri().path().trim_end_matches("/status").to_owned();
    let body = request.into_body().collect().await.expect("a body").to_bytes();
    let mut object: Value = serde_json::from_slice(&body).expect("JSON");
    object["metadata"]["name"] = json!(path.rsplit('/').next());
    object
}

fn active() -> ConnectionStatus {
    ConnectionStatus { active: true, reason: "Active", message: "Connected".to_owned() }
}

#[tokio::test]
async fn a_stopped_worker_is_reported_lost_and_reconnects() {
    let mut server = TestServer::new(["one"]).await;
    let mut task = TestTask::begin(server.kubeconfig("one"));
    assert_eq!(task.status().await, active());
    server.stop().await;
    for attempt in 1..3 {
        let status = task.status().await;
        assert!(!status.active);
        assert_eq!(status.reason, "ClientConnectionFailed");
        let reported = format!("; connection attempts: {attempt}, next connection attempt: 2");
        assert!(status.message.contains(&reported), "{}", status.message);
    }
    server.start().await;
    while task.status().await != active() {}
}

#[tokio::test]
async fn a_worker_that_answers_without_its_store_is_reported_lost_and_reconnects() {
    let server = TestServer::new(["one"]).await;
    let mut task = TestTask::begin(server.kubeconfig("one"));
    assert_eq!(task.status().await, active());
    server.state.storeless.send_replace(true);
    let status = task.status().await;
    assert_eq!((status.active, status.reason), (false, "ClientConnectionFailed"));
    for part in ["no leader", "; connection attempts: 1, next connection attempt: 2"] {
        assert!(status.message.contains(part), "{}", status.message);
    }
    server.state.storeless.send_replace(false);
    while task.status().await != active() {}
}

#[tokio::test]
async fn credentials_are_replaced_without_a_loss_even_if_the_worker_has_no_crds() {
    let server = TestServer::new(["one", "two"]).await;
    let mut task = TestTask::begin(server.kubeconfig("one"));
    assert_eq!(task.status().await, active());
    server.wait_for_use("one").await;
    task.rotate(server.kubeconfig("two"));
    server.wait_for_use("two").await;
    server.state.tokens.send_modify(|tokens| {
        tokens.remove("one");
    });
    server.wait_for_probes().await;
    assert!(task.inputs.try_recv().is_err(), "no status was reported");
    task.commands.send_replace(WorkerCommand::End);
    assert!(!task.status().await.active);
    timeout(TIMEOUT, task.run).await.expect("in time").expect("the task");
}

#[tokio::test]
async fn a_404_that_does_not_name_the_secret_ends_no_connection() {
    let server = TestServer::new(["one", "two"]).await;
    let mut task = TestTask::begin(server.kubeconfig("one"));
    assert_eq!(task.status().await, active());
    task.secret.send_replace(String::new());
    let kubeconfig = server.kubeconfig("two");
    task.commands.send_replace(WorkerCommand::Connect(target(&kubeconfig)));
    server.wait_for_probes().await;
    task.secret.send_replace(kubeconfig);
    server.wait_for_use("two").await;
    assert!(task.inputs.try_recv().is_err(), "no status was reported");
}

#[tokio::test]
async fn an_invalid_kubeconfig_ends_the_connection_and_a_valid_one_restores_it() {
    let server = TestServer::new(["one"]).await;
    let mut task = TestTask::begin(server.kubeconfig("one"));
    assert_eq!(task.status().await, active());
    task.rotate(server.kubeconfig("one").replace("https:", "http:"));
    let mut status = task.status().await;
    // A probe of the former connection may fail on a busy machine before the task sees the new kubeconfig.
    while status.reason != "InsecureKubeConfig" {
        status = task.status().await;
    }
    assert!(!status.active);
    assert_eq!(status.message, "load client config failed: untrusted server endpoint");
    task.rotate(server.kubeconfig("unknown"));
    while !status.message.contains("who are you") {
        status = task.status().await;
        assert!(!status.active, "{}", status.message);
    }
    assert_eq!(status.reason, "ClientConnectionFailed");
    task.rotate(server.kubeconfig("one"));
    while task.status().await != active() {}
}

#[tokio::test]
async fn a_cluster_with_two_cluster_objects_is_used_by_one() {
    let server = TestServer::new(["one"]).await;
    let (_secret, kept) = watch::channel(server.kubeconfig("one"));
    let (seen, mut heard) = channel(SEEN);
    let context = Arc::new(context(home(kept), &["first", "second"], seen));
    let begin = |name: &str| {
        let (commands, received) =
            watch::channel(WorkerCommand::Connect(target(&server.kubeconfig("one"))));
        tokio::spawn(WorkerLoop::new(name, Arc::clone(&context)).run(received, Stop::new()));
        commands
    };
    let mut reported = async || loop {
        match timeout(TIMEOUT, heard.recv()).await.expect("in time") {
            Some(ManagerInput::Worker(name, WorkerInput::Connection(status))) => {
                return (name.to_string(), status);
            }
            Some(ManagerInput::Worker(_, WorkerInput::GivenUp)) => {}
            other => panic!("{other:?} is not a status"),
        }
    };
    let first = begin("first");
    assert_eq!(reported().await, ("first".to_owned(), active()));
    let _second = begin("second");
    let refused = ConnectionStatus {
        active: false,
        reason: "ClusterAlreadyRegistered",
        message: "this cluster is registered as \"first\" already".to_owned(),
    };
    assert_eq!(reported().await, ("second".to_owned(), refused.clone()));
    assert_eq!(reported().await, ("second".to_owned(), refused), "it is asked again");

    first.send_replace(WorkerCommand::End);
    while reported().await.0 != "first" {}
    context.inputs.send(hub::deleted("first")).await.expect("control");
    let ended = ManagerInput::Worker("first".into(), WorkerInput::GivenUp);
    context.inputs.send(ended).await.expect("control");
    while reported().await != ("second".to_owned(), active()) {}
}
