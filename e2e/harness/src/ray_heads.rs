//! A server on loopback that plays every Ray head, as the HTTP proxy of an agent. One head can have an address of its own as well, for
//! an API server that is a proxy of Services: it reaches no address on loopback.
//!
//! A head knows the jobs that were submitted to it, and the configuration of Serve that it was sent; ledgers keep both. How a job
//! goes, and how heads fail, is set by the test. The server has a thread of its own: tests that share it have a runtime each.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONNECTION, HeaderValue, UPGRADE},
    server::conn::http1,
    service::service_fn,
    upgrade::{self, OnUpgrade},
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncWriteExt, copy, split},
    net::TcpListener,
    runtime::{Builder, Handle},
    sync::oneshot,
    task::JoinSet,
};

/// The path of the applications of Serve.
const SERVE: &str = "/api/serve/applications/";

/// The path of the jobs.
const JOBS: &str = "/api/jobs/";

/// A job that was submitted to a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// `host:port` of the head.
    pub head: String,
    /// The id of the job in Ray.
    pub id: String,
}

impl Submission {
    /// The namespace of the head.
    #[must_use]
    pub fn namespace(&self) -> &str {
        namespace_of(&self.head)
    }
}

/// A configuration of Serve that was sent to a head.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeConfig {
    /// `host:port` of the head.
    pub head: String,
    /// What was sent.
    pub config: Value,
}

/// How heads answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeadFault {
    /// As they should.
    #[default]
    None,
    /// Not at all.
    Hang,
    /// With a page for people.
    Html,
    /// With more than anything can take.
    Endless,
    /// With an error of the server.
    Error,
    /// With the end of the connection.
    Cut,
    /// As they should, but they refuse every job.
    RefusesJobs,
}

#[derive(Default)]
struct PlayedHeads {
    /// By namespace: tests that share the server fail their own heads only.
    faults: HashMap<String, HeadFault>,
    status: String,
    /// By namespace, in place of that of all jobs.
    statuses: HashMap<String, String>,
    submissions: Vec<Submission>,
    stopped: Vec<String>,
    configs: Vec<ServeConfig>,
}

/// A server that plays every Ray head. The server ends with it.
pub struct RayHeads {
    address: SocketAddr,
    heads: Arc<Mutex<PlayedHeads>>,
    runtime: Handle,
    _end: oneshot::Sender<()>,
}

impl RayHeads {
    /// Starts the server. Jobs are `PENDING` until the test says more.
    ///
    /// # Errors
    /// If there is no port.
    pub fn start() -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let heads: Arc<Mutex<PlayedHeads>> = Arc::default();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel::<()>();
        let served = Arc::clone(&heads);
        let handle = runtime.handle().clone();
        thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    // The sender is dropped, and never used.
                    _ = ended => {}
                    () = serve(listener, served, None) => {}
                }
            });
        });
        let played = Self { address, heads, runtime: handle, _end: end };
        played.set_status("PENDING");
        Ok(played)
    }

    /// `host:port` of the proxy.
    #[must_use]
    pub fn proxy(&self) -> String {
        self.address.to_string()
    }

    /// Gives the head of this `SERVICE.NAMESPACE.svc:PORT` an address of this machine beside loopback.
    ///
    /// # Errors
    /// If this machine has no such address, or no port is free.
    pub fn open(&self, head: &str) -> io::Result<SocketAddr> {
        let listener = std::net::TcpListener::bind((machine_address()?, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        self.runtime.spawn(serve(listener, Arc::clone(&self.heads), Some(head.to_owned())));
        Ok(address)
    }

    /// The state of all jobs from now on.
    pub fn set_status(&self, status: &str) {
        status.clone_into(&mut lock(&self.heads).status);
    }

    /// The state of the jobs of a namespace from now on.
    pub fn set_status_of(&self, namespace: &str, status: &str) {
        lock(&self.heads).statuses.insert(namespace.to_owned(), status.to_owned());
    }

    /// How the heads of a namespace answer from now on.
    pub fn set_fault(&self, namespace: &str, fault: HeadFault) {
        lock(&self.heads).faults.insert(namespace.to_owned(), fault);
    }

    /// Every job that was submitted, in order.
    #[must_use]
    pub fn submissions(&self) -> Vec<Submission> {
        lock(&self.heads).submissions.clone()
    }

    /// Every configuration of Serve that was sent, in order.
    #[must_use]
    pub fn serve_configs(&self) -> Vec<ServeConfig> {
        lock(&self.heads).configs.clone()
    }

    /// Ids of jobs that were asked to stop.
    #[must_use]
    pub fn stopped(&self) -> Vec<String> {
        lock(&self.heads).stopped.clone()
    }
}

fn lock(heads: &Mutex<PlayedHeads>) -> std::sync::MutexGuard<'_, PlayedHeads> {
    heads.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The address by which this machine would reach others. Nothing is sent.
fn machine_address() -> io::Result<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect("192.0.2.1:9")?;
    let address = socket.local_addr()?.ip();
    if address.is_loopback() || address.is_unspecified() {
        Err(io::Error::other("this machine has no address beside loopback"))
    } else {
        Ok(address)
    }
}

