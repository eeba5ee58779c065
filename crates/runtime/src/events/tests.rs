//! The book against tables, and the task against a server that is played, on a stopped clock.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use jiff::{SignedDuration, Timestamp};
use kube::{Client, client::Body};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time;

use super::{
    EventMetrics, EventRecord, EventType, Recorder, Regarding, Reporter,
    book::{Book, Decision, MEMORY, MOST, Now, PACE},
    metrics::Lost,
    recorder,
    recorder::{BACKLOG, DRAIN},
};
use crate::{
    Stop,
    watch::Key,
    writer::{WriteMetrics, Writer},
};

const SECOND: Duration = Duration::from_secs(1);

fn reporter() -> Reporter {
    Reporter { component: "example.com/tests".to_owned(), instance: "one".to_owned() }
}

fn news(name: &str, note: &str) -> EventRecord {
    let regarding = Regarding {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
        key: Key { namespace: Some("ns".into()), name: name.into() },
        uid: "u".to_owned(),
    };
    EventRecord {
        regarding,
        event_type: EventType::Warning,
        action: "Act".to_owned(),
        reason: "Why".to_owned(),
        note: note.to_owned(),
    }
}

/// A book and its clock.
struct Desk {
    book: Book,
    start: Instant,
    passed: Duration,
}

impl Desk {
    fn new() -> Self {
        Self { book: Book::new(reporter()), start: Instant::now(), passed: Duration::ZERO }
    }

    fn now(&self) -> Now {
        let passed = SignedDuration::try_from(self.passed).expect("a short time");
        Now { steady: self.start + self.passed, wall: Timestamp::UNIX_EPOCH + passed }
    }

    fn enter(&mut self, news: &EventRecord) -> Decision {
        self.book.enter(news, self.now())
    }

    /// In one word, and the count of a series.
    fn told(&mut self, news: &EventRecord) -> String {
        words(&self.enter(news))
    }

    /// Empties the bucket with news about others.
    fn use_up(&mut self) {
        for number in 0.. {
            if matches!(self.enter(&news(&format!("filler-{number}"), "")), Decision::Wait(_)) {
                return;
            }
        }
    }
}

fn words(decision: &Decision) -> String {
    match decision {
        Decision::Create(..) => "create".to_owned(),
        Decision::Series { count, .. } => format!("series {count}"),
        Decision::Wait(_) => "wait".to_owned(),
        Decision::Counted => "counted".to_owned(),
    }
}

#[test]
fn equal_news_are_one_event_that_counts_and_others_are_not() {
    let mut desk = Desk::new();
    let first = news("train", "no room");
    assert_eq!(desk.told(&first), "create");
    assert_eq!(desk.told(&first), "series 2");
    assert_eq!(desk.told(&first), "series 3");
    for other in [
        news("train", "room"),
        news("other", "no room"),
        EventRecord { event_type: EventType::Normal, ..first.clone() },
        EventRecord { reason: "Other".to_owned(), ..first.clone() },
        EventRecord { action: "Other".to_owned(), ..first.clone() },
    ] {
        assert_eq!(desk.told(&other), "create", "{other:?}");
    }
    assert_eq!(desk.told(&first), "series 4");
}

#[test]
fn a_series_ends_ten_minutes_after_its_last() {
    let mut desk = Desk::new();
    let news = news("train", "no room");
    assert_eq!(desk.told(&news), "create");
    desk.passed += MEMORY - SECOND;
    assert_eq!(desk.told(&news), "series 2");
    desk.passed += MEMORY - SECOND;
    assert_eq!(desk.told(&news), "series 3");
    desk.passed += MEMORY;
    assert_eq!(desk.told(&news), "create");
    assert_eq!(desk.told(&news), "series 2");
}

#[test]
fn new_ones_wait_for_a_token_and_repeats_are_counted_and_told_later() {
    let mut desk = Desk::new();
    let first = news("train", "no room");
    assert_eq!(desk.told(&first), "create");
    desk.use_up();
    assert_eq!(desk.told(&news("other", "")), "wait");
    assert_eq!(desk.told(&first), "counted");
    assert_eq!(desk.told(&first), "counted");
    assert_eq!(desk.book.untold(desk.now()), None);
    assert_eq!(desk.book.n_untold(), 2);
    desk.passed += SECOND;
    let told = desk.book.untold(desk.now()).expect("a count");
    assert_eq!(words(&told), "series 3");
    assert_eq!(desk.book.n_untold(), 0);
    assert_eq!(desk.book.untold(desk.now()), None);
}

