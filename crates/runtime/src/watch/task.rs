//! The task of a watch: reads the stream, passes events to `KnownObjects`, and delivers the changes. The same for every kind.

use std::{pin::pin, time::Duration};

use futures::{StreamExt, future::BoxFuture};
use kube::{
    Api,
    core::ApiResource,
    runtime::watcher::{self, Config, Event, watcher},
};
use tokio::time;

use super::{
    Unavailable, WatchMetrics, WatchSource,
    backoff::{WatchBackoff, WatchFailure},
    consistency::{ConsistencyCheck, consistency_checks},
    delivery::{Decoder, Delivered, Delivery, ErasedObject, ReceiverClosed},
    discovery::KindDiscovery,
    known_objects::{KnownObjects, WatchEffect},
    metrics::SingleWatchMetrics,
};
use crate::api_object::ApiObject;
use crate::{Stop, error_chain::describe, jitter};

/// Why a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// The stop token was cancelled.
    Stopped,
    /// The receiver was dropped.
    ReceiverClosed,
}

/// A watch of objects of one resource.
pub(super) struct WatchTask {
    name: String,
    api: Api<ApiObject>,
    discovery: KindDiscovery,
    config: Config,
    metrics: SingleWatchMetrics,
    /// The interval of consistency checks, if any.
    pub(super) check_every: Option<Duration>,
    /// The kind may be absent or forbidden.
    pub(super) optional: bool,
}

/// How long a list may give nothing. An API server ends a request after a minute; one that hangs, or answers pages without
/// objects for ever, does not.
const LIST_STALLED: Duration = Duration::from_secs(150);

/// Why one stream is not read any more.
enum StreamEnd {
    /// It has to be restarted with a list.
    Restart,
    /// The kind is not available, or its list does not end. A list is tried after this pause.
    Pause(Duration),
}

impl WatchTask {
    pub(super) fn new(
        name: &str,
        resource: &ApiResource,
        source: &WatchSource,
        metrics: &WatchMetrics,
    ) -> Self {
        Self {
            name: name.to_owned(),
            api: source.api(resource),
            discovery: source.discovery(resource),
            config: source.config.clone(),
            metrics: metrics.of(name),
            check_every: None,
            optional: false,
        }
    }

    /// Delivers changes until stopped, or until `closed` is ready.
    pub(super) async fn run(
        self,
        decode: Decoder<ErasedObject>,
        deliver: Delivery,
        closed: BoxFuture<'static, ()>,
        stop: Stop,
    ) -> WatchEnd {
        let ended = tokio::select! {
            () = stop.cancelled() => WatchEnd::Stopped,
            () = closed => WatchEnd::ReceiverClosed,
            _ = self.supervise(KnownObjects::new(decode), &deliver) => WatchEnd::ReceiverClosed,
        };
        // A gauge would keep its last value after the end of its watch.
        self.metrics.unreadable.set(0);
        self.metrics.available.set(0);
        ended
    }

    /// Runs one stream after the other.
    async fn supervise(
        &self,
        mut known_objects: KnownObjects<ErasedObject>,
        deliver: &Delivery,
    ) -> Delivered {
        let mut backoff = WatchBackoff::default();
        loop {
            match self.follow(&mut known_objects, &mut backoff, deliver).await? {
                StreamEnd::Restart => {
                    tracing::info!(watch = %self.name, "restarting the watch with a list");
                    self.metrics.restarts.inc();
                }
                StreamEnd::Pause(pause) => time::sleep(pause).await,
            }
        }
    }

    /// Runs one stream until it ends or has to be restarted.
    async fn follow(
        &self,
        known_objects: &mut KnownObjects<ErasedObject>,
        backoff: &mut WatchBackoff,
        deliver: &Delivery,
    ) -> Result<StreamEnd, ReceiverClosed> {
        let mut stream = pin!(watcher(self.api.clone(), self.config.clone()));
        let Self { name, api, config, .. } = self;
        let consistency_checks = |interval| consistency_checks(name, api, config, interval);
        // Consistency checks start after the initial list: before that there is nothing to compare with.
        let mut checks = pin!(consistency_checks(None));
        let mut lists = true;
        // Only events of the stream extend the deadline: consistency checks go on during a list.
        let mut stalled = pin!(time::sleep(LIST_STALLED));
        loop {
            // Biased: delivered events are handled before an object is reported as lost.
            let event = tokio::select! {
                biased;
                event = stream.next() => event,
                Some(phase) = checks.next() => {
                    if self.check(known_objects, phase) {
                        return Ok(StreamEnd::Restart);
                    }
                    continue;
                }
                () = &mut stalled, if lists => {
                    return Ok(self.endless(backoff, "the list gives nothing"));
                }
            };
            match event {
                None => return Ok(StreamEnd::Restart),
                Some(Ok(event)) => {
                    let listed = matches!(event, Event::InitDone);
                    lists = matches!(event, Event::Init | Event::InitApply(_));
                    self.observe(known_objects, backoff, event, deliver).await?;
                    if listed {
                        checks.set(consistency_checks(self.check_every));
                    }
                    if lists && known_objects.list_repeats() {
                        return Ok(self.endless(backoff, "the list repeats its objects"));
                    }
                }
                Some(Err(error)) => {
                    if let Some(end) = self.fail(known_objects, backoff, &error, deliver).await? {
                        return Ok(end);
                    }
                }
            }
            stalled.as_mut().reset(time::Instant::now() + LIST_STALLED);
        }
    }

