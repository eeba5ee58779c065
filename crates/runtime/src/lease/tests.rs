//! The elector against a mock API server, on a paused clock.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::{Client, client::Body, core::Status};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time};

use super::{ElectionEnd, Elector, Leadership, LeaseName, LeaseTiming};
use crate::Stop;

const MINUTE: Duration = Duration::from_secs(60);

/// Waits on the paused clock, so that a missing event fails the test at once.
async fn gained(leadership: &mut Leadership) {
    time::timeout(MINUTE * 60, leadership.gained()).await.expect("it leads in the end");
}

/// How the mock server handles requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ServerMode {
    #[default]
    Healthy,
    /// Stores the next write without a response, then is healthy again.
    Forgetful,
    /// Neither stores nor answers.
    Silent,
    /// Refuses writes.
    Full,
    /// Has no namespace for the Lease.
    NoNamespace,
}

/// More writes than this in a row are a loop without a pause: they get no response, so that the clock goes on.
const MANY_WRITES: usize = 1_000;

#[derive(Default)]
struct ServerState {
    mode: ServerMode,
    stored: Option<Value>,
    version: u64,
    writes: usize,
}

#[derive(Clone, Default)]
struct Server(Arc<Mutex<ServerState>>);

impl Server {
    fn with_state<T>(&self, query: impl FnOnce(&mut ServerState) -> T) -> T {
        query(&mut self.0.lock().expect("the state"))
    }

    fn stored(&self) -> Value {
        self.with_state(|state| state.stored.clone()).expect("a lease")
    }

    /// Another process writes the Lease.
    fn put(&self, holder: &str, transitions: i32) {
        let spec = json!({
            "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": transitions,
        });
        self.with_state(|state| {
            let metadata = json!({"name": "leader", "namespace": "here", "labels": {"keep": "me"}});
            store(state, json!({"metadata": metadata, "spec": spec}));
        });
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        let method = request.method().clone();
        let body = request.into_body().collect().await.expect("a body").to_bytes();
        let answer = self.with_state(|state| state.answer(&method, &body));
        let Some((code, value)) = answer else {
            return std::future::pending().await;
        };
        let code = StatusCode::from_u16(code).expect("a code");
        let body = Body::from(value.to_string().into_bytes());
        Ok(Response::builder().status(code).body(body).expect("a response"))
    }

    fn candidate(&self, identity: &str) -> (Leadership, Stop, JoinHandle<ElectionEnd>) {
        let server = self.clone();
        let service = tower::service_fn(move |request| server.clone().answer(request));
        let client = Client::new(service, "here");
        let name = LeaseName { namespace: "here".to_owned(), name: "leader".to_owned() };
        let (elector, leadership) =
            Elector::new(client, name, identity.to_owned(), LeaseTiming::default())
                .expect("a timing");
        let stop = Stop::new();
        (leadership, stop.clone(), tokio::spawn(elector.run(stop)))
    }
}

impl ServerState {
    /// `None`: no response.
    fn answer(&mut self, method: &Method, body: &[u8]) -> Option<(u16, Value)> {
        if self.mode == ServerMode::Silent {
            return None;
        }
        if method == Method::GET {
            return Some(self.stored.clone().map_or_else(|| failure(404), |lease| (200, lease)));
        }
        self.writes += 1;
        if self.mode == ServerMode::Full {
            return Some(failure(507));
        }
        if self.mode == ServerMode::NoNamespace {
            return (self.writes < MANY_WRITES).then(|| failure(404));
        }
        let lease: Value = serde_json::from_slice(body).expect("a lease");
        let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
        match (&self.stored, method == Method::POST) {
            (Some(_), true) => return Some(failure(409)),
            (None, false) => return Some(failure(404)),
            (Some(stored), false) if version(stored) != version(&lease) => {
                return Some(failure(409));
            }
            _ => {}
        }
        store(self, lease);
        if std::mem::take(&mut self.mode) == ServerMode::Forgetful {
            return None;
        }
        self.stored.clone().map(|lease| (200, lease))
    }
}

fn store(state: &mut ServerState, mut lease: Value) {
    state.version += 1;
    lease["metadata"]["resourceVersion"] = json!(state.version.to_string());
    state.stored = Some(lease);
}

fn failure(code: u16) -> (u16, Value) {
    let reason = if code == 404 { "NotFound" } else { "Reason" };
    let status = Status::failure("no", reason).with_code(code);
    (code, serde_json::to_value(status).expect("JSON"))
}

