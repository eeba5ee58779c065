//! The way from whoever has news to the API server.

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
    book::{Book, Decision, Now},
    metrics::Lost,
    object::{self, Reporter},
};
use crate::{
    Stop,
    failpoint::{EVENT_CREATE, EVENT_SERIES},
    watch::Key,
    write::{Write, WriteError},
    writer::{WriteOutcome, Writer},
};

/// News that may wait.
pub(super) const BACKLOG: usize = 4096;
/// How long after the stop what waits is still written.
pub(super) const DRAIN: Duration = Duration::from_secs(2);
/// How often counts that were not written are looked for.
const TICK: Duration = Duration::from_secs(1);

/// Takes news. Cheap to clone; never waits.
#[derive(Clone, Debug)]
pub struct Recorder {
    outbox: mpsc::Sender<EventRecord>,
    metrics: EventMetrics,
}

/// Writes the news that recorders take; see the module of events.
pub struct Events {
    inbox: mpsc::Receiver<EventRecord>,
    book: Book,
    writer: Writer,
    metrics: EventMetrics,
}

/// A recorder, and the task that writes what it is told.
#[must_use]
pub fn recorder(writer: Writer, reporter: Reporter, metrics: EventMetrics) -> (Recorder, Events) {
    let (outbox, inbox) = mpsc::channel(BACKLOG);
    let recorder = Recorder { outbox, metrics: metrics.clone() };
    (recorder, Events { inbox, book: Book::new(reporter), writer, metrics })
}

impl Recorder {
    /// Takes news, unless too many wait or the process is ending.
    pub fn record(&self, news: EventRecord) {
        match self.outbox.try_send(object::within_limits(news)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.metrics.lost(Lost::Full, 1),
            Err(TrySendError::Closed(_)) => self.metrics.lost(Lost::Stopped, 1),
        }
    }
}

impl Events {
    /// Writes until stopped, and then for a short while what is left.
    pub async fn run(mut self, stop: Stop) {
        {
            let mut work = pin!(self.work(&stop));
            tokio::select! {
                () = &mut work => {}
                () = stop.cancelled() => drop(time::timeout(DRAIN, work).await),
            }
        }
        // The one that was being written may have been.
        let n_left = self.inbox.len() + self.book.n_untold();
        self.metrics.lost(Lost::Stopped, n_left);
        if n_left > 0 {
            tracing::debug!(n_left, "events were left over");
        }
    }

    /// Until nothing is left, and nothing can come.
    async fn work(&mut self, stop: &Stop) {
        let mut tick = time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut open = true;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled(), if open => {
                    open = false;
                    self.inbox.close();
                }
                _ = tick.tick() => self.tell_counts().await,
                news = self.inbox.recv() => match news {
                    Some(news) => self.enter(&news).await,
                    None => return self.tell_counts().await,
                },
            }
        }
    }

    async fn enter(&mut self, news: &EventRecord) {
        loop {
            match self.book.enter(news, now()) {
                Decision::Wait(wait) => time::sleep(wait).await,
                decision => return self.execute(decision).await,
            }
        }
    }

    async fn tell_counts(&mut self) {
        while let Some(decision) = self.book.untold(now()) {
            self.execute(decision).await;
        }
    }

    async fn execute(&mut self, decision: Decision) {
        match decision {
            Decision::Create(key, event) => {
                self.send(&key, Write::create(EVENT_CREATE, &*event)).await;
            }
            Decision::Series { key, count, at } => {
                self.send(&key, series(&key, count, at)).await;
            }
            Decision::Wait(_) | Decision::Counted => {}
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
            self.metrics.lost(Lost::Failed, 1);
            self.book.forget(key);
        }
    }
}

fn series(key: &Key, count: i32, at: Timestamp) -> Result<Write, WriteError> {
    let at = k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(at);
    let fields = json!({ "series": { "count": count, "lastObservedTime": at } });
    Write::merge::<Event>(EVENT_SERIES, key, None, &fields)
}

fn now() -> Now {
    Now { steady: Instant::now().into_std(), wall: Timestamp::now() }
}
