//! Metrics of decisions.

use std::time::Duration;

use prometheus_client::{metrics::histogram::Histogram, registry::Registry};

/// Upper bounds in seconds. A decision about one object takes less than the first one; 50 ms are the limit for a group of 2,000 pods.
const BUCKETS: [f64; 11] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0];

/// How long decisions took. Cheap to clone.
///
/// A decision follows every batch of inputs and answers; nothing else is observed or sent meanwhile.
#[derive(Clone, Debug)]
pub struct DecisionMetrics {
    seconds: Histogram,
}

impl Default for DecisionMetrics {
    fn default() -> Self {
        Self { seconds: Histogram::new(BUCKETS) }
    }
}

impl DecisionMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Time from a batch of inputs to the writes that follow";
        registry.register("decision_duration_seconds", help, self.seconds.clone());
    }

    /// Counts a decision that took so long, its inputs included.
    pub(crate) fn observe(&self, took: Duration) {
        self.seconds.observe(took.as_secs_f64());
    }
}
