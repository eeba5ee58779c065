//! Metrics of watches.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// The watch, as named by [`Watch::typed`](super::Watch::typed).
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabels {
    watch: String,
}

/// Metrics of all watches of a process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct WatchMetrics {
    unreadable: Family<WatchLabels, Gauge>,
    failures: Family<WatchLabels, Counter>,
    restarts: Family<WatchLabels, Counter>,
    lost: Family<WatchLabels, Counter>,
    available: Family<WatchLabels, Gauge>,
}

impl WatchMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let unreadable = "Objects that exist but do not decode, and are skipped";
        registry.register("watch_unreadable_objects", unreadable, self.unreadable.clone());
        let failures = "Requests and streams of watches that failed";
        registry.register("watch_failures", failures, self.failures.clone());
        let restarts = "Streams that were restarted with a list";
        registry.register("watch_restarts", restarts, self.restarts.clone());
        let lost = "Consistency checks that found a change which the watch had not delivered";
        registry.register("watch_lost", lost, self.lost.clone());
        let available = "1 if the objects were listed; 0 before, and while an optional kind is not served or forbidden";
        registry.register("watch_available", available, self.available.clone());
    }

    /// The metrics of one watch.
    pub(super) fn of(&self, watch: &str) -> SingleWatchMetrics {
        let labels = WatchLabels { watch: watch.to_owned() };
        SingleWatchMetrics {
            unreadable: self.unreadable.get_or_create_owned(&labels),
            failures: self.failures.get_or_create_owned(&labels),
            restarts: self.restarts.get_or_create_owned(&labels),
            lost: self.lost.get_or_create_owned(&labels),
            available: self.available.get_or_create_owned(&labels),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct SingleWatchMetrics {
    pub(super) unreadable: Gauge,
    pub(super) failures: Counter,
    pub(super) restarts: Counter,
    pub(super) lost: Counter,
    pub(super) available: Gauge,
}
