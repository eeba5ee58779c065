//! The task against a mock API server, on a paused clock.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::time;

use super::{
    super::{
        EventMetrics, Recorder,
        cache::WRITES_PER_SECOND,
        metrics::DropReason,
        recorder,
        recorder::{CHANNEL_CAPACITY, DRAIN},
    },
    SECOND, record, reporter,
};
use crate::{
    Stop,
    writer::{WriteLimits, WriteMetrics, Writer},
};

/// How the mock server answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ServerMode {
    #[default]
    Healthy,
    Silent,
    Gone,
}

type SeenRequest = (Method, String, Value);

#[derive(Clone, Default)]
struct Server(Arc<Mutex<(ServerMode, Vec<SeenRequest>)>>);

impl Server {
    fn set(&self, mode: ServerMode) {
        self.0.lock().expect("the state").0 = mode;
    }

    fn requests(&self) -> Vec<SeenRequest> {
        self.0.lock().expect("the state").1.clone()
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let mode = {
            let mut state = self.0.lock().expect("the state");
            state.1.push((parts.method, parts.uri.path().to_owned(), body.clone()));
            state.0
        };
        let (code, answer) = match mode {
            ServerMode::Silent => std::future::pending().await,
            ServerMode::Healthy => (StatusCode::OK, body),
            ServerMode::Gone => {
                let status = json!({"status": "Failure", "reason": "NotFound", "code": 404});
                (StatusCode::NOT_FOUND, status)
            }
        };
        let body = Body::from(answer.to_string().into_bytes());
        Ok(Response::builder().status(code).body(body).expect("a response"))
    }
}

/// A mock server, and the task that writes to it.
struct BroadcasterTest {
    server: Server,
    recorder: Recorder,
    metrics: EventMetrics,
    stop: Stop,
    task: tokio::task::JoinHandle<()>,
}

impl BroadcasterTest {
    fn new() -> Self {
        let server = Server::default();
        let service = server.clone();
        let service = tower::service_fn(move |request| service.clone().answer(request));
        let client = Client::new(service, "here");
        let writer = Writer::new(
            client,
            "home",
            WriteLimits { max_in_flight: 1, deadline: 10 * SECOND },
            WriteMetrics::default(),
        );
        let metrics = EventMetrics::default();
        let (recorder, events) = recorder(writer, reporter(), metrics.clone());
        let stop = Stop::new();
        let task = tokio::spawn(events.run(stop.clone()));
        Self { server, recorder, metrics, stop, task }
    }

    /// Stops the task and returns how long it took to end.
    async fn end(self) -> Duration {
        let start = time::Instant::now();
        self.stop.cancel();
        self.task.await.expect("the task");
        start.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_record_creates_an_event_and_the_second_a_series() {
    let test = BroadcasterTest::new();
    test.recorder.record(record("train", "no room"));
    test.recorder.record(record("train", "no room"));
    let (server, metrics) = (test.server.clone(), test.metrics.clone());
    test.end().await;

    assert_eq!((metrics.n_warnings("Job", "Why"), metrics.n_warnings("Job", "Other")), (2, 0));
    let requests = server.requests();
    let [(post, list, event), (patch, path, series)] = &requests[..] else {
        unreachable!("two requests: {requests:?}");
    };
    assert_eq!((post, patch), (&Method::POST, &Method::PATCH));
    assert_eq!(list, "/apis/events.k8s.io/v1/namespaces/ns/events");
    let name = event["metadata"]["name"].as_str().expect("a name");
    assert_eq!(path, &format!("{list}/{name}"));
    assert!(name.starts_with("train."), "{name}");
    assert_eq!(event["reportingController"], "example.com/tests");
    assert_eq!(event["reportingInstance"], "one");
    assert_eq!(event["type"], "Warning");
    assert_eq!([&event["action"], &event["reason"], &event["note"]], ["Act", "Why", "no room"]);
    assert_eq!(
        event["regarding"],
        json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": "ns", "name": "train", "uid": "u"})
    );
    assert_eq!(series["series"]["count"], 2);
    let at = series["series"]["lastObservedTime"].as_str().expect("a time");
    assert_eq!(at.len(), "2026-01-01T00:00:00.000000Z".len(), "{at}");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_event_is_created_again() {
    let test = BroadcasterTest::new();
    let methods = |server: &Server| -> Vec<Method> {
        server.requests().into_iter().map(|(method, ..)| method).collect()
    };
    test.recorder.record(record("train", ""));
    time::sleep(SECOND).await;
    test.server.set(ServerMode::Gone);
    test.recorder.record(record("train", ""));
    time::sleep(SECOND).await;
    test.server.set(ServerMode::Healthy);
    test.recorder.record(record("train", ""));
    time::sleep(SECOND).await;
    assert_eq!(methods(&test.server), [Method::POST, Method::PATCH, Method::POST]);
    assert_eq!(test.metrics.n_dropped(DropReason::Failed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_delays_only_events() {
    let test = BroadcasterTest::new();
    test.server.set(ServerMode::Silent);
    let number = |number: usize| record(&format!("job-{number}"), "");
    test.recorder.record(number(0));
    time::sleep(SECOND).await;
    for one in 1..=CHANNEL_CAPACITY + 3 {
        test.recorder.record(number(one));
    }
    assert_eq!(test.metrics.n_dropped(DropReason::Full), 3);
    let (metrics, recorder) = (test.metrics.clone(), test.recorder.clone());
    let took = test.end().await;
    assert!(took >= DRAIN && took < DRAIN + SECOND, "{took:?}");
    let n_left = u64::try_from(CHANNEL_CAPACITY).expect("a number");
    assert_eq!(metrics.n_dropped(DropReason::Stopped), n_left);
    recorder.record(number(0));
    assert_eq!(metrics.n_dropped(DropReason::Stopped), n_left + 1);
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_spread_over_time_without_drops() {
    let test = BroadcasterTest::new();
    let n_records = 5 * WRITES_PER_SECOND as usize;
    for number in 0..n_records {
        test.recorder.record(record(&format!("job-{number}"), ""));
    }
    time::sleep(SECOND / 2).await;
    let n_soon = test.server.requests().len();
    assert!(
        (WRITES_PER_SECOND as usize..2 * WRITES_PER_SECOND as usize).contains(&n_soon),
        "{n_soon}"
    );
    time::sleep(10 * SECOND).await;
    assert_eq!(test.server.requests().len(), n_records);
    let metrics = test.metrics.clone();
    test.end().await;
    assert_eq!(
        [DropReason::Full, DropReason::Failed, DropReason::Stopped]
            .map(|reason| metrics.n_dropped(reason)),
        [0; 3]
    );
}

#[tokio::test(start_paused = true)]
async fn records_in_the_channel_are_written_after_the_stop() {
    let test = BroadcasterTest::new();
    for number in 0..20 {
        test.recorder.record(record(&format!("job-{number}"), ""));
    }
    let server = test.server.clone();
    test.end().await;
    assert_eq!(server.requests().len(), 20);
}

#[tokio::test]
async fn the_task_ends_when_all_recorders_are_dropped() {
    let BroadcasterTest { recorder, task, server, .. } = BroadcasterTest::new();
    recorder.record(record("train", ""));
    drop(recorder);
    task.await.expect("the task");
    assert_eq!(server.requests().len(), 1);
}
