//! Metrics of events. Written events are counted as writes ([`crate::writer::WriteMetrics`]).

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    why: &'static str,
}

/// Why an event was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DropReason {
    /// The channel of the recorder was full.
    Full,
    /// The process is stopping.
    Stopped,
    /// The write failed.
    Failed,
}

/// Event metrics of a process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct EventMetrics {
    dropped: Family<EventLabels, Counter>,
}

impl EventMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Events that were dropped and never written, by why";
        registry.register("events_dropped", help, self.dropped.clone());
    }

    pub(super) fn count_dropped(&self, reason: DropReason, n: usize) {
        if n > 0 {
            let n = u64::try_from(n).unwrap_or(u64::MAX);
            self.dropped.get_or_create(&reason.labels()).inc_by(n);
        }
    }

    #[cfg(test)]
    pub(super) fn n_dropped(&self, reason: DropReason) -> u64 {
        self.dropped.get_or_create(&reason.labels()).get()
    }
}

impl DropReason {
    fn labels(self) -> EventLabels {
        let why = match self {
            Self::Full => "full",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        };
        EventLabels { why }
    }
}
