//! The elector against a server that is played, on a stopped clock.

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

/// Waits on the stopped clock, so that what never happens fails at once.
async fn gained(leadership: &mut Leadership) {
    time::timeout(MINUTE * 60, leadership.gained()).await.expect("it leads in the end");
}

/// How the server takes requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mood {
    #[default]
    Well,
    /// Stores the next write without answering, and is well again.
    Forgetful,
    /// Answers nothing and stores nothing.
    Silent,
    /// Refuses writes.
    Full,
}

#[derive(Default)]
struct State {
    mood: Mood,
    stored: Option<Value>,
    version: u64,
    writes: usize,
}

#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

impl Server {
    fn look<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().expect("the state"))
    }

    fn stored(&self) -> Value {
        self.look(|state| state.stored.clone()).expect("a lease")
    }

    /// Somebody else writes.
    fn put(&self, holder: &str, transitions: i32) {
        let spec = json!({
            "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": transitions,
        });
        self.look(|state| {
            let metadata = json!({"name": "leader", "namespace": "here", "labels": {"keep": "me"}});
            store(state, json!({"metadata": metadata, "spec": spec}));
        });
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        let method = request.method().clone();
        let body = request.into_body().collect().await.expect("a body").to_bytes();
        let answer = self.look(|state| state.answer(&method, &body));
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

impl State {
    /// None is silence.
    fn answer(&mut self, method: &Method, body: &[u8]) -> Option<(u16, Value)> {
        if self.mood == Mood::Silent {
            return None;
        }
        if method == Method::GET {
            return Some(self.stored.clone().map_or_else(|| failure(404), |lease| (200, lease)));
        }
        self.writes += 1;
        if self.mood == Mood::Full {
            return Some(failure(507));
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
        if std::mem::take(&mut self.mood) == Mood::Forgetful {
            return None;
        }
        self.stored.clone().map(|lease| (200, lease))
    }
}

fn store(state: &mut State, mut lease: Value) {
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
async fn a_renewal_whose_answer_is_lost_does_not_cost_the_lease() {
    let server = Server::default();
    let (mut leadership, _stop, task) = server.candidate("one");
    gained(&mut leadership).await;
    for _ in 0..10 {
        server.look(|state| state.mood = Mood::Forgetful);
        time::sleep(MINUTE).await;
        assert!(leadership.leads() && !task.is_finished());
    }
    assert_eq!(server.stored()["spec"]["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_answers_stops_after_the_renew_deadline() {
    for mood in [Mood::Silent, Mood::Full] {
        let server = Server::default();
        let (mut leadership, _stop, task) = server.candidate("one");
        gained(&mut leadership).await;
        let begun = time::Instant::now();
        server.look(|state| state.mood = mood);
        leadership.lost().await;
        assert!(!leadership.leads());
        assert_eq!(begun.elapsed().as_secs(), 10, "{mood:?}");
        assert_eq!(task.await.expect("the task"), ElectionEnd::Lost, "{mood:?}");
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
async fn a_follower_waits_for_the_holder_and_writes_over_what_it_finds() {
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
    assert_eq!(server.look(|state| state.writes), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_a_renewal_still_gives_the_lease_back() {
    let server = Server::default();
    let (mut leadership, stop, task) = server.candidate("one");
    gained(&mut leadership).await;
    server.look(|state| state.mood = Mood::Forgetful);
    // The renewal is stored, and waits for its answer.
    time::sleep(LeaseTiming::default().retry + Duration::from_secs(1)).await;
    assert_eq!(server.look(|state| (state.writes, state.mood)), (2, Mood::Well));
    stop.cancel();
    assert_eq!(task.await.expect("the task"), ElectionEnd::Stopped);
    assert_eq!(server.stored()["spec"]["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_anew_by_its_holder_not_by_who_had_seen_it() {
    let server = Server::default();
    let (mut one, _stop, _task) = server.candidate("one");
    gained(&mut one).await;
    let (two, _other_stop, _other_task) = server.candidate("two");
    for round in 0..20 {
        time::sleep(Duration::from_millis(4_700)).await;
        server.look(|state| state.stored = None);
        assert!(one.leads() && !two.leads(), "{round}: {} {}", one.leads(), two.leads());
    }
    time::sleep(MINUTE).await;
    assert!(one.leads() && !two.leads());
    assert_eq!(server.stored()["spec"]["holderIdentity"], "one");
}
