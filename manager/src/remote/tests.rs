//! A worker's task against a TLS server that knows some tokens and has nothing.

mod supervision;

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Json, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use cluster::control::{
    Input, Link, RemoteInput,
    task::{self, Inputs, Workers},
};
use kube::Client;
use runtime::{
    Stop,
    certs::{self, CertPair},
    requests::RequestMetrics,
    server::Server,
    tls::{self, CertificateSlot, MinVersion},
    watch::WatchMetrics,
    writer::WriteMetrics,
};
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::{mpsc::Receiver, watch},
    task::JoinHandle,
    time::timeout,
};

use super::{
    claims::SharedClaims,
    decide::Wanted,
    secret::Fingerprint,
    surroundings::{Pace, Surroundings},
    worker::{Order, Worker},
};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// An API server that answers to its tokens, with its version and nothing else.
struct Place {
    authority: CertPair,
    address: SocketAddr,
    state: Arc<ApiState>,
    running: Option<(Stop, JoinHandle<()>)>,
}

#[derive(Default)]
struct ApiState {
    tokens: watch::Sender<BTreeSet<&'static str>>,
    /// Tokens of requests for anything but the version.
    used: watch::Sender<BTreeSet<String>>,
    /// Requests for the version, whatever came of them.
    n_probes: watch::Sender<u64>,
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
    if request.uri().path() == "/api/v1/namespaces/kube-system" {
        let metadata = json!({ "name": "kube-system", "uid": "this-place" });
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

impl Place {
    async fn new(tokens: impl IntoIterator<Item = &'static str>) -> Self {
        let now = jiff::Timestamp::now();
        let authority = certs::make_authority("a worker", now).expect("an authority");
        let state = Arc::new(ApiState::default());
        state.tokens.send_replace(tokens.into_iter().collect());
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut place = Self { authority, address, state, running: None };
        place.start().await;
        place
    }

    async fn start(&mut self) {
        let now = jiff::Timestamp::now();
        let names = ["localhost".to_owned()];
        let pair = certs::issue(&self.authority, &names, now).expect("a certificate");
        let slot = CertificateSlot::new();
        slot.load(&pair.certificate, &pair.key).expect("a pair");
        let tls = tls::server_config(slot, MinVersion::Tls12).expect("a configuration");
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

    /// Waits until something but the version was asked for with this token.
    async fn used(&self, token: &str) {
        let mut used = self.state.used.subscribe();
        let seen = used.wait_for(|used| used.contains(token));
        timeout(PATIENCE, seen).await.expect("in time").expect("the state");
    }

    /// Waits for a few more probes.
    async fn probed(&self) {
        let mut n_probes = self.state.n_probes.subscribe();
        let enough = *n_probes.borrow() + 4;
        let seen = n_probes.wait_for(|n| *n >= enough);
        timeout(PATIENCE, seen).await.expect("in time").expect("the state");
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
struct Task {
    secret: watch::Sender<String>,
    orders: watch::Sender<Order>,
    inputs: Receiver<Input>,
    run: JoinHandle<()>,
}

impl Task {
    fn begin(kubeconfig: String) -> Self {
        let order = Order::Serve(wanted(&kubeconfig));
        let (secret, kept) = watch::channel(kubeconfig);
        let (inputs, heard) = task::inputs();
        let around = Arc::new(surroundings(home(kept), inputs));
        let (orders, received) = watch::channel(order);
        let run = tokio::spawn(Worker::new("east", around).run(received, Stop::new()));
        Self { secret, orders, inputs: heard, run }
    }

    fn rotate(&self, kubeconfig: String) {
        let order = Order::Serve(wanted(&kubeconfig));
        self.secret.send_replace(kubeconfig);
        self.orders.send_replace(order);
    }

    async fn link(&mut self) -> Link {
        link(&mut self.inputs).await
    }
}

/// The next link of the worker.
async fn link(inputs: &mut Receiver<Input>) -> Link {
    loop {
        match timeout(PATIENCE, inputs.recv()).await.expect("in time") {
            Some(Input::Remote(name, RemoteInput::Link(link))) if &*name == "east" => return link,
            Some(Input::Remote(_, RemoteInput::GivenUp)) => {}
            other => panic!("{other:?} is not a link"),
        }
    }
}

fn surroundings(home: Client, inputs: Inputs) -> Surroundings {
    Surroundings {
        home,
        namespace: "kueue-system".to_owned(),
        inputs,
        workers: Workers::default(),
        origin: "here".to_owned(),
        requests: RequestMetrics::default(),
        watches: WatchMetrics::default(),
        writes: WriteMetrics::default(),
        check_every: None,
        keep_for: Duration::from_millis(50),
        claims: SharedClaims::default(),
        pace: Pace {
            probe_every: Duration::from_millis(20),
            deadline: Duration::from_secs(5),
            first_pause: Duration::from_millis(20),
        },
    }
}

fn wanted(kubeconfig: &str) -> Wanted {
    let fingerprint = Fingerprint::of(kubeconfig.as_bytes());
    Wanted::Connect { secret: "east".into(), fingerprint, registration: None }
}

fn home(secret: watch::Receiver<String>) -> Client {
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let path = request.uri().path().to_owned();
        let body = if request.method() == http::Method::PATCH {
            let (kind, name) = path.rsplit_once('/').expect("a name");
            assert_eq!(kind, "/apis/kueue.x-k8s.io/v1beta2/multikueueclusters");
            json!({ "metadata": { "name": name } })
        } else {
            assert_eq!(path, "/api/v1/namespaces/kueue-system/secrets/east");
            let data = STANDARD.encode(secret.borrow().as_bytes());
            json!({ "metadata": { "name": "east" }, "data": { "kubeconfig": data } })
        };
        let body = kube::client::Body::from(body.to_string().into_bytes());
        async move { Ok::<_, std::convert::Infallible>(http::Response::new(body)) }
    });
    Client::new(service, "kueue-system")
}

fn active() -> Link {
    Link { active: true, reason: "Active", message: "Connected".to_owned() }
}

#[tokio::test]
async fn a_worker_that_goes_is_told_lost_and_comes_back_by_itself() {
    let mut place = Place::new(["one"]).await;
    let mut task = Task::begin(place.kubeconfig("one"));
    assert_eq!(task.link().await, active());
    place.stop().await;
    for attempt in 1..3 {
        let link = task.link().await;
        assert!(!link.active);
        assert_eq!(link.reason, "ClientConnectionFailed");
        let told = format!("; connection attempts: {attempt}, next connection attempt: 2");
        assert!(link.message.contains(&told), "{}", link.message);
    }
    place.start().await;
    while task.link().await != active() {}
}

#[tokio::test]
async fn credentials_are_replaced_without_a_loss_though_the_worker_lacks_every_kind() {
    let place = Place::new(["one", "two"]).await;
    let mut task = Task::begin(place.kubeconfig("one"));
    assert_eq!(task.link().await, active());
    place.used("one").await;
    task.rotate(place.kubeconfig("two"));
    place.used("two").await;
    place.state.tokens.send_modify(|tokens| {
        tokens.remove("one");
    });
    place.probed().await;
    assert!(task.inputs.try_recv().is_err(), "nothing was told");
    task.orders.send_replace(Order::End);
    assert!(!task.link().await.active);
    timeout(PATIENCE, task.run).await.expect("in time").expect("the task");
}

#[tokio::test]
async fn a_kubeconfig_that_is_no_good_takes_the_link_down_and_a_good_one_brings_it_back() {
    let place = Place::new(["one"]).await;
    let mut task = Task::begin(place.kubeconfig("one"));
    assert_eq!(task.link().await, active());
    task.rotate(place.kubeconfig("one").replace("https:", "http:"));
    let link = task.link().await;
    assert_eq!((link.active, link.reason), (false, "InsecureKubeConfig"));
    assert_eq!(link.message, "load client config failed: untrusted server endpoint");
    task.rotate(place.kubeconfig("unknown"));
    let mut link = task.link().await;
    while link.reason == "InsecureKubeConfig" {
        link = task.link().await;
    }
    assert_eq!(link.reason, "ClientConnectionFailed");
    assert!(link.message.contains("who are you"), "{}", link.message);
    task.rotate(place.kubeconfig("one"));
    while task.link().await != active() {}
}

#[tokio::test]
async fn a_cluster_that_is_registered_twice_is_used_once() {
    let place = Place::new(["one"]).await;
    let (_secret, kept) = watch::channel(place.kubeconfig("one"));
    let (inputs, mut heard) = task::inputs();
    let around = Arc::new(surroundings(home(kept), inputs));
    let begin = |name: &str| {
        let (orders, received) = watch::channel(Order::Serve(wanted(&place.kubeconfig("one"))));
        tokio::spawn(Worker::new(name, Arc::clone(&around)).run(received, Stop::new()));
        orders
    };
    let mut told = async || match timeout(PATIENCE, heard.recv()).await.expect("in time") {
        Some(Input::Remote(name, RemoteInput::Link(link))) => (name.to_string(), link),
        other => panic!("{other:?} is not a link"),
    };
    let first = begin("first");
    assert_eq!(told().await, ("first".to_owned(), active()));
    let _second = begin("second");
    let refused = Link {
        active: false,
        reason: "ClusterAlreadyRegistered",
        message: "this cluster is registered as \"first\" already".to_owned(),
    };
    assert_eq!(told().await, ("second".to_owned(), refused.clone()));
    assert_eq!(told().await, ("second".to_owned(), refused), "it is asked again");

    first.send_replace(Order::End);
    while told().await.0 != "first" {}
    around.claims.lock().keep(|name| name != "first");
    while told().await != ("second".to_owned(), active()) {}
}
