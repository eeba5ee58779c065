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
use kube::{Client, client::Body, core::Status};
use prometheus_client::{encoding::text, registry::Registry};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time};

use super::{Change, Key, KindDecoder, Stores, Watch, WatchEnd, WatchMetrics, WatchSource};
use crate::Stop;

/// A timeout on the paused clock: an event that never comes fails the test at once.
const HOUR: Duration = Duration::from_secs(3_600);

/// One response of the server. A watch stream ends after its last line.
#[derive(Clone, Debug)]
enum Answer {
    List(&'static str, Vec<Value>),
    /// A page of a list, with a token that gets the same page again. It takes a second.
    Endless(Vec<Value>),
    Watch(Vec<Value>),
    /// The response arrives after this many seconds.
    Late(u64, Vec<Value>),
    Never,
    Fails(u16),
    /// The page of a program between, for a path that it does not know.
    NoPage,
}

/// A mock API server: answers requests in order and records them. Without a further response it never answers.
#[derive(Clone, Default)]
struct Server {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<&'static str>>>,
    /// The page of an endless list.
    page: Arc<Mutex<Vec<Value>>>,
    /// The resources that discovery lists.
    resources: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        Self { answers, ..Self::default() }
    }

    /// The API server serves the kind: each 404 about it comes from a program between.
    fn serving(self) -> Self {
        self.resources.lock().expect("the resources").push(json!({"name": "configmaps"}));
        self
    }

