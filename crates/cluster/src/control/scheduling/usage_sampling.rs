//! Admission fair sharing: when the usage of LocalQueues is sampled, and what is taken over from their status.
//!
//! The engine keeps what every LocalQueue consumed. A process that begins takes over what the statuses record, once per object;
//! from then on the statuses follow the engine. Every LocalQueue has an interval of its own, from its last sample.
//! Source: docs/reference/kueue.md §3.8.

use std::{collections::BTreeMap, time::Duration};

use crds::v1beta2::LocalQueue;
use engine::{AdmissionFairSharingSettings, Engine, Event, Names, Time};
use index::local_queue_usage::{self, UsageWeights};
use jiff::Timestamp;
use runtime::watch::Key;

use crate::control::{
    outbox::after,
    time::{engine_time, nanos, timestamp},
};

/// `admissionFairSharing` of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UsageSettings {
    /// Past consumption halves in this time.
    pub(crate) half_life: Duration,
    /// Between two samples of a LocalQueue.
    pub(crate) interval: Duration,
    /// Weights of resources in units of 10^-9; that of cpu is the weight of one core.
    pub(crate) weights: UsageWeights,
}

/// The times at which the usage of LocalQueues is sampled.
#[derive(Debug, Default)]
pub(super) struct UsageSampling {
    /// `None` without admission fair sharing.
    interval: Option<Duration>,
    /// LocalQueues whose record was taken over, with their uids.
    known: BTreeMap<Key, String>,
    /// When a LocalQueue is sampled next; `None` if that is to be found out.
    next: Option<Timestamp>,
}

impl UsageSampling {
    /// Configures the engine.
    pub(super) fn new(settings: Option<&UsageSettings>, engine: &mut Engine) -> Self {
        let Some(settings) = settings else {
            return Self::default();
        };
        let weights = local_queue_usage::resource_weights(engine.names_mut(), &settings.weights.0);
        let configured = AdmissionFairSharingSettings {
            weights,
            usage_half_life: nanos(settings.half_life),
            interval: nanos(settings.interval),
        };
        engine.apply(Event::AdmissionFairSharing(Some(configured)));
        Self { interval: Some(settings.interval), ..Self::default() }
    }

    /// Takes over what the status of a LocalQueue records, if the object is new; `None` if it is gone.
    pub(super) fn observe(
        &mut self,
        key: &Key,
        queue: Option<&LocalQueue>,
        names: &mut Names,
    ) -> Option<Event> {
        self.interval?;
        let Some(queue) = queue else {
            self.known.remove(key);
            return None;
        };
        let uid = queue.metadata.uid.clone().unwrap_or_default();
        let is_known = self.known.insert(key.clone(), uid.clone()) == Some(uid);
        if is_known { None } else { local_queue_usage::recorded(names, queue) }
    }

    /// Whether the LocalQueue of this name that is known is another object.
    pub(super) fn is_another(&self, key: &Key, queue: &LocalQueue) -> bool {
        let uid = queue.metadata.uid.as_deref().unwrap_or_default();
        self.known.get(key).is_some_and(|known| known != uid)
    }

    /// Looks for LocalQueues that were not sampled before.
    pub(super) fn resample_now(&mut self) {
        self.next = None;
    }

    /// Samples LocalQueues whose time has come. Returns when the next one is, if any is sampled at all, and whether one was now.
    pub(super) fn sample(
        &mut self,
        engine: &mut Engine,
        now: Timestamp,
    ) -> Option<(Timestamp, bool)> {
        let interval = self.interval?;
        if let Some(next) = self.next.filter(|next| *next > now) {
            return Some((next, false));
        }
        let before = self.sampled(engine);
        engine.apply(Event::SampleUsage(engine_time(now)));
        let sampled = self.sampled(engine);
        let oldest = sampled.iter().flatten().min().copied();
        let next = oldest.map(|at| after(timestamp(at), interval).max(now));
        self.next = next;
        Some((next?, sampled != before))
    }

    fn sampled(&self, engine: &Engine) -> Vec<Option<Time>> {
        let keys = self.known.keys();
        keys.map(|key| local_queue_usage::sampled_at(engine, &key.to_string())).collect()
    }
}
