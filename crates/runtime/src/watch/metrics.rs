//! What can be counted about watches.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// Which watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    watch: String,
}

/// Counters of all watches of a process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct WatchMetrics {
    unreadable: Family<Labels, Gauge>,
    failures: Family<Labels, Counter>,
    restarts: Family<Labels, Counter>,
    lost: Family<Labels, Counter>,
}

impl WatchMetrics {
    /// Puts them into a registry.
    pub fn register(&self, registry: &mut Registry) {
        let unreadable = "Objects that exist but do not decode, and are left out";
        registry.register("watch_unreadable_objects", unreadable, self.unreadable.clone());
        let failures = "Requests and streams of watches that failed";
        registry.register("watch_failures", failures, self.failures.clone());
        let restarts = "Streams that were given up and begun anew with a list";
        registry.register("watch_restarts", restarts, self.restarts.clone());
        let lost =
            "Looks that found an object which had changed, and of which the watch had not told";
        registry.register("watch_lost", lost, self.lost.clone());
    }

    /// Those of one watch.
    pub(super) fn of(&self, watch: &str) -> OneWatch {
        let labels = Labels { watch: watch.to_owned() };
        OneWatch {
            unreadable: self.unreadable.get_or_create_owned(&labels),
            failures: self.failures.get_or_create_owned(&labels),
            restarts: self.restarts.get_or_create_owned(&labels),
            lost: self.lost.get_or_create_owned(&labels),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct OneWatch {
    pub(super) unreadable: Gauge,
    pub(super) failures: Counter,
    pub(super) restarts: Counter,
    pub(super) lost: Counter,
}
