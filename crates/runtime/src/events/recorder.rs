//! The path of records from a component to the API server: a bounded channel, and the task that writes.

use std::{pin::pin, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use serde_json::json;
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    time::{self, Instant, MissedTickBehavior},
};

use super::{
    EventMetrics, EventRecord,
    cache::{EventCache, EventDecision, EventTime},
    metrics::DropReason,
    object::{self, Reporter},
};
use crate::{
    Stop,
    failpoint::{EVENT_CREATE, EVENT_SERIES},
    watch::Key,
    write::{Write, WriteError},
    writer::{WriteOutcome, Writer},
};

/// Capacity of the channel.
pub(super) const CHANNEL_CAPACITY: usize = 4096;
/// How long records in the channel are still written after the stop.
pub(super) const DRAIN: Duration = Duration::from_secs(2);
/// How often unwritten counts are looked up.
const SERIES_PERIOD: Duration = Duration::from_secs(1);

/// The sending side. Cheap to clone; never blocks.
#[derive(Clone, Debug)]
pub struct Recorder {
    outbox: mpsc::Sender<EventRecord>,
    metrics: EventMetrics,
}

/// The task that writes events. Obtained from [`recorder`].
pub struct EventBroadcaster {
    inbox: mpsc::Receiver<EventRecord>,
    cache: EventCache,
    writer: Writer,
    metrics: EventMetrics,
}

/// A recorder, and the task that writes its records.
#[must_use]
pub fn recorder(
    writer: Writer,
    reporter: Reporter,
    metrics: EventMetrics,
) -> (Recorder, EventBroadcaster) {
    let (outbox, inbox) = mpsc::channel(CHANNEL_CAPACITY);
    let recorder = Recorder { outbox, metrics: metrics.clone() };
    (recorder, EventBroadcaster { inbox, cache: EventCache::new(reporter), writer, metrics })
}

impl Recorder {
    /// Passes on a record. The record is dropped, and counted as dropped, if the channel is full or the task has stopped.
    pub fn record(&self, record: EventRecord) {
        self.metrics.count_occurrence(&record);
        match self.outbox.try_send(object::within_limits(record)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.metrics.count_dropped(DropReason::Full, 1),
            Err(TrySendError::Closed(_)) => self.metrics.count_dropped(DropReason::Stopped, 1),
        }
    }
}

impl EventBroadcaster {
    /// Writes until stopped, then drains the channel for [`DRAIN`] at most.
    pub async fn run(mut self, stop: Stop) {
        {
            let mut work = pin!(self.work(&stop));
            tokio::select! {
                () = &mut work => {}
                () = stop.cancelled() => drop(time::timeout(DRAIN, work).await),
            }
        }
        // The write that the timeout interrupted is not counted: the API server may have handled it.
        let n_left = self.inbox.len() + self.cache.n_unwritten();
        self.metrics.count_dropped(DropReason::Stopped, n_left);
        if n_left > 0 {
            tracing::debug!(n_left, "events were dropped at the stop");
        }
    }

    /// Returns when the channel is closed and empty.
    async fn work(&mut self, stop: &Stop) {
        let mut tick = time::interval(SERIES_PERIOD);
        // Missed ticks are not made up: one tick writes all counts that are due.
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut open = true;
        loop {
            tokio::select! {
                // The stop first: records that arrive after it are not taken.
                biased;
                () = stop.cancelled(), if open => {
                    open = false;
                    self.inbox.close();
                }
                _ = tick.tick() => self.write_counts().await,
                record = self.inbox.recv() => match record {
                    Some(record) => self.handle(&record).await,
                    // Counts are kept in the cache and not in the channel, so they are written
                    // after the last record.
                    None => return self.write_counts().await,
                },
            }
        }
    }

    async fn handle(&mut self, record: &EventRecord) {
        loop {
            match self.cache.handle(record, now()) {
                EventDecision::Wait(wait) => time::sleep(wait).await,
                decision => return self.execute(decision).await,
            }
        }
    }

    async fn write_counts(&mut self) {
        while let Some(decision) = self.cache.unwritten_series(now()) {
            self.execute(decision).await;
        }
    }

    async fn execute(&mut self, decision: EventDecision) {
        match decision {
            EventDecision::Create(key, event) => {
                self.send(&key, Write::create(EVENT_CREATE, &*event)).await;
            }
            EventDecision::Series { key, count, at } => {
                self.send(&key, series(&key, count, at)).await;
            }
            EventDecision::Wait(_) | EventDecision::Counted => {}
        }
    }

    async fn send(&mut self, key: &Key, write: Result<Write, WriteError>) {
        let done = match write {
            Ok(write) => matches!(self.writer.send(write).await, WriteOutcome::Done(_)),
            Err(error) => {
                tracing::error!(%error, "an event cannot be written");
                false
            }
        };
        if !done {
            self.metrics.count_dropped(DropReason::Failed, 1);
            // The Event may not exist; the next record creates a new one.
            self.cache.forget(key);
        }
    }
}

fn series(key: &Key, count: i32, at: Timestamp) -> Result<Write, WriteError> {
    let at = k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(at);
    let fields = json!({ "series": { "count": count, "lastObservedTime": at } });
    Write::merge::<Event>(EVENT_SERIES, key, None, &fields)
}

fn now() -> EventTime {
    EventTime { steady: Instant::now().into_std(), wall: Timestamp::now() }
}