    fn discovery(&self) -> Response<Body> {
        let resources = self.resources.lock().expect("the resources").clone();
        let list = json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": resources});
        Response::new(Body::from(list.to_string().into_bytes()))
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        if request.uri().path() == "/api/v1" {
            return Ok(self.discovery());
        }
        let consistency_checks = request.headers().get("accept").is_some_and(|one| {
            one.to_str().is_ok_and(|accepted| accepted.contains("PartialObjectMetadataList"))
        });
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let continues = request.uri().query().is_some_and(|query| query.contains("continue="));
        let next = if continues {
            Some(Answer::Endless(self.page.lock().expect("the page").clone()))
        } else {
            self.answers.lock().expect("the answers").pop_front()
        };
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
            Answer::Endless(items) => {
                self.page.lock().expect("the page").clone_from(&items);
                time::sleep(Duration::from_secs(1)).await;
                let list = json!({
                    "apiVersion": "v1", "kind": "ConfigMapList",
                    "metadata": {"resourceVersion": "1", "continue": "more"}, "items": items,
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
            Answer::NoPage => (StatusCode::NOT_FOUND, "default backend - 404".to_owned()),
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

/// A watch of the server, with consistency checks.
fn watch_of(server: &Server, metrics: &WatchMetrics) -> Watch<ConfigMap> {
    let service = server.clone();
    let service = tower::service_fn(move |request| service.clone().answer(request));
    let source = WatchSource::all(Client::new(service, "here"));
    Watch::typed("maps", |text| serde_json::from_str(text), &source, metrics)
        .check_every(Some(Duration::from_secs(60)))
}

/// Runs a watch against the server and returns the first `wanted` changes as text.
async fn changes(server: &Server, wanted: usize) -> Vec<String> {
    changes_of(watch_of(server, &WatchMetrics::default()), wanted).await
}

/// Runs a watch and returns the first `wanted` changes as text.
async fn changes_of(watch: Watch<ConfigMap>, wanted: usize) -> Vec<String> {
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
    let name = |map: &Arc<ConfigMap>| map.metadata.name.clone().unwrap_or_default();
    match change {
        Change::Apply(map) => format!("apply {}", name(map)),
        Change::Delete(key) => format!("delete {key}"),
        Change::Reset { objects, removed } => {
            let objects: Vec<String> = objects.iter().map(name).collect();
            format!("reset {objects:?} without {:?}", names(removed))
        }
        Change::Unavailable { reason, removed } => {
            format!("{reason:?} without {:?}", names(removed))
        }
    }
}

fn names(keys: &[Key]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
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

/// The name of a server may not be found: the client's own words are only that it could not connect.
#[derive(Debug, thiserror::Error)]
#[error("no connection")]
struct NoConnection(#[source] std::io::Error);

#[tokio::test(start_paused = true)]
async fn the_log_names_the_causes_of_a_failure() {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let writer = Mutex::new(log.reopen().expect("the file"));
    let lines = tracing_subscriber::fmt().with_ansi(false).with_writer(writer).finish();
    let _guard = tracing::subscriber::set_default(lines);
    let unreachable = tower::service_fn(|_: Request<Body>| async {
        let cause = std::io::Error::other("name or service not known");
        Err::<Response<Body>, _>(NoConnection(cause))
    });
    let source = WatchSource::all(Client::new(unreachable, "here"));
    let metrics = WatchMetrics::default();
    let watch: Watch<ConfigMap> =
        Watch::typed("maps", |text| serde_json::from_str(text), &source, &metrics);
    let (sender, _receiver) = mpsc::channel(1);
    let ended = time::timeout(Duration::from_millis(1), watch.run(sender, Stop::new())).await;
    assert!(ended.is_err(), "the watch tries again");
    let log = std::fs::read_to_string(log.path()).expect("the log");
    assert!(log.contains("no connection: name or service not known"), "{log}");
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
async fn a_list_that_does_not_end_is_started_again() {
    for page in [Vec::new(), vec![map("a", "1")]] {
        let server = Server::new([
            Answer::Endless(page),
            Answer::Never,
            Answer::List("10", vec![map("b", "2")]),
        ]);
        assert_eq!(changes(&server, 1).await, [r#"reset ["b"] without []"#]);
    }
}

#[tokio::test(start_paused = true)]
async fn consistency_checks_do_not_delay_the_end_of_a_list_that_gives_nothing() {
    let gone = Status::failure("too old", "Expired").with_code(410);
    let all = || Answer::List("20", vec![map("a", "1")]);
    let server = Server::new([
        Answer::List("10", vec![map("a", "1")]),
        Answer::Watch(vec![json!({"type": "ERROR", "object": gone})]),
        Answer::Never,
        all(),
        all(),
        Answer::List("30", vec![map("b", "25")]),
    ]);
    let expected = [r#"reset ["a"] without []"#, r#"reset ["b"] without ["here/a"]"#];
    assert_eq!(changes(&server, 2).await, expected);
    assert_eq!(server.asked(), ["list", "watch", "list", "look", "look", "list"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_end_is_tried_less_and_less_often() {
    const ATTEMPTS: u32 = 6;
    // Objects repeat on the third page.
    for (answer, seconds) in [
        (Answer::Never, 150),
        (Answer::Endless(Vec::new()), 150),
        (Answer::Endless(vec![map("a", "1")]), 3),
    ] {
        let before = time::Instant::now();
        let endless = std::iter::repeat_n(answer.clone(), ATTEMPTS as usize);
        let server = Server::new(endless.chain([Answer::List("10", Vec::new())]));
        changes(&server, 1).await;
        let pauses = before.elapsed().saturating_sub(Duration::from_secs(seconds) * ATTEMPTS);
        // From half a second to 16 s.
        assert!(pauses >= Duration::from_secs(31), "{answer:?}: {pauses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_consistency_list_that_does_not_end_is_given_up() {
    let all = vec![map("a", "1"), map("b", "15")];
    let server = Server::new([
        Answer::List("10", vec![map("a", "1")]),
        Answer::Never,
        Answer::Endless(vec![map("a", "1")]),
        Answer::List("20", all.clone()),
        Answer::List("20", all),
    ]);
    let expected = [r#"reset ["a"] without []"#, r#"reset ["b"] without []"#];
    assert_eq!(changes(&server, 2).await, expected);
    assert_eq!(server.asked(), ["list", "watch", "look", "look", "look", "list"]);
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

/// Runs a watch of an optional kind and returns the first `wanted` changes as text.
async fn optional_changes(server: &Server, wanted: usize) -> Vec<String> {
    changes_of(watch_of(server, &WatchMetrics::default()).optional(), wanted).await
}

#[tokio::test(start_paused = true)]
async fn an_absent_optional_kind_is_reported_once_and_appears_later() {
    let absent = std::iter::repeat_n(Answer::Fails(404), 9);
    let server = Server::new(absent.chain([
        Answer::List("10", vec![map("a", "1")]),
        Answer::Watch(vec![json!({"type": "ADDED", "object": map("b", "11")})]),
    ]));
    let expected = ["NotServed without []", r#"reset ["a"] without []"#, "apply b"];
    assert_eq!(optional_changes(&server, 3).await, expected);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_kind_is_tried_at_least_every_minute() {
    let before = time::Instant::now();
    let absent = std::iter::repeat_n(Answer::Fails(404), 20);
    let server = Server::new(absent.chain([Answer::List("10", Vec::new())]));
    assert_eq!(optional_changes(&server, 2).await[1], "reset [] without []");
    assert!(before.elapsed() <= Duration::from_secs(20 * 60), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_optional_kind_that_vanishes_removes_its_objects() {
    let server = Server::new([
        Answer::List("10", vec![map("a", "1"), map("b", "2")]),
        Answer::Watch(vec![json!({"type": "DELETED", "object": map("a", "11")})]),
        Answer::Fails(404),
        Answer::Fails(404),
        Answer::List("20", vec![map("b", "2"), map("c", "15")]),
    ]);
    let expected = [
        r#"reset ["a", "b"] without []"#,
        "delete here/a",
        r#"NotServed without ["here/b"]"#,
        r#"reset ["b", "c"] without []"#,
    ];
    assert_eq!(optional_changes(&server, 4).await, expected);
    assert_eq!(server.asked(), ["list", "watch", "watch", "list", "list"]);
}

/// The page of an ingress or a load balancer, or of an API server that is not ready.
#[tokio::test(start_paused = true)]
async fn a_404_of_a_kind_that_is_served_removes_nothing() {
    let server = Server::new([
        Answer::List("10", vec![map("a", "1"), map("b", "2")]),
        Answer::NoPage,
        Answer::Watch(vec![json!({"type": "DELETED", "object": map("a", "11")})]),
        Answer::Fails(404),
        Answer::Fails(410),
        Answer::NoPage,
        Answer::List("20", vec![map("b", "2"), map("c", "15")]),
    ]);
    let expected = [r#"reset ["a", "b"] without []"#, "delete here/a", r#"reset ["c"] without []"#];
    assert_eq!(optional_changes(&server.clone().serving(), 3).await, expected);
    let asked = ["list", "watch", "watch", "watch", "watch", "list", "list"];
    assert_eq!(server.asked(), asked);
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_kind_keeps_its_objects_and_is_compared_when_it_is_granted_again() {
    let server = Server::new([
        Answer::List("10", vec![map("a", "1"), map("b", "2"), map("c", "3")]),
        Answer::Watch(Vec::new()),
        Answer::Fails(403),
        Answer::Fails(403),
        Answer::List("20", vec![map("a", "1"), map("b", "15")]),
    ]);
    let expected = [
        r#"reset ["a", "b", "c"] without []"#,
        "Forbidden without []",
        r#"reset ["b"] without ["here/c"]"#,
    ];
    assert_eq!(optional_changes(&server, 3).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_required_kind_is_never_reported_as_unavailable() {
    let failures = [Answer::Fails(404), Answer::Fails(403)];
    let server = Server::new(failures.into_iter().chain([Answer::List("10", Vec::new())]));
    assert_eq!(changes(&server, 1).await, ["reset [] without []"]);
}

#[tokio::test(start_paused = true)]
async fn a_gauge_says_whether_a_kind_is_available() {
    let (absent, list) = (Answer::Fails(404), || Answer::List("10", Vec::new()));
    for (answers, n_changes, expected) in [
        (vec![absent.clone()], 1, "0"),
        (vec![absent, list()], 2, "1"),
        (vec![list(), Answer::Fails(403)], 2, "0"),
        (vec![list(), Answer::Fails(403), list()], 3, "1"),
    ] {
        let server = Server::new(answers);
        let metrics = WatchMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let (sender, mut changes) = mpsc::channel(1);
        let task = tokio::spawn(watch_of(&server, &metrics).optional().run(sender, Stop::new()));
        for _ in 0..n_changes {
            changes.recv().await.expect("a change");
        }
        let mut text = String::new();
        text::encode(&mut text, &registry).expect("text");
        let line = format!("watch_available{{watch=\"maps\"}} {expected}\n");
        assert!(text.contains(&line), "{text}");
        task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_known_at_run_time_is_decoded_by_a_function() {
    let server = Server::new([
        Answer::List("10", vec![map("a", "1"), map("b", "2")]),
        Answer::Watch(vec![json!({"type": "ADDED", "object": map("c", "11")})]),
    ]);
    let service = server.clone();
    let service = tower::service_fn(move |request| service.clone().answer(request));
    let source = WatchSource::all(Client::new(service, "here"));
    let resource = kube::core::ApiResource::erase::<ConfigMap>(&());
    let decode = |value: Value| match value["metadata"]["name"].as_str() {
        Some("b") => Err("it is b"),
        name => Ok(name.map(str::to_owned)),
    };
    let metrics = WatchMetrics::default();
    let watch: Watch<Option<String>> =
        Watch::from_json("maps", KindDecoder { resource: &resource, decode }, &source, &metrics);
    let (sender, mut changes) = mpsc::channel(1);
    let task = tokio::spawn(watch.run(sender, Stop::new()));
    let named = |name: &str| Arc::new(Some(name.to_owned()));
    let objects = vec![named("a")];
    let expected = Change::Reset { objects, removed: Vec::new() };
    assert_eq!(changes.recv().await, Some(expected));
    assert_eq!(changes.recv().await, Some(Change::Apply(named("c"))));
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_watched_once_however_many_components_read_it() {
    let server = Server::new([Answer::List("10", vec![map("a", "1")])]);
    let service = server.clone();
    let service = tower::service_fn(move |request| service.clone().answer(request));
    let (metrics, stop) = (WatchMetrics::default(), Stop::new());
    let client = Client::new(service, "here");
    let mut stores = Stores::new(client, &metrics, stop.clone());
    let mut subscriptions =
        [(); 2].map(|()| stores.of::<ConfigMap>(|text| serde_json::from_str(text)).subscribe());
    for subscription in &mut subscriptions {
        assert_eq!(text(&subscription.next().await), r#"reset ["a"] without []"#);
    }
    let late =
        text(&stores.of::<ConfigMap>(|text| serde_json::from_str(text)).subscribe().next().await);
    assert_eq!(late, r#"reset ["a"] without []"#);
    assert_eq!(server.asked(), ["list"]);
    stop.cancel();
    stores.run().await;
}
