//! A watch as a task: the stream read, its events entered into the book, changes sent.

use std::{fmt::Debug, pin::pin, time::Duration};

use futures::StreamExt;
use kube::{
    Api, Resource,
    runtime::watcher::{self, Config, Event, watcher},
};
use serde::de::DeserializeOwned;
use tokio::{
    sync::mpsc::{Sender, error::SendError},
    time,
};

use super::{
    Change, Guarded, WatchMetrics,
    book::{Book, Entry},
    look::{Look, looks},
    metrics::OneWatch,
    pace::{Failure, Pace},
};
use crate::Stop;

/// Why a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// It was asked to.
    Stopped,
    /// Nobody listens any more.
    ReceiverClosed,
}

/// A watch that has not begun yet.
pub struct Watch<K> {
    name: String,
    api: Api<Guarded<K>>,
    config: Config,
    metrics: OneWatch,
    check_every: Option<Duration>,
}

impl<K> Watch<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    /// A watch of what `api` reaches and `config` selects. The name is for logs and metrics: the kind, and the cluster if
    /// there are several.
    ///
    /// A connection that died in silence is noticed after the configuration's timeout (five minutes unless set), so set a
    /// shorter one for servers far away.
    #[must_use]
    pub fn new(name: &str, api: Api<Guarded<K>>, config: Config, metrics: &WatchMetrics) -> Self {
        Self { name: name.to_owned(), api, config, metrics: metrics.of(name), check_every: None }
    }

    /// Also looks at what is there so often, and begins anew when something of that was never told: a server that forgot
    /// an event says nothing, and neither does a watch. Costs a list of names and versions each time.
    #[must_use]
    pub fn check_every(self, interval: Option<Duration>) -> Self {
        Self { check_every: interval, ..self }
    }

    /// Sends changes until stopped or until nobody listens. Whoever listens slowly holds the watch up, and nothing else: what
    /// is missed for being too slow comes with the next list.
    pub async fn run(self, changes: Sender<Change<K>>, stop: Stop) -> WatchEnd {
        let heard = changes.clone();
        let ended = tokio::select! {
            () = stop.cancelled() => WatchEnd::Stopped,
            () = heard.closed() => WatchEnd::ReceiverClosed,
            _ = self.supervise(&changes) => WatchEnd::ReceiverClosed,
        };
        self.metrics.unreadable.set(0);
        ended
    }

    /// One stream after the other; the book outlives them.
    async fn supervise(&self, changes: &Sender<Change<K>>) -> Result<(), SendError<Change<K>>> {
        let mut book = Book::new();
        let mut pace = Pace::default();
        loop {
            self.follow(&mut book, &mut pace, changes).await?;
            tracing::info!(watch = %self.name, "beginning anew");
            self.metrics.restarts.inc();
        }
    }

    /// One stream, until it is given up.
    async fn follow(
        &self,
        book: &mut Book<K>,
        pace: &mut Pace,
        changes: &Sender<Change<K>>,
    ) -> Result<(), SendError<Change<K>>> {
        let mut stream = pin!(watcher(self.api.clone(), self.config.clone()));
        let looks = |interval| looks(&self.name, &self.api, &self.config, interval);
        // While everything is listed there is nothing to compare with.
        let mut looking = pin!(looks(None));
        loop {
            // What was told must be entered before anything is said to be lost.
            let event = tokio::select! {
                biased;
                event = stream.next() => event,
                Some(look) = looking.next() => {
                    if self.look(book, look) {
                        return Ok(());
                    }
                    continue;
                }
            };
            let Some(event) = event else {
                return Ok(());
            };
            match event {
                Ok(event) => {
                    // The beginning of a list is told before anything was asked for.
                    if !matches!(event, Event::Init) {
                        pace.worked();
                    }
                    let listed = matches!(event, Event::InitDone);
                    self.enter(book, event, changes).await?;
                    if listed {
                        looking.set(looks(self.check_every));
                    }
                }
                Err(error) => {
                    self.metrics.failures.inc();
                    let advice = pace.failed(kind(&error), time::Instant::now().into_std());
                    tracing::warn!(watch = %self.name, %error, pause = ?advice.pause, "the watch failed");
                    time::sleep(advice.pause).await;
                    if advice.restart {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Takes note of a look; whether something was lost.
    fn look(&self, book: &mut Book<K>, look: Look) -> bool {
        match look {
            Look::Begins => book.look(),
            Look::Sees(seen) => book.compare(&seen),
            Look::Ends => {
                if let Some(object) = book.lost() {
                    tracing::warn!(watch = %self.name, %object, "the watch did not tell of an object that changed");
                    self.metrics.lost.inc();
                    return true;
                }
            }
        }
        false
    }

    async fn enter(
        &self,
        book: &mut Book<K>,
        event: Event<Guarded<K>>,
        changes: &Sender<Change<K>>,
    ) -> Result<(), SendError<Change<K>>> {
        let entry = book.enter(event);
        self.metrics.unreadable.set(i64::try_from(book.n_unreadable()).unwrap_or(i64::MAX));
        match entry {
            Entry::Change(change) => changes.send(change).await?,
            Entry::Unreadable(one) => {
                let error = one.error;
                tracing::warn!(watch = %self.name, object = %one.key, error, "left out what does not decode");
            }
            Entry::Nothing => {}
        }
        Ok(())
    }
}

fn kind(error: &watcher::Error) -> Failure {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410 => {
            Failure::TooOld
        }
        _ => Failure::Other,
    }
}
