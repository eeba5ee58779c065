//! The cache against tables, on a clock of its own.

mod broadcaster;

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::{
    EventRecord, EventType, Regarding, Reporter,
    cache::{CAPACITY, EventCache, EventDecision, EventTime, SERIES_TTL, WRITES_PER_SECOND},
};
use crate::watch::Key;

const SECOND: Duration = Duration::from_secs(1);

fn reporter() -> Reporter {
    Reporter { component: "example.com/tests".to_owned(), instance: "one".to_owned() }
}

fn record(name: &str, note: &str) -> EventRecord {
    let regarding = Regarding {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
        key: Key { namespace: Some("ns".into()), name: name.into() },
        uid: "u".to_owned(),
        version: String::new(),
    };
    EventRecord {
        regarding,
        event_type: EventType::Warning,
        action: "Act".to_owned(),
        reason: "Why".to_owned(),
        note: note.to_owned(),
        controller: None,
    }
}

/// A cache with a clock of its own.
struct ClockedCache {
    inner: EventCache,
    start: Instant,
    passed: Duration,
}

impl ClockedCache {
    fn new() -> Self {
        Self { inner: EventCache::new(reporter()), start: Instant::now(), passed: Duration::ZERO }
    }

    fn now(&self) -> EventTime {
        let passed = SignedDuration::try_from(self.passed).expect("a short time");
        EventTime { steady: self.start + self.passed, wall: Timestamp::UNIX_EPOCH + passed }
    }

    fn handle(&mut self, record: &EventRecord) -> EventDecision {
        self.inner.handle(record, self.now())
    }

    /// The decision as text, with the count of a series.
    fn outcome(&mut self, record: &EventRecord) -> String {
        words(&self.handle(record))
    }

    /// Uses up all tokens with unrelated records.
    fn use_up(&mut self) {
        for number in 0.. {
            if matches!(
                self.handle(&record(&format!("filler-{number}"), "")),
                EventDecision::Wait(_)
            ) {
                return;
            }
        }
    }
}

fn words(decision: &EventDecision) -> String {
    match decision {
        EventDecision::Create(..) => "create".to_owned(),
        EventDecision::Series { count, .. } => format!("series {count}"),
        EventDecision::Wait(_) => "wait".to_owned(),
        EventDecision::Counted => "counted".to_owned(),
    }
}

#[test]
fn equal_records_are_one_series_and_others_are_not() {
    let mut cache = ClockedCache::new();
    let first = record("train", "no room");
    assert_eq!(cache.outcome(&first), "create");
    assert_eq!(cache.outcome(&first), "series 2");
    assert_eq!(cache.outcome(&first), "series 3");
    for other in [
        record("train", "room"),
        record("other", "no room"),
        EventRecord { event_type: EventType::Normal, ..first.clone() },
        EventRecord { reason: "Other".to_owned(), ..first.clone() },
        EventRecord { action: "Other".to_owned(), ..first.clone() },
    ] {
        assert_eq!(cache.outcome(&other), "create", "{other:?}");
    }
    assert_eq!(cache.outcome(&first), "series 4");
}

/// One preemptor has a record for each of its victims.
#[test]
fn records_about_one_version_are_one_series_whatever_their_notes() {
    let mut cache = ClockedCache::new();
    let about = |version: &str, note: &str| {
        let mut one = record("train", note);
        version.clone_into(&mut one.regarding.version);
        one
    };
    let first = about("7", "preempted a");
    let EventDecision::Create(_, event) = cache.handle(&first) else { panic!("a new Event") };
    assert_eq!(event.note.as_deref(), Some("preempted a"));
    let regarding = event.regarding.expect("its object");
    assert_eq!(regarding.resource_version.as_deref(), Some("7"));
    assert_eq!(cache.outcome(&about("7", "preempted b")), "series 2");
    assert_eq!(cache.outcome(&about("8", "preempted c")), "create");
    let other = EventRecord { reason: "Other".to_owned(), ..first };
    assert_eq!(cache.outcome(&other), "create");
}

