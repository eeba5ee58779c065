//! The task of a watch: reads the stream, passes events to `KnownObjects`, and sends the changes.

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
    backoff::{WatchBackoff, WatchFailure},
    consistency::{ConsistencyCheck, consistency_checks},
    known_objects::{KnownObjects, WatchEffect},
    metrics::SingleWatchMetrics,
};
use crate::Stop;

/// Why a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// The stop token was cancelled.
    Stopped,
    /// The receiver was dropped.
    ReceiverClosed,
}

/// A watch of one kind, to be started with [`run`](Self::run).
pub struct Watch<K> {
    name: String,
    api: Api<Guarded<K>>,
    config: Config,
    metrics: SingleWatchMetrics,
    check_every: Option<Duration>,
}

impl<K> Watch<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    /// Watches the objects that `api` reaches and `config` selects. `name` labels logs and metrics: the kind, with the cluster
    /// if there are several.
    ///
    /// A dead connection is detected after the timeout of `config` (five minutes by default); set a shorter one for remote
    /// clusters.
    #[must_use]
    pub fn new(name: &str, api: Api<Guarded<K>>, config: Config, metrics: &WatchMetrics) -> Self {
        Self { name: name.to_owned(), api, config, metrics: metrics.of(name), check_every: None }
    }

    /// Also lists names and versions once per interval, and restarts the stream if a change was not delivered. An API server
    /// that loses an event reports no error, so nothing else detects it.
    #[must_use]
    pub fn check_every(self, interval: Option<Duration>) -> Self {
        Self { check_every: interval, ..self }
    }

    /// Sends changes until stopped, or until the receiver is dropped. A slow receiver delays only this watch; changes that it
    /// missed arrive with the next list.
    pub async fn run(self, changes: Sender<Change<K>>, stop: Stop) -> WatchEnd {
        let receiver = changes.clone();
        let ended = tokio::select! {
            () = stop.cancelled() => WatchEnd::Stopped,
            () = receiver.closed() => WatchEnd::ReceiverClosed,
            _ = self.supervise(&changes) => WatchEnd::ReceiverClosed,
        };
        self.metrics.unreadable.set(0);
        ended
    }

    /// Runs one stream after the other; `KnownObjects` outlives them.
    async fn supervise(&self, changes: &Sender<Change<K>>) -> Result<(), SendError<Change<K>>> {
        let mut known_objects = KnownObjects::new();
        let mut backoff = WatchBackoff::default();
        loop {
            self.follow(&mut known_objects, &mut backoff, changes).await?;
            tracing::info!(watch = %self.name, "restarting the watch with a list");
            self.metrics.restarts.inc();
        }
    }

    /// Runs one stream until it has to be restarted.
    async fn follow(
        &self,
        known_objects: &mut KnownObjects<K>,
        backoff: &mut WatchBackoff,
        changes: &Sender<Change<K>>,
    ) -> Result<(), SendError<Change<K>>> {
        let mut stream = pin!(watcher(self.api.clone(), self.config.clone()));
        let consistency_checks =
            |interval| consistency_checks(&self.name, &self.api, &self.config, interval);
        // Consistency checks start after the initial list: before that there is nothing to compare with.
        let mut checks = pin!(consistency_checks(None));
        loop {
            // Biased: delivered events are handled before an object is reported as lost.
            let event = tokio::select! {
                biased;
                event = stream.next() => event,
                Some(phase) = checks.next() => {
                    if self.check(known_objects, phase) {
                        return Ok(());
                    }
                    continue;
                }
            };
            match event {
                None => return Ok(()),
                Some(Ok(event)) => {
                    // `Init` precedes the first request, so it is no sign of success.
                    if !matches!(event, Event::Init) {
                        backoff.succeeded();
                    }
                    let listed = matches!(event, Event::InitDone);
                    self.handle(known_objects, event, changes).await?;
                    if listed {
                        checks.set(consistency_checks(self.check_every));
                    }
                }
                Some(Err(error)) => {
                    if self.back_off(backoff, &error).await {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Sleeps after a failure. True if the stream has to be restarted.
    async fn back_off(&self, backoff: &mut WatchBackoff, error: &watcher::Error) -> bool {
        self.metrics.failures.inc();
        let retry = backoff.failed(failure(error), time::Instant::now().into_std());
        tracing::warn!(watch = %self.name, %error, pause = ?retry.pause, "the watch failed");
        time::sleep(retry.pause).await;
        retry.restart
    }

    /// Handles one phase of a consistency check. True if an event was lost.
    fn check(&self, known_objects: &mut KnownObjects<K>, phase: ConsistencyCheck) -> bool {
        match phase {
            ConsistencyCheck::Started => known_objects.start_check(),
            ConsistencyCheck::Listed(listed) => known_objects.compare(&listed),
            ConsistencyCheck::Ended => {
                if let Some(object) = known_objects.lost() {
                    tracing::warn!(watch = %self.name, %object, "the watch missed the change of an object");
                    self.metrics.lost.inc();
                    return true;
                }
            }
        }
        false
    }

    async fn handle(
        &self,
        known_objects: &mut KnownObjects<K>,
        event: Event<Guarded<K>>,
        changes: &Sender<Change<K>>,
    ) -> Result<(), SendError<Change<K>>> {
        let effect = known_objects.handle(event);
        self.metrics
            .unreadable
            .set(i64::try_from(known_objects.n_unreadable()).unwrap_or(i64::MAX));
        match effect {
            WatchEffect::Change(change) => changes.send(change).await?,
            WatchEffect::Unreadable(one) => {
                let error = one.error;
                tracing::warn!(watch = %self.name, object = %one.key, error, "skipped an object that does not decode");
            }
            WatchEffect::Nothing => {}
        }
        Ok(())
    }
}

fn failure(error: &watcher::Error) -> WatchFailure {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410 => {
            WatchFailure::TooOld
        }
        _ => WatchFailure::Other,
    }
}
