//! Metrics of events. Written events are counted as writes ([`crate::writer::WriteMetrics`]).

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::{EventRecord, EventType};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    why: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WarningLabels {
    kind: String,
    reason: String,
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
    warnings: Family<WarningLabels, Counter>,
}

impl EventMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Events that were dropped and never written, by why";
        registry.register("events_dropped", help, self.dropped.clone());
        let help = "Occurrences of Warning events, by the kind of the object and by reason";
        registry.register("warnings", help, self.warnings.clone());
    }

    /// Counts an occurrence, if it is a warning. A user sees it on the object, and an administrator sees here that there are such
    /// objects.
    pub(super) fn count_occurrence(&self, record: &EventRecord) {
        if record.event_type == EventType::Warning {
            let (kind, reason) = (record.regarding.kind.clone(), record.reason.clone());
            self.warnings.get_or_create(&WarningLabels { kind, reason }).inc();
        }
    }

    pub(super) fn count_dropped(&self, reason: DropReason, n: usize) {
        if n > 0 {
            let n = u64::try_from(n).unwrap_or(u64::MAX);
            self.dropped.get_or_create(&reason.labels()).inc_by(n);
        }
    }

    #[cfg(test)]
    pub(super) fn n_warnings(&self, kind: &str, reason: &str) -> u64 {
        let labels = WarningLabels { kind: kind.to_owned(), reason: reason.to_owned() };
        self.warnings.get_or_create(&labels).get()
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
