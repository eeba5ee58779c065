//! Metrics of decisions.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, histogram::Histogram},
    registry::Registry,
};

use crate::input_queues::InputSource;

/// Upper bounds in seconds. A decision about one object takes less than the first one; 50 ms are the limit for a group of 2,000 pods.
const BUCKETS: [f64; 11] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0];

/// How long decisions took, and how long inputs waited for them. Cheap to clone.
///
/// A decision follows every batch of inputs and answers; nothing else is observed or sent meanwhile.
#[derive(Clone, Debug)]
pub struct DecisionMetrics {
    seconds: Histogram,
    delays: Family<SourceLabels, Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabels {
    /// `hub` or `worker`.
    source: &'static str,
}

impl Default for DecisionMetrics {
    fn default() -> Self {
        let delays = Family::new_with_constructor(new_histogram as fn() -> Histogram);
        Self { seconds: new_histogram(), delays }
    }
}

fn new_histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl DecisionMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Time from a batch of inputs to the writes that follow";
        registry.register("decision_duration_seconds", help, self.seconds.clone());
        let help = "Time from a change that a watch has to the decision that observes it, by the class of its source";
        registry.register("input_delay_seconds", help, self.delays.clone());
    }

    /// Counts an input that waited so long.
    pub(crate) fn observe_input(&self, input: &impl InputSource, waited: Duration) {
        let source = if input.worker().is_some() { "worker" } else { "hub" };
        self.delays.get_or_create(&SourceLabels { source }).observe(waited.as_secs_f64());
    }

    /// Counts a decision that took so long, its inputs included.
    pub(crate) fn observe(&self, took: Duration) {
        self.seconds.observe(took.as_secs_f64());
    }
}