#[tokio::test(start_paused = true)]
async fn a_renewal_without_a_response_does_not_lose_the_lease() {
    let server = Server::default();
    let (mut leadership, _stop, task) = server.candidate("one");
    gained(&mut leadership).await;
    for _ in 0..10 {
        server.with_state(|state| state.mode = ServerMode::Forgetful);
        time::sleep(MINUTE).await;
        assert!(leadership.leads() && !task.is_finished());
    }
    assert_eq!(server.stored()["spec"]["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_responses_stops_after_the_renew_deadline() {
    for mode in [ServerMode::Silent, ServerMode::Full] {
        let server = Server::default();
        let (mut leadership, _stop, task) = server.candidate("one");
        gained(&mut leadership).await;
        let begun = time::Instant::now();
        server.with_state(|state| state.mode = mode);
        leadership.lost().await;
        assert!(!leadership.leads());
        assert_eq!(begun.elapsed().as_secs(), 10, "{mode:?}");
        assert_eq!(task.await.expect("the task"), ElectionEnd::Lost, "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_a_namespace_pauses_between_its_creates() {
    let server = Server::default();
    let (mut leadership, _stop, task) = server.candidate("one");
    gained(&mut leadership).await;
    server.with_state(|state| {
        (state.mode, state.stored, state.writes) = (ServerMode::NoNamespace, None, 0);
    });
    assert_eq!(task.await.expect("the task"), ElectionEnd::Lost);
    let writes = server.with_state(|state| state.writes);
    assert!(writes <= 10, "{writes} writes within the renew deadline");
}

/// The cluster is restored from a backup: it has the Lease of then, or none.
fn restore(server: &Server, backup: Option<Value>) {
    server.with_state(|state| (state.stored, state.version) = (backup, 1));
}

#[tokio::test(start_paused = true)]
async fn a_candidate_ends_when_its_cluster_goes_back() {
    for leads in [true, false] {
        for has_lease in [true, false] {
            let server = Server::default();
            server.put(if leads { "" } else { "other" }, 0);
            let backup = Some(server.stored()).filter(|_| has_lease);
            let (mut leadership, _stop, task) = server.candidate("one");
            if leads {
                gained(&mut leadership).await;
            }
            for _ in 0..5 {
                time::sleep(Duration::from_secs(3)).await;
                if !leads {
                    server.put("other", 0);
                }
            }
            assert!(!task.is_finished());
            restore(&server, backup);
            let restored = time::Instant::now();
            let ended = time::timeout(MINUTE, task).await;
            let ended = ended.unwrap_or_else(|_| panic!("it runs on: {leads} {has_lease}"));
            assert_eq!(ended.expect("the task"), ElectionEnd::Lost);
            assert!(!leadership.leads(), "its watches show the cluster of before");
            // A leader ends with the next answer; a follower may first await the end of the lease.
            let at_once = restored.elapsed() <= LeaseTiming::default().retry;
            assert!(at_once || !leads, "{has_lease}: after {:?}", restored.elapsed());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_taken_stops_with_its_next_renewal() {
    let server = Server::default();
    let (mut leadership, _stop, task) = server.candidate("one");
    gained(&mut leadership).await;
    let begun = time::Instant::now();
    server.put("other", 7);
    leadership.lost().await;
    assert!(begun.elapsed() < LeaseTiming::default().retry * 2);
    assert_eq!(task.await.expect("the task"), ElectionEnd::Lost);
    assert_eq!(server.stored()["spec"]["holderIdentity"], "other");
}

#[tokio::test(start_paused = true)]
async fn a_follower_waits_for_the_holder_and_keeps_other_fields() {
    let server = Server::default();
    server.put("other", 7);
    let begun = time::Instant::now();
    let (mut leadership, _stop, _task) = server.candidate("one");
    gained(&mut leadership).await;
    assert_eq!(begun.elapsed().as_secs(), 15);
    let lease = server.stored();
    assert_eq!(lease["spec"]["holderIdentity"], "one");
    assert_eq!(lease["spec"]["leaseTransitions"], 8);
    assert_eq!(lease["metadata"]["labels"]["keep"], "me");
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_stops_writes_nothing() {
    let server = Server::default();
    server.put("other", 7);
    let (leadership, stop, task) = server.candidate("one");
    time::sleep(Duration::from_secs(5)).await;
    stop.cancel();
    assert_eq!(task.await.expect("the task"), ElectionEnd::Stopped);
    assert!(!leadership.leads());
    assert_eq!(server.with_state(|state| state.writes), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_a_renewal_still_releases_the_lease() {
    let server = Server::default();
    let (mut leadership, stop, task) = server.candidate("one");
    gained(&mut leadership).await;
    server.with_state(|state| state.mode = ServerMode::Forgetful);
    // The renewal is stored and waits for its response.
    time::sleep(LeaseTiming::default().retry + Duration::from_secs(1)).await;
    assert_eq!(server.with_state(|state| (state.writes, state.mode)), (2, ServerMode::Healthy));
    stop.cancel();
    assert_eq!(task.await.expect("the task"), ElectionEnd::Stopped);
    assert_eq!(server.stored()["spec"]["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_recreated_by_its_holder_and_not_by_its_followers() {
    let server = Server::default();
    let (mut one, _stop, _task) = server.candidate("one");
    gained(&mut one).await;
    let (two, _other_stop, _other_task) = server.candidate("two");
    for round in 0..20 {
        time::sleep(Duration::from_millis(4_700)).await;
        server.with_state(|state| state.stored = None);
        assert!(one.leads() && !two.leads(), "{round}: {} {}", one.leads(), two.leads());
    }
    time::sleep(MINUTE).await;
    assert!(one.leads() && !two.leads());
    assert_eq!(server.stored()["spec"]["holderIdentity"], "one");
}