/// Serves one head, or all of them as a proxy.
async fn serve(
    listener: std::net::TcpListener,
    heads: Arc<Mutex<PlayedHeads>>,
    head: Option<String>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (heads, head) = (Arc::clone(&heads), head.clone());
        connections.spawn(async move {
            let answer = service_fn(move |request: Request<Incoming>| {
                let heads = Arc::clone(&heads);
                let of_proxy = request.uri().authority().map(ToString::to_string);
                let head = head.clone().or(of_proxy).unwrap_or_default();
                async move { answer(request, head, &heads).await }
            });
            // A client that goes away is none of the heads' concern.
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
            drop(connection.with_upgrades().await);
        });
    }
}

/// That of `SERVICE.NAMESPACE.svc.DOMAIN`.
fn namespace_of(head: &str) -> &str {
    head.split('.').nth(1).unwrap_or_default()
}

/// An error ends the connection.
async fn answer(
    request: Request<Incoming>,
    head: String,
    heads: &Mutex<PlayedHeads>,
) -> io::Result<Response<Full<Bytes>>> {
    let fault = lock(heads).faults.get(namespace_of(&head)).copied().unwrap_or_default();
    let is_submission = request.method() == Method::POST && request.uri().path() == JOBS;
    match fault {
        HeadFault::Hang => std::future::pending().await,
        HeadFault::Html => Ok(response(200, "<html><body>Sign in</body></html>".to_owned())),
        HeadFault::Endless => Ok(response(200, " ".repeat(50 << 20))),
        HeadFault::Error => Ok(response(503, "out of memory".to_owned())),
        HeadFault::Cut => Err(io::Error::other("the head ends the connection")),
        HeadFault::RefusesJobs if is_submission => {
            Ok(response(500, "no more than one job".to_owned()))
        }
        HeadFault::None | HeadFault::RefusesJobs => Ok(sound_answer(request, head, heads).await),
    }
}

/// The answer of a head without a fault.
async fn sound_answer(
    mut request: Request<Incoming>,
    head: String,
    heads: &Mutex<PlayedHeads>,
) -> Response<Full<Bytes>> {
    let namespace = namespace_of(&head).to_owned();
    if let Some(id) = followed_job(&request, &head, heads) {
        tokio::spawn(log(upgrade::on(&mut request), id));
        return upgraded();
    }
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut heads = lock(heads);
    match (parts.method.as_str(), parts.uri.path()) {
        // The proxy of Serve on the head.
        (_, "/-/healthz") => return response(200, "success".to_owned()),
        ("PUT", SERVE) => {
            heads.configs.push(ServeConfig { head, config: body });
            return response(200, "{}".to_owned());
        }
        (_, SERVE) => return response(200, applications(&heads.configs, &head).to_string()),
        _ => {}
    }
    let path = parts.uri.path().trim_start_matches(JOBS).to_owned();
    match (parts.method.as_str(), path.as_str()) {
        ("POST", "") => {
            let id = body["submission_id"].as_str().unwrap_or_default().to_owned();
            heads.submissions.push(Submission { head, id: id.clone() });
            response(200, json!({"submission_id": id}).to_string())
        }
        ("POST", path) => {
            heads.stopped.push(path.trim_end_matches("/stop").to_owned());
            response(200, json!({"stopped": true}).to_string())
        }
        (_, id) if heads.submissions.iter().any(|it| it.id == id && it.head == head) => {
            let status = heads.statuses.get(&namespace).unwrap_or(&heads.status);
            let info =
                json!({"status": status, "message": format!("job is {status}"), "start_time": 1});
            response(200, info.to_string())
        }
        _ => response(404, "{}".to_owned()),
    }
}

/// The job of the log that a request follows. The head of a Ray cluster sends it through a WebSocket.
fn followed_job(
    request: &Request<Incoming>,
    head: &str,
    heads: &Mutex<PlayedHeads>,
) -> Option<String> {
    request.headers().get(UPGRADE)?;
    let id = request.uri().path().strip_prefix(JOBS)?.strip_suffix("/logs/tail")?;
    let heads = lock(heads);
    let mut known = heads.submissions.iter();
    known.any(|it| it.id == id && it.head == head).then(|| id.to_owned())
}

/// Sends the name of the job, then what comes. Bytes here are no frames of a WebSocket: nothing between the ends reads them.
async fn log(upgrade: OnUpgrade, id: String) {
    let Ok(stream) = upgrade.await else { return };
    let (mut reads, mut writes) = split(TokioIo::new(stream));
    if writes.write_all(format!("log of {id}").as_bytes()).await.is_ok() {
        // Ends with the other side.
        drop(copy(&mut reads, &mut writes).await);
    }
}

fn upgraded() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
    response
}

/// The applications of the last configuration that a head was sent. All of them run.
fn applications(configs: &[ServeConfig], head: &str) -> Value {
    let last = configs.iter().rfind(|config| config.head == head);
    let configured = last.and_then(|config| config.config["applications"].as_array());
    let application = |it: &Value| {
        let name = it["name"].as_str().unwrap_or_default().to_owned();
        (name, json!({"status": "RUNNING", "deployments": {"d": {"status": "HEALTHY"}}}))
    };
    let running: serde_json::Map<String, Value> =
        configured.into_iter().flatten().map(application).collect();
    json!({"applications": running})
}

fn response(code: u16, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
    response
}