    /// Handles one event of the stream.
    async fn observe(
        &self,
        known_objects: &mut KnownObjects<ErasedObject>,
        backoff: &mut WatchBackoff,
        event: Event<ApiObject>,
        deliver: &Delivery,
    ) -> Delivered {
        // `Init` precedes the first request, and a list may not end whatever it gives.
        if !matches!(event, Event::Init | Event::InitApply(_)) {
            backoff.succeeded();
        }
        if matches!(event, Event::InitDone) {
            self.metrics.available.set(1);
        }
        self.handle(known_objects, event, deliver).await
    }

    /// Handles a failure of the stream. Returns how the stream ends, unless it goes on after a pause.
    async fn fail(
        &self,
        known_objects: &mut KnownObjects<ErasedObject>,
        backoff: &mut WatchBackoff,
        error: &watcher::Error,
        deliver: &Delivery,
    ) -> Result<Option<StreamEnd>, ReceiverClosed> {
        let is_reported = known_objects.is_not_served();
        if let Some(reason) = self.unavailable(error, is_reported).await {
            self.report_unavailable(known_objects, reason, deliver).await?;
            // The version of the stream says nothing about a kind that is served again: start with a list.
            let retry = backoff.failed(WatchFailure::Other, now());
            return Ok(Some(StreamEnd::Pause(retry.pause)));
        }
        Ok(self.back_off(backoff, error).await.then_some(StreamEnd::Restart))
    }

    /// Why the kind is not available, if this failure shows it. Discovery has to say that it is not served, since that removes its
    /// objects; once it is reported, the next list shows whether the kind is served again.
    async fn unavailable(&self, error: &watcher::Error, is_reported: bool) -> Option<Unavailable> {
        let reason = Unavailable::of(error).filter(|_| self.optional)?;
        let is_certain = match reason {
            Unavailable::Forbidden => true,
            Unavailable::NotServed => is_reported || self.discovery.is_absent().await,
        };
        is_certain.then_some(reason)
    }

    /// A list that does not end. What it has given so far does not count.
    fn endless(&self, backoff: &mut WatchBackoff, error: &str) -> StreamEnd {
        self.metrics.failures.inc();
        let pause = jitter::lengthened(backoff.failed(WatchFailure::Endless, now()).pause);
        tracing::warn!(watch = %self.name, error, ?pause, "the watch failed");
        StreamEnd::Pause(pause)
    }

    async fn report_unavailable(
        &self,
        known_objects: &mut KnownObjects<ErasedObject>,
        reason: Unavailable,
        deliver: &Delivery,
    ) -> Delivered {
        self.metrics.available.set(0);
        let Some(change) = known_objects.unavailable(reason) else {
            return Ok(());
        };
        tracing::info!(watch = %self.name, ?reason, "the kind is not available");
        self.set_unreadable(known_objects);
        deliver(change).await
    }

    /// Sleeps after a failure. True if the stream has to be restarted.
    async fn back_off(&self, backoff: &mut WatchBackoff, error: &watcher::Error) -> bool {
        self.metrics.failures.inc();
        let retry = backoff.failed(failure(error), now());
        let (error, pause) = (describe(error), jitter::lengthened(retry.pause));
        tracing::warn!(watch = %self.name, %error, ?pause, "the watch failed");
        time::sleep(pause).await;
        retry.restart
    }

    /// Handles one phase of a consistency check. True if an event was lost.
    fn check(
        &self,
        known_objects: &mut KnownObjects<ErasedObject>,
        phase: ConsistencyCheck,
    ) -> bool {
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
        known_objects: &mut KnownObjects<ErasedObject>,
        event: Event<ApiObject>,
        deliver: &Delivery,
    ) -> Delivered {
        let effect = known_objects.handle(event);
        self.set_unreadable(known_objects);
        match effect {
            WatchEffect::Change(change) => deliver(change).await?,
            WatchEffect::Unreadable(one) => {
                let error = one.error;
                tracing::warn!(watch = %self.name, object = %one.key, error, "skipped an object that does not decode");
            }
            WatchEffect::Nothing => {}
        }
        Ok(())
    }

    fn set_unreadable(&self, known_objects: &KnownObjects<ErasedObject>) {
        let n_unreadable = i64::try_from(known_objects.n_unreadable()).unwrap_or(i64::MAX);
        self.metrics.unreadable.set(n_unreadable);
    }
}

fn now() -> std::time::Instant {
    time::Instant::now().into_std()
}

fn failure(error: &watcher::Error) -> WatchFailure {
    match error {
        // The watcher itself lists after a 410 within a stream, but not after one at its start.
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410 => {
            WatchFailure::TooOld
        }
        _ => WatchFailure::Other,
    }
}