#[test]
fn waiting_enters_nothing() {
    let mut desk = Desk::new();
    desk.use_up();
    let late = news("late", "");
    let Decision::Wait(wait) = desk.enter(&late) else {
        unreachable!("the bucket is empty");
    };
    desk.passed += wait;
    assert_eq!(desk.told(&late), "create");
}

#[test]
fn what_was_forgotten_is_new() {
    let mut desk = Desk::new();
    let news = news("train", "no room");
    let Decision::Create(first, _) = desk.enter(&news) else {
        unreachable!("it is the first");
    };
    desk.book.forget(&first);
    let Decision::Create(second, event) = desk.enter(&news) else {
        unreachable!("it was forgotten");
    };
    assert_ne!(first, second);
    assert_eq!(event.metadata.name.as_deref(), Some(&*second.name));
    assert_eq!(event.series, None);
}

#[test]
fn a_full_book_forgets_the_quietest() {
    let mut desk = Desk::new();
    let step = SECOND / PACE;
    let name = |number: usize| news(&format!("job-{number}"), "");
    for number in 0..MOST {
        assert_eq!(desk.told(&name(number)), "create");
        desk.passed += step;
    }
    assert_eq!(desk.told(&name(0)), "series 2");
    desk.passed += step;
    assert_eq!(desk.told(&name(MOST)), "create");
    desk.passed += step;
    assert_eq!(desk.told(&name(0)), "series 3");
    desk.passed += step;
    assert_eq!(desk.told(&name(1)), "create");
}

proptest! {
    #[test]
    fn counts_add_up_and_names_are_never_used_twice(
        steps in prop::collection::vec((0_usize..6, 0_u64..60), 1..300),
    ) {
        let mut desk = Desk::new();
        let mut names = std::collections::BTreeSet::new();
        let mut entered = 0;
        let mut told = std::collections::BTreeMap::<Key, i32>::new();
        for (which, pause) in steps {
            desk.passed += Duration::from_millis(pause);
            let decision = desk.enter(&news(&format!("job-{which}"), ""));
            entered += i32::from(!matches!(decision, Decision::Wait(_)));
            match decision {
                Decision::Create(key, _) => {
                    prop_assert!(names.insert(key.clone()));
                    told.insert(key, 1);
                }
                Decision::Series { key, count, .. } => {
                    let before = told.insert(key, count).expect("it was created");
                    prop_assert!(count > before && count >= 2);
                }
                Decision::Wait(_) | Decision::Counted => {}
            }
        }
        loop {
            desk.passed += SECOND;
            match desk.book.untold(desk.now()) {
                Some(Decision::Series { key, count, .. }) => told.insert(key, count),
                _ => break,
            };
        }
        prop_assert_eq!(told.values().sum::<i32>(), entered);
    }
}

/// How the server answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mood {
    #[default]
    Well,
    Silent,
    Gone,
}

type Asked = (Method, String, Value);

#[derive(Clone, Default)]
struct Server(Arc<Mutex<(Mood, Vec<Asked>)>>);

impl Server {
    fn set(&self, mood: Mood) {
        self.0.lock().expect("the state").0 = mood;
    }

    fn asked(&self) -> Vec<Asked> {
        self.0.lock().expect("the state").1.clone()
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let mood = {
            let mut state = self.0.lock().expect("the state");
            state.1.push((parts.method, parts.uri.path().to_owned(), body.clone()));
            state.0
        };
        let (code, answer) = match mood {
            Mood::Silent => std::future::pending().await,
            Mood::Well => (StatusCode::OK, body),
            Mood::Gone => {
                let status = json!({"status": "Failure", "reason": "NotFound", "code": 404});
                (StatusCode::NOT_FOUND, status)
            }
        };
        let body = Body::from(answer.to_string().into_bytes());
        Ok(Response::builder().status(code).body(body).expect("a response"))
    }
}

