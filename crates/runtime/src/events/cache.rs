//! Which records become a new Event, and which only increase the count of an existing one. Pure.
//!
//! Records are equal if every field is; the note does not count if they regard a version of an object, as with the recorder of
//! Kubernetes, which keeps the note of the first. The first of its kind creates an Event as soon as a token is available. A further one
//! within [`SERIES_TTL`] of the last increases the count; the count is written if a token is available, and otherwise with
//! the next record or by [`unwritten_series`](EventCache::unwritten_series).
//!
//! Invariants: a count never decreases, and a written count is at least 2, the minimum of the API server. Two Events of a
//! cache never have the same name. The cache holds at most [`CAPACITY`] series; it evicts the one that was quiet the longest,
//! whose next record then creates a new Event.

use std::{
    borrow::Cow,
    collections::HashMap,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;

use super::{
    EventRecord,
    object::{self, Reporter},
    token_bucket::TokenBucket,
};
use crate::watch::Key;

/// How long a record continues the series of an equal one.
pub(super) const SERIES_TTL: Duration = Duration::from_secs(600);
/// Number of series in the cache.
pub(super) const CAPACITY: usize = 4096;
/// Writes per second.
pub(super) const WRITES_PER_SECOND: u32 = 50;

/// What the caller does with a record.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum EventDecision {
    /// Create this Event.
    Create(Key, Box<Event>),
    /// Update the series of an Event.
    Series { key: Key, count: i32, at: Timestamp },
    /// No token is available: submit the record again after this time. The cache is unchanged.
    Wait(Duration),
    /// Counted. The count is written later.
    Counted,
}

/// One moment, by the monotonic clock and by the wall clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventTime {
    pub(super) steady: Instant,
    pub(super) wall: Timestamp,
}

/// One series of equal records.
#[derive(Clone, Debug)]
struct EventSeries {
    key: Key,
    count: i32,
    written: i32,
    last: EventTime,
}

/// The series of recent records.
#[derive(Debug)]
pub(super) struct EventCache {
    reporter: Reporter,
    entries: HashMap<EventRecord, EventSeries>,
    bucket: TokenBucket,
    newest: i128,
}

impl EventCache {
    pub(super) fn new(reporter: Reporter) -> Self {
        let bucket = TokenBucket::per_second(WRITES_PER_SECOND);
        Self { reporter, entries: HashMap::new(), bucket, newest: 0 }
    }

    /// Handles one record.
    pub(super) fn handle(&mut self, record: &EventRecord, now: EventTime) -> EventDecision {
        let series = series_key(record);
        match self.entries.get_mut(&*series).filter(|entry| entry.is_active(now)) {
            Some(entry) => {
                entry.count = entry.count.saturating_add(1);
                entry.last = now;
                match self.bucket.take(now.steady) {
                    Ok(()) => entry.write_count(),
                    // `unwritten_series` writes the count later, together with those that follow.
                    Err(_) => EventDecision::Counted,
                }
            }
            None => match self.bucket.take(now.steady) {
                Ok(()) => self.create(record, series, now),
                // The text is in no Event yet, so the first record of a series waits.
                Err(wait) => EventDecision::Wait(wait),
            },
        }
    }

    /// The oldest series whose count is not written yet, if a token is available.
    pub(super) fn unwritten_series(&mut self, now: EventTime) -> Option<EventDecision> {
        let unwritten_series =
            self.entries.values_mut().filter(|entry| entry.written < entry.count);
        let oldest = unwritten_series.min_by(|one, other| one.age().cmp(&other.age()))?;
        self.bucket.take(now.steady).ok()?;
        Some(oldest.write_count())
    }

    /// Number of counted records that are not written yet.
    pub(super) fn n_unwritten(&self) -> usize {
        let unwritten_series =
            self.entries.values().map(|entry| entry.count.saturating_sub(entry.written));
        unwritten_series.filter_map(|n| usize::try_from(n).ok()).sum()
    }

    /// Drops the series of an Event that could not be written or was deleted. The next record creates a new Event.
    pub(super) fn forget(&mut self, key: &Key) {
        self.entries.retain(|_, entry| entry.key != *key);
    }

    fn create(
        &mut self,
        record: &EventRecord,
        series: Cow<'_, EventRecord>,
        now: EventTime,
    ) -> EventDecision {
        // The time is part of the name of the Event. A wall clock that goes back must not repeat
        // one.
        self.newest = now.wall.as_nanosecond().max(self.newest + 1);
        let key = object::key(record, self.newest);
        let event = object::event(&self.reporter, record, &key, now.wall);
        // Before the insertion, so that the table never exceeds its capacity.
        self.evict(now);
        let entry = EventSeries { key: key.clone(), count: 1, written: 1, last: now };
        self.entries.insert(series.into_owned(), entry);
        EventDecision::Create(key, Box::new(event))
    }

    fn evict(&mut self, now: EventTime) {
        if self.entries.len() < CAPACITY {
            return;
        }
        // The next record of an expired series creates a new Event in any case.
        self.entries.retain(|_, entry| entry.is_active(now));
        if self.entries.len() < CAPACITY {
            return;
        }
        let oldest = self.entries.values().min_by(|one, other| one.age().cmp(&other.age()));
        if let Some(oldest) = oldest.map(|entry| entry.key.clone()) {
            self.forget(&oldest);
        }
    }
}

/// What the records of a series have in common.
fn series_key(record: &EventRecord) -> Cow<'_, EventRecord> {
    if record.regarding.version.is_empty() {
        return Cow::Borrowed(record);
    }
    Cow::Owned(EventRecord { note: String::new(), ..record.clone() })
}

impl EventSeries {
    fn is_active(&self, now: EventTime) -> bool {
        now.steady.saturating_duration_since(self.last.steady) < SERIES_TTL
    }

    /// Orders series from oldest to newest; the key makes the order total.
    fn age(&self) -> (Instant, &Key) {
        (self.last.steady, &self.key)
    }

    fn write_count(&mut self) -> EventDecision {
        self.written = self.count;
        EventDecision::Series { key: self.key.clone(), count: self.count, at: self.last.wall }
    }
}
