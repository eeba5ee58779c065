//! What can be counted about events. Those that were written are counted as writes ([`crate::writer::WriteMetrics`]).

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    why: &'static str,
}

/// Why an event was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// Too many waited.
    Full,
    /// The process is ending.
    Stopped,
    /// The write failed.
    Failed,
}

/// Counters of the events of a process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct EventMetrics {
    dropped: Family<Labels, Counter>,
}

impl EventMetrics {
    /// Puts them into a registry.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Events that were told and never written, by why";
        registry.register("events_dropped", help, self.dropped.clone());
    }

    pub(super) fn lost(&self, why: Lost, n: usize) {
        if n > 0 {
            let n = u64::try_from(n).unwrap_or(u64::MAX);
            self.dropped.get_or_create(&why.labels()).inc_by(n);
        }
    }

    #[cfg(test)]
    pub(super) fn n_lost(&self, why: Lost) -> u64 {
        self.dropped.get_or_create(&why.labels()).get()
    }
}

impl Lost {
    fn labels(self) -> Labels {
        let why = match self {
            Self::Full => "full",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        };
        Labels { why }
    }
}
