//! Which news become an Event, and which only count. Pure.
//!
//! News are equal when every field is. The first of their kind is a new Event, which waits for a token. Another one within
//! [`MEMORY`] of the last is counted; the count is written if there is a token, and otherwise with the next that is, or
//! when the book is asked for what it has [not told](Book::untold).
//!
//! Invariants: a count never goes back, and starts with 2, the least that the API server takes. No two Events of a book
//! have the same name. At most [`MOST`] kinds are remembered; the one that was quiet the longest is forgotten first, which
//! costs an Event too many, and nothing else.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;

use super::{
    EventRecord,
    bucket::Bucket,
    object::{self, Reporter},
};
use crate::watch::Key;

/// How long equal news are the same.
pub(super) const MEMORY: Duration = Duration::from_secs(600);
/// Kinds of news that are remembered.
pub(super) const MOST: usize = 4096;
/// Writes a second.
pub(super) const PACE: u32 = 50;

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Decision {
    /// A new Event is to be created.
    Create(Key, Box<Event>),
    /// An Event is to be told that it happened again.
    Series { key: Key, count: i32, at: Timestamp },
    /// Nothing may be written yet: ask again then. Nothing was entered.
    Wait(Duration),
    /// It was counted, and is written later.
    Counted,
}

/// The time, by a clock that never goes back and by the one that people read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) steady: Instant,
    pub(super) wall: Timestamp,
}

/// One kind of news.
#[derive(Clone, Debug)]
struct Entry {
    key: Key,
    count: i32,
    told: i32,
    last: Now,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Book {
    reporter: Reporter,
    entries: HashMap<EventRecord, Entry>,
    bucket: Bucket,
    newest: i128,
}

impl Book {
    pub(super) fn new(reporter: Reporter) -> Self {
        let bucket = Bucket::per_second(PACE);
        Self { reporter, entries: HashMap::new(), bucket, newest: 0 }
    }

    /// Enters news.
    pub(super) fn enter(&mut self, news: &EventRecord, now: Now) -> Decision {
        match self.entries.get_mut(news).filter(|entry| entry.remembers(now)) {
            Some(entry) => {
                entry.count = entry.count.saturating_add(1);
                entry.last = now;
                match self.bucket.take(now.steady) {
                    Ok(()) => entry.tell(),
                    Err(_) => Decision::Counted,
                }
            }
            None => match self.bucket.take(now.steady) {
                Ok(()) => self.create(news, now),
                Err(wait) => Decision::Wait(wait),
            },
        }
    }

    /// A count that was not written for want of a token, if there is one now: that of the oldest.
    pub(super) fn untold(&mut self, now: Now) -> Option<Decision> {
        let untold = self.entries.values_mut().filter(|entry| entry.told < entry.count);
        let oldest = untold.min_by(|one, other| one.age().cmp(&other.age()))?;
        self.bucket.take(now.steady).ok()?;
        Some(oldest.tell())
    }

    /// How many are counted and not written.
    pub(super) fn n_untold(&self) -> usize {
        let untold = self.entries.values().map(|entry| entry.count.saturating_sub(entry.told));
        untold.filter_map(|n| usize::try_from(n).ok()).sum()
    }

    /// An Event that was not written, or is gone: the next of its kind is a new one.
    pub(super) fn forget(&mut self, key: &Key) {
        self.entries.retain(|_, entry| entry.key != *key);
    }

    fn create(&mut self, news: &EventRecord, now: Now) -> Decision {
        self.newest = now.wall.as_nanosecond().max(self.newest + 1);
        let key = object::key(news, self.newest);
        let event = object::event(&self.reporter, news, &key, now.wall);
        self.make_room(now);
        let entry = Entry { key: key.clone(), count: 1, told: 1, last: now };
        self.entries.insert(news.clone(), entry);
        Decision::Create(key, Box::new(event))
    }

    fn make_room(&mut self, now: Now) {
        if self.entries.len() < MOST {
            return;
        }
        self.entries.retain(|_, entry| entry.remembers(now));
        if self.entries.len() < MOST {
            return;
        }
        let oldest = self.entries.values().min_by(|one, other| one.age().cmp(&other.age()));
        if let Some(oldest) = oldest.map(|entry| entry.key.clone()) {
            self.forget(&oldest);
        }
    }
}

impl Entry {
    fn remembers(&self, now: Now) -> bool {
        now.steady.saturating_duration_since(self.last.steady) < MEMORY
    }

    /// Older is less; no two are equal.
    fn age(&self) -> (Instant, &Key) {
        (self.last.steady, &self.key)
    }

    fn tell(&mut self) -> Decision {
        self.told = self.count;
        Decision::Series { key: self.key.clone(), count: self.count, at: self.last.wall }
    }
}
