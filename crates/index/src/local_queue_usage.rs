//! What a LocalQueue consumed under admission fair sharing, as its status records it. Source: docs/reference/kueue.md §3.8.

use crds::v1beta2::{AdmissionFairSharingStatus, LocalQueue};
use engine::{
    Engine, Event, FairSharingUsage, Names, Time, ids::ResourceId, spec::FairSharingWeight,
};
use jiff::Timestamp;

use crate::amount::{CPU, decimal_quantity, nano_amount, weight_of_step};
use crate::resource_groups;
use crate::time::{time, to_seconds};

/// Resource weights for the engine, from the configured ones in units of 10^-9. A weight is that of one core of cpu, which
/// the engine counts in thousandths; so cpu has a weight even if none is configured.
#[must_use]
pub fn resource_weights(
    names: &mut Names,
    configured: &[(String, u64)],
) -> Vec<(ResourceId, FairSharingWeight)> {
    let cpu = (CPU.to_owned(), FairSharingWeight::default().0);
    let default = Some(&cpu).filter(|_| configured.iter().all(|(name, _)| name != CPU));
    let weight = |(name, weight): &(String, u64)| {
        (names.resources.intern(name), FairSharingWeight(weight_of_step(name, *weight)))
    };
    configured.iter().chain(default).map(weight).collect()
}

/// Weights of resources, in units of 10^-9; one of a resource that is not listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageWeights(pub Vec<(String, u64)>);

impl UsageWeights {
    /// What the status of a LocalQueue records, weighted and divided by the weight of the LocalQueue, without the engine. Smaller
    /// comes first. Entry penalties are not recorded before they are settled.
    #[must_use]
    pub fn usage(&self, queue: &LocalQueue) -> i128 {
        let FairSharingWeight(own) = resource_groups::weight(queue.spec.fair_sharing.as_ref());
        // A weight of 0 makes the usage infinite (§3.8).
        if own == 0 {
            return i128::MAX;
        }
        let status = queue.status.fair_sharing.as_ref();
        let record = status.and_then(|one| one.admission_fair_sharing_status.as_ref());
        let consumed = record.iter().flat_map(|record| &record.consumed_resources);
        let weighted =
            consumed.map(|(name, amount)| amount.nanos().saturating_mul(self.of(name).into()));
        weighted.fold(0_i128, i128::saturating_add) / i128::from(own)
    }

    fn of(&self, resource: &str) -> u64 {
        let listed = self.0.iter().find(|(name, _)| name == resource);
        listed.map_or(FairSharingWeight::default().0, |(_, weight)| *weight)
    }
}

/// The consumption that the status of a LocalQueue records; `None` without a record.
#[must_use]
pub fn recorded(names: &mut Names, queue: &LocalQueue) -> Option<Event> {
    let status = queue.status.fair_sharing.as_ref()?.admission_fair_sharing_status.as_ref()?;
    let at = time(status.last_update.as_ref()?);
    let consumed = status.consumed_resources.iter().map(|(name, one)| {
        let amount = nano_amount(name, one);
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
    Some(if is_infinite { f64::INFINITY } else { usage.nanos() as f64 / 1e9 })
}

/// The record of a LocalQueue; `None` before its first sample, and for one without admission fair sharing.
#[must_use]
pub fn record(engine: &Engine, key: &str) -> Option<AdmissionFairSharingStatus> {
    let names = engine.names();
    let (consumed, at) = engine.consumed_resources(names.local_queues.get(key)?);
    let consumed = consumed.into_iter().map(|(resource, amount)| {
        let name = names.resources.name(resource);
        (name.to_owned(), decimal_quantity(name, amount))
    });
    let at = Timestamp::from_nanosecond(at?.0.into()).ok()?;
    Some(AdmissionFairSharingStatus {
        consumed_resources: consumed.collect(),
        last_update: Some(to_seconds(at)),
    })
}

#[cfg(test)]
mod tests {
    use engine::{AdmissionFairSharingSettings, EngineSettings};
    use serde_json::json;

    use super::*;

    /// The weighted usage of a LocalQueue that records these resources in its status.
    fn usage(consumed: &serde_json::Value, weights: &[(String, u64)]) -> Option<f64> {
        let mut engine = Engine::new(EngineSettings::default());
        let settings = AdmissionFairSharingSettings {
            usage_half_life: 1,
            interval: 1,
            weights: resource_weights(engine.names_mut(), weights),
        };
        engine.apply(Event::AdmissionFairSharing(Some(settings)));
        let record = json!({"consumedResources": consumed, "lastUpdate": "2026-01-01T00:00:00Z"});
        let queue = json!({
            "metadata": {"namespace": "ns", "name": "lq"}, "spec": {"clusterQueue": "cq"},
            "status": {"fairSharing": {"weightedShare": 0, "admissionFairSharingStatus": record}},
        });
        let queue: LocalQueue = serde_json::from_value(queue).expect("a LocalQueue");
        let without_engine = UsageWeights(weights.to_vec()).usage(&queue);
        let event = recorded(engine.names_mut(), &queue).expect("a record");
        engine.apply(event);
        let usage = weighted(&engine, "ns/lq");
        assert_eq!(usage, Some(without_engine as f64 / 1e9), "as of the engine");
        usage
    }

    #[test]
    fn usage_counts_cores() {
        let gpu = ("example.com/gpu".to_owned(), 5_000_000_000);
        let half = ("cpu".to_owned(), 500_000_000);
        assert_eq!(usage(&json!({"cpu": "4"}), &[]), Some(4.0));
        assert_eq!(usage(&json!({"cpu": "4", "example.com/gpu": "2"}), &[gpu]), Some(14.0));
        assert_eq!(usage(&json!({"cpu": "4", "example.com/gpu": "2"}), &[half]), Some(4.0));
    }
}
