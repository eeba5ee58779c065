//! What a LocalQueue consumed under admission fair sharing, as its status records it. Source: docs/reference/kueue.md §3.8.

use crds::v1beta2::{AdmissionFairSharingStatus, LocalQueue};
use engine::{Engine, Event, FairSharingUsage, Names, Time};
use jiff::Timestamp;

use crate::amount::{amount, quantity};
use crate::time::{time, to_seconds};

/// The consumption that the status of a LocalQueue records; `None` without a record.
#[must_use]
pub fn recorded(names: &mut Names, queue: &LocalQueue) -> Option<Event> {
    let status = queue.status.fair_sharing.as_ref()?.admission_fair_sharing_status.as_ref()?;
    let at = time(status.last_update.as_ref()?);
    let consumed = status.consumed_resources.iter().map(|(name, one)| {
        let amount = amount(name, one);
        (names.resources.intern(name), amount)
    });
    let consumed = consumed.collect();
    let metadata = &queue.metadata;
    let text = |one: &'_ Option<String>| one.clone().unwrap_or_default();
    let key = format!("{}/{}", text(&metadata.namespace), text(&metadata.name));
    Some(Event::ConsumedResources(names.local_queues.intern(&key), consumed, at))
}

/// When a LocalQueue was last sampled; `None` before, and for one without admission fair sharing.
#[must_use]
pub fn sampled_at(engine: &Engine, key: &str) -> Option<Time> {
    engine.consumed_resources(engine.names().local_queues.get(key)?).1
}

/// What a LocalQueue consumed, weighted, with the entry penalties; `None` before its first sample.
#[must_use]
pub fn weighted(engine: &Engine, key: &str) -> Option<f64> {
    let id = engine.names().local_queues.get(key)?;
    engine.consumed_resources(id).1?;
    let usage = engine.fair_sharing_usage(id);
    let is_infinite = usage == FairSharingUsage::INFINITE;
    Some(if is_infinite { f64::INFINITY } else { usage.thousandths() as f64 / 1000.0 })
}

/// The record of a LocalQueue; `None` before its first sample, and for one without admission fair sharing.
#[must_use]
pub fn record(engine: &Engine, key: &str) -> Option<AdmissionFairSharingStatus> {
    let names = engine.names();
    let (consumed, at) = engine.consumed_resources(names.local_queues.get(key)?);
    let consumed = consumed.into_iter().map(|(resource, amount)| {
        let name = names.resources.name(resource);
        (name.to_owned(), quantity(name, amount))
    });
    let at = Timestamp::from_nanosecond(at?.0.into()).ok()?;
    Some(AdmissionFairSharingStatus {
        consumed_resources: consumed.collect(),
        last_update: Some(to_seconds(at)),
    })
}
