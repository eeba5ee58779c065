//! The task against a mock API server: streams that expire, fail to start or lose events.
//!
//! The clock is paused, so that backoff takes no time.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Request, Response, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, client::Body, core::Status};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time};

use super::{Change, Config, Guarded, Watch, WatchEnd, WatchMetrics};
use crate::Stop;

/// A timeout on the paused clock: an event that never comes fails the test at once.
const HOUR: Duration = Duration::from_secs(3_600);

/// One response of the server. A watch stream ends after its last line.
#[derive(Clone, Debug)]
enum Answer {
    List(&'static str, Vec<Value>),
    Watch(Vec<Value>),
    /// The response arrives after this many seconds.
    Late(u64, Vec<Value>),
    Never,
    Fails(u16),
}

/// A mock API server: answers requests in order and records them. Without a further response it never answers.
#[derive(Clone, Default)]
struct Server {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<&'static str>>>,
}

impl Server {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        Self { answers, asked: Arc::default() }
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        let consistency_checks = request.headers().get("accept").is_some_and(|one| {
            one.to_str().is_ok_and(|accepted| accepted.contains("PartialObjectMetadataList"))
        });
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let next = self.answers.lock().expect("the answers").pop_front();
        let Some(answer) = next else {
            return std::future::pending().await;
        };
        let question = match (watches, consistency_checks) {
            (true, _) => "watch",
            (false, true) => "look",
            (false, false) => "list",
        };
        self.asked.lock().expect("the questions").push(question);
        let (code, body) = match answer {
            Answer::List(version, items) => {
                let list = json!({
                    "apiVersion": "v1", "kind": "ConfigMapList",
                    "metadata": {"resourceVersion": version}, "items": items,
                });
                (StatusCode::OK, list.to_string())
            }
            Answer::Never => return std::future::pending().await,
            Answer::Late(seconds, lines) => {
                time::sleep(Duration::from_secs(seconds)).await;
                (StatusCode::OK, lines.iter().map(|line| format!("{line}\n")).collect())
            }
            Answer::Watch(lines) => {
                (StatusCode::OK, lines.iter().map(|line| format!("{line}\n")).collect())
            }
            Answer::Fails(code) => {
                let status = Status::failure("no", "Reason").with_code(code);
                let code = StatusCode::from_u16(code).expect("a code");
                (code, serde_json::to_string(&status).expect("JSON"))
            }
        };
        let response = Response::builder().status(code).body(Body::from(body.into_bytes()));
        Ok(response.expect("a response"))
    }

    fn asked(&self) -> Vec<&'static str> {
        self.asked.lock().expect("the questions").clone()
    }
}

fn map(name: &str, version: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "here", "resourceVersion": version},
    })
}

/// Runs a watch against the server and returns the first `wanted` changes as text.
async fn changes(server: &Server, wanted: usize) -> Vec<String> {
    let service = server.clone();
    let service = tower::service_fn(move |request| service.clone().answer(request));
    let api: Api<Guarded<ConfigMap>> = Api::all(Client::new(service, "here"));
    let watch = Watch::new("maps", api, Config::default(), &WatchMetrics::default());
    let watch = watch.check_every(Some(Duration::from_secs(60)));
    let (sender, mut receiver) = mpsc::channel(1);
    let task = tokio::spawn(watch.run(sender, Stop::new()));
    let mut changes = Vec::new();
    while changes.len() < wanted {
        let change = time::timeout(HOUR, receiver.recv()).await.expect("a change in time");
        changes.push(text(&change.expect("a change")));
    }
    drop(receiver);
    assert_eq!(task.await.expect("the task"), WatchEnd::ReceiverClosed);
    changes
}

