//! The stop policies of the two queues of a Workload. Each queue stops and restarts by itself; of two that evict, the LocalQueue is the
//! reason, as upstream looks at it first. A queue that does not exist reserves no quota either, and evicts nothing; one that is being
//! deleted evicts if its policy says so.

use crds::names::reasons;

/// What a queue does with its Workloads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum QueueStop {
    /// It is not stopped.
    #[default]
    None,
    /// It reserves no quota.
    Hold,
    /// It evicts its Workloads.
    Drain,
    /// It does not exist, or is being deleted.
    Absent {
        /// Its policy evicts its Workloads: its deletion waits for their end.
        drains: bool,
    },
}

impl QueueStop {
    fn of(policy: Option<&str>) -> Self {
        match policy {
            Some("HoldAndDrain") => Self::Drain,
            Some("Hold") => Self::Hold,
            _ => Self::None,
        }
    }

    /// The same of a queue that does not exist, or is being deleted.
    fn absent(self) -> Self {
        Self::Absent { drains: self.evicts() }
    }

    fn evicts(self) -> bool {
        matches!(self, Self::Drain | Self::Absent { drains: true })
    }
}

/// What keeps a Workload from getting or keeping quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StopPolicy {
    cluster_queue: QueueStop,
    local_queue: QueueStop,
}

impl StopPolicy {
    /// The policies of two queues, by their `stopPolicy`.
    pub(crate) fn of(cluster_queue: Option<&str>, local_queue: Option<&str>) -> Self {
        Self {
            cluster_queue: QueueStop::of(cluster_queue),
            local_queue: QueueStop::of(local_queue),
        }
    }

    /// This policy with a LocalQueue that does not exist, or is being deleted.
    pub(crate) fn without_local_queue(self) -> Self {
        Self { local_queue: self.local_queue.absent(), ..self }
    }

    /// This policy with a ClusterQueue that does not exist, or is being deleted.
    pub(crate) fn without_cluster_queue(self) -> Self {
        Self { cluster_queue: self.cluster_queue.absent(), ..self }
    }

    /// Reason and message of a reservation that ends before the admission, with the names of the LocalQueue and the ClusterQueue. They are
    /// those of a pending Workload (docs/reference/kueue.md §4.2).
    pub(crate) fn end_of_reservation(
        self,
        (local_queue, cluster_queue): (&str, &str),
    ) -> Option<(&'static str, String)> {
        let (stop, queue) = match self.local_queue {
            QueueStop::None => (self.cluster_queue, format!("ClusterQueue {cluster_queue}")),
            stop => (stop, format!("LocalQueue {local_queue}")),
        };
        match stop {
            QueueStop::None => None,
            QueueStop::Absent { .. } => {
                Some((reasons::MISCONFIGURED, format!("{queue} doesn't exist")))
            }
            QueueStop::Hold | QueueStop::Drain => {
                Some((reasons::SUSPENDED, format!("{queue} is inactive")))
            }
        }
    }

    /// Reason and message of the eviction of an admitted Workload.
    pub(crate) fn eviction(self) -> Option<(&'static str, &'static str)> {
        if self.local_queue.evicts() {
            return Some((reasons::LOCAL_QUEUE_STOPPED, "The LocalQueue is stopped"));
        }
        let stopped = (reasons::CLUSTER_QUEUE_STOPPED, "The ClusterQueue is stopped");
        self.cluster_queue.evicts().then_some(stopped)
    }

    /// Whether the ClusterQueue is stopped.
    pub(crate) fn stops_cluster_queue(self) -> bool {
        self.cluster_queue != QueueStop::None
    }

    /// Whether the LocalQueue is stopped.
    pub(crate) fn stops_local_queue(self) -> bool {
        self.local_queue != QueueStop::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_stops_by_itself() {
        let (hold, drain) = (Some("Hold"), Some("HoldAndDrain"));
        let reason = |cluster_queue, local_queue| {
            StopPolicy::of(cluster_queue, local_queue).eviction().map(|one| one.0)
        };
        assert_eq!(reason(drain, drain), Some("LocalQueueStopped"));
        assert_eq!(reason(drain, hold), Some("ClusterQueueStopped"));
        assert_eq!(reason(hold, None), None);
        // A LocalQueue that is still stopped has not restarted because its ClusterQueue is stopped as well.
        let both = StopPolicy::of(drain, drain);
        assert!(both.stops_local_queue() && both.stops_cluster_queue());
        let one = StopPolicy::of(None, hold);
        assert!(one.stops_local_queue() && !one.stops_cluster_queue());
        assert_eq!(StopPolicy::of(Some("None"), None), StopPolicy::default());
    }

    #[test]
    fn a_reservation_ends_with_the_reason_that_a_pending_workload_has() {
        let end = |stop: StopPolicy| {
            let (reason, message) = stop.end_of_reservation(("lq", "cq"))?;
            Some(format!("{reason}: {message}"))
        };
        let (hold, drain) = (Some("Hold"), Some("HoldAndDrain"));
        for (stop, expected) in [
            (StopPolicy::default(), None),
            (StopPolicy::of(hold, None), Some("Suspended: ClusterQueue cq is inactive")),
            (StopPolicy::of(hold, drain), Some("Suspended: LocalQueue lq is inactive")),
            (
                StopPolicy::of(hold, None).without_local_queue(),
                Some("Misconfigured: LocalQueue lq doesn't exist"),
            ),
            (
                StopPolicy::of(hold, None).without_cluster_queue(),
                Some("Misconfigured: ClusterQueue cq doesn't exist"),
            ),
        ] {
            assert_eq!(end(stop).as_deref(), expected);
        }
        assert_eq!(StopPolicy::default().without_local_queue().eviction(), None);
        assert_eq!(StopPolicy::of(hold, None).without_cluster_queue().eviction(), None);
        let drained = StopPolicy::of(drain, None).without_cluster_queue();
        assert_eq!(drained.eviction().map(|one| one.0), Some("ClusterQueueStopped"));
        assert_eq!(end(drained).as_deref(), Some("Misconfigured: ClusterQueue cq doesn't exist"));
    }
}