#[test]
fn a_series_ends_ten_minutes_after_its_last_record() {
    let mut cache = ClockedCache::new();
    let record = record("train", "no room");
    assert_eq!(cache.outcome(&record), "create");
    cache.passed += SERIES_TTL - SECOND;
    assert_eq!(cache.outcome(&record), "series 2");
    cache.passed += SERIES_TTL - SECOND;
    assert_eq!(cache.outcome(&record), "series 3");
    cache.passed += SERIES_TTL;
    assert_eq!(cache.outcome(&record), "create");
    assert_eq!(cache.outcome(&record), "series 2");
}

#[test]
fn new_events_wait_for_a_token_and_repeated_ones_are_counted() {
    let mut cache = ClockedCache::new();
    let first = record("train", "no room");
    assert_eq!(cache.outcome(&first), "create");
    cache.use_up();
    assert_eq!(cache.outcome(&record("other", "")), "wait");
    assert_eq!(cache.outcome(&first), "counted");
    assert_eq!(cache.outcome(&first), "counted");
    assert_eq!(cache.inner.unwritten_series(cache.now()), None);
    assert_eq!(cache.inner.n_unwritten(), 2);
    cache.passed += SECOND;
    let written = cache.inner.unwritten_series(cache.now()).expect("a count");
    assert_eq!(words(&written), "series 3");
    assert_eq!(cache.inner.n_unwritten(), 0);
    assert_eq!(cache.inner.unwritten_series(cache.now()), None);
}

#[test]
fn waiting_for_a_token_does_not_change_the_cache() {
    let mut cache = ClockedCache::new();
    cache.use_up();
    let late = record("late", "");
    let EventDecision::Wait(wait) = cache.handle(&late) else {
        unreachable!("the bucket is empty");
    };
    cache.passed += wait;
    assert_eq!(cache.outcome(&late), "create");
}

#[test]
fn a_dropped_series_starts_again_with_a_new_event() {
    let mut cache = ClockedCache::new();
    let record = record("train", "no room");
    let EventDecision::Create(first, _) = cache.handle(&record) else {
        unreachable!("it is the first");
    };
    cache.inner.forget(&first);
    let EventDecision::Create(second, event) = cache.handle(&record) else {
        unreachable!("it was forgotten");
    };
    assert_ne!(first, second);
    assert_eq!(event.metadata.name.as_deref(), Some(&*second.name));
    assert_eq!(event.series, None);
}

#[test]
fn a_full_cache_evicts_the_series_that_was_quiet_the_longest() {
    let mut cache = ClockedCache::new();
    let step = SECOND / WRITES_PER_SECOND;
    let name = |number: usize| record(&format!("job-{number}"), "");
    for number in 0..CAPACITY {
        assert_eq!(cache.outcome(&name(number)), "create");
        cache.passed += step;
    }
    assert_eq!(cache.outcome(&name(0)), "series 2");
    cache.passed += step;
    assert_eq!(cache.outcome(&name(CAPACITY)), "create");
    cache.passed += step;
    assert_eq!(cache.outcome(&name(0)), "series 3");
    cache.passed += step;
    assert_eq!(cache.outcome(&name(1)), "create");
}

proptest! {
    #[test]
    fn counts_add_up_and_event_names_are_unique(
        steps in prop::collection::vec((0_usize..6, 0_u64..60), 1..300),
    ) {
        let mut cache = ClockedCache::new();
        let mut names = std::collections::BTreeSet::new();
        let mut entered = 0;
        let mut written = std::collections::BTreeMap::<Key, i32>::new();
        for (which, pause) in steps {
            cache.passed += Duration::from_millis(pause);
            let decision = cache.handle(&record(&format!("job-{which}"), ""));
            entered += i32::from(!matches!(decision, EventDecision::Wait(_)));
            match decision {
                EventDecision::Create(key, _) => {
                    prop_assert!(names.insert(key.clone()));
                    written.insert(key, 1);
                }
                EventDecision::Series { key, count, .. } => {
                    let before = written.insert(key, count).expect("it was created");
                    prop_assert!(count > before && count >= 2);
                }
                EventDecision::Wait(_) | EventDecision::Counted => {}
            }
        }
        loop {
            cache.passed += SECOND;
            match cache.inner.unwritten_series(cache.now()) {
                Some(EventDecision::Series { key, count, .. }) => written.insert(key, count),
                _ => break,
            };
        }
        prop_assert_eq!(written.values().sum::<i32>(), entered);
    }
}