fn text(change: &Change<ConfigMap>) -> String {
    let name = |map: &ConfigMap| map.metadata.name.clone().unwrap_or_default();
    match change {
        Change::Apply(map) => format!("apply {}", name(map)),
        Change::Delete(key) => format!("delete {key}"),
        Change::Reset { objects, removed } => {
            let objects: Vec<String> = objects.iter().map(name).collect();
            let removed: Vec<String> = removed.iter().map(ToString::to_string).collect();
            format!("reset {objects:?} without {removed:?}")
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_an_expired_version_restarts_and_names_removed_objects() {
    let server = Server::new([
        Answer::List("10", vec![map("a", "1"), map("b", "2")]),
        Answer::Fails(410),
        Answer::List("20", vec![map("b", "2"), map("c", "15")]),
    ]);
    let changes = changes(&server, 2).await;
    assert_eq!(changes, [r#"reset ["a", "b"] without []"#, r#"reset ["c"] without ["here/a"]"#]);
    assert_eq!(server.asked(), ["list", "watch", "list"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_never_starts_restarts_after_five_attempts() {
    let mut answers = vec![Answer::List("10", vec![map("a", "1")])];
    answers.extend(std::iter::repeat_n(Answer::Fails(500), 5));
    answers.push(Answer::List("20", Vec::new()));
    let server = Server::new(answers);
    let changes = changes(&server, 2).await;
    assert_eq!(changes, [r#"reset ["a"] without []"#, r#"reset [] without ["here/a"]"#]);
    assert_eq!(server.asked(), ["list", "watch", "watch", "watch", "watch", "watch", "list"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_list_is_retried() {
    let failures = std::iter::repeat_n(Answer::Fails(503), 7);
    let server = Server::new(failures.chain([Answer::List("10", vec![map("a", "1")])]));
    assert_eq!(changes(&server, 1).await, [r#"reset ["a"] without []"#]);
    assert_eq!(server.asked(), ["list"; 8]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_reports_an_expired_version_restarts_with_a_list() {
    let gone = Status::failure("too old", "Expired").with_code(410);
    let server = Server::new([
        Answer::List("10", vec![map("a", "1")]),
        Answer::Watch(vec![
            json!({"type": "ADDED", "object": map("b", "11")}),
            json!({"type": "DELETED", "object": map("b", "12")}),
            json!({"type": "ERROR", "object": gone}),
        ]),
        Answer::List("20", vec![map("d", "20")]),
    ]);
    let expected = [
        r#"reset ["a"] without []"#,
        "apply b",
        "delete here/b",
        r#"reset ["d"] without ["here/a"]"#,
    ];
    assert_eq!(changes(&server, 4).await, expected);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_the_server_lost_is_detected() {
    let all = vec![map("a", "1"), map("b", "15")];
    let server = Server::new([
        Answer::List("10", vec![map("a", "1"), map("c", "2")]),
        Answer::Never,
        Answer::List("20", all.clone()),
        Answer::List("20", all),
    ]);
    let changes = changes(&server, 2).await;
    assert_eq!(changes, [r#"reset ["a", "c"] without []"#, r#"reset ["b"] without ["here/c"]"#]);
    assert_eq!(server.asked(), ["list", "watch", "look", "list"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_in_flight_is_not_reported_as_lost() {
    let all = vec![map("a", "1"), map("b", "15")];
    let more = vec![map("a", "1"), map("b", "15"), map("c", "30")];
    let server = Server::new([
        Answer::List("10", vec![map("a", "1")]),
        Answer::Late(55, vec![json!({"type": "ADDED", "object": map("b", "15")})]),
        Answer::List("20", all),
        Answer::Never,
        Answer::List("40", more.clone()),
        Answer::List("40", more),
    ]);
    let expected = [r#"reset ["a"] without []"#, "apply b", r#"reset ["c"] without []"#];
    assert_eq!(changes(&server, 3).await, expected);
    assert_eq!(server.asked(), ["list", "watch", "look", "watch", "look", "list"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_consistency_list_is_retried_after_the_interval() {
    let all = vec![map("a", "1"), map("b", "15")];
    let server = Server::new([
        Answer::List("10", vec![map("a", "1")]),
        Answer::Never,
        Answer::Fails(500),
        Answer::List("20", all.clone()),
        Answer::List("20", all),
    ]);
    assert_eq!(changes(&server, 2).await.last().expect("a change"), r#"reset ["b"] without []"#);
    assert_eq!(server.asked(), ["list", "watch", "look", "look", "list"]);
}