/// A server, and the task that writes to it.
struct World {
    server: Server,
    recorder: Recorder,
    metrics: EventMetrics,
    stop: Stop,
    task: tokio::task::JoinHandle<()>,
}

impl World {
    fn new() -> Self {
        let server = Server::default();
        let service = server.clone();
        let service = tower::service_fn(move |request| service.clone().answer(request));
        let client = Client::new(service, "here");
        let writer = Writer::new(client, "home", 1, 10 * SECOND, WriteMetrics::default());
        let metrics = EventMetrics::default();
        let (recorder, events) = recorder(writer, reporter(), metrics.clone());
        let stop = Stop::new();
        let task = tokio::spawn(events.run(stop.clone()));
        Self { server, recorder, metrics, stop, task }
    }

    /// Stops the task; how long it took to end.
    async fn end(self) -> Duration {
        let start = time::Instant::now();
        self.stop.cancel();
        self.task.await.expect("the task");
        start.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_is_created_and_a_second_counted() {
    let world = World::new();
    world.recorder.record(news("train", "no room"));
    world.recorder.record(news("train", "no room"));
    let server = world.server.clone();
    world.end().await;

    let asked = server.asked();
    let [(post, list, event), (patch, path, series)] = &asked[..] else {
        unreachable!("two requests: {asked:?}");
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
async fn an_event_that_is_gone_is_made_anew() {
    let world = World::new();
    let methods = |server: &Server| -> Vec<Method> {
        server.asked().into_iter().map(|(method, ..)| method).collect()
    };
    world.recorder.record(news("train", ""));
    time::sleep(SECOND).await;
    world.server.set(Mood::Gone);
    world.recorder.record(news("train", ""));
    time::sleep(SECOND).await;
    world.server.set(Mood::Well);
    world.recorder.record(news("train", ""));
    time::sleep(SECOND).await;
    assert_eq!(methods(&world.server), [Method::POST, Method::PATCH, Method::POST]);
    assert_eq!(world.metrics.n_lost(Lost::Failed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_costs_events_and_nothing_else() {
    let world = World::new();
    world.server.set(Mood::Silent);
    let number = |number: usize| news(&format!("job-{number}"), "");
    world.recorder.record(number(0));
    time::sleep(SECOND).await;
    for one in 1..=BACKLOG + 3 {
        world.recorder.record(number(one));
    }
    assert_eq!(world.metrics.n_lost(Lost::Full), 3);
    let (metrics, recorder) = (world.metrics.clone(), world.recorder.clone());
    let took = world.end().await;
    assert!(took >= DRAIN && took < DRAIN + SECOND, "{took:?}");
    let n_left = u64::try_from(BACKLOG).expect("a number");
    assert_eq!(metrics.n_lost(Lost::Stopped), n_left);
    recorder.record(number(0));
    assert_eq!(metrics.n_lost(Lost::Stopped), n_left + 1);
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_spread_over_time_and_nothing_of_it_is_lost() {
    let world = World::new();
    let n_told = 5 * PACE as usize;
    for number in 0..n_told {
        world.recorder.record(news(&format!("job-{number}"), ""));
    }
    time::sleep(SECOND / 2).await;
    let n_soon = world.server.asked().len();
    assert!((PACE as usize..2 * PACE as usize).contains(&n_soon), "{n_soon}");
    time::sleep(10 * SECOND).await;
    assert_eq!(world.server.asked().len(), n_told);
    let metrics = world.metrics.clone();
    world.end().await;
    assert_eq!([Lost::Full, Lost::Failed, Lost::Stopped].map(|why| metrics.n_lost(why)), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_at_the_stop_is_still_written() {
    let world = World::new();
    for number in 0..20 {
        world.recorder.record(news(&format!("job-{number}"), ""));
    }
    let server = world.server.clone();
    world.end().await;
    assert_eq!(server.asked().len(), 20);
}

#[tokio::test]
async fn the_task_ends_when_nobody_can_tell_any_more() {
    let World { recorder, task, server, .. } = World::new();
    recorder.record(news("train", ""));
    drop(recorder);
    task.await.expect("the task");
    assert_eq!(server.asked().len(), 1);
}
