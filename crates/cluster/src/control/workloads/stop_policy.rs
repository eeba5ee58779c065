//! The stop policy that counts for a Workload: that of its ClusterQueue or of its LocalQueue, the stricter first.

/// What keeps a Workload from getting or keeping quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum StopPolicy {
    /// Neither queue is stopped.
    #[default]
    None,
    /// The ClusterQueue reserves no quota.
    HoldClusterQueue,
    /// The LocalQueue reserves no quota.
    HoldLocalQueue,
    /// The ClusterQueue evicts its Workloads.
    DrainClusterQueue,
    /// The LocalQueue evicts its Workloads.
    DrainLocalQueue,
}

impl StopPolicy {
    /// The policy of two queues, by their `stopPolicy`.
    pub(crate) fn of(cluster_queue: Option<&str>, local_queue: Option<&str>) -> Self {
        match (cluster_queue, local_queue) {
            (Some("HoldAndDrain"), _) => Self::DrainClusterQueue,
            (_, Some("HoldAndDrain")) => Self::DrainLocalQueue,
            (Some("Hold"), _) => Self::HoldClusterQueue,
            (_, Some("Hold")) => Self::HoldLocalQueue,
            _ => Self::None,
        }
    }

    /// Whether the ClusterQueue is stopped.
    pub(crate) fn stops_cluster_queue(self) -> bool {
        matches!(self, Self::HoldClusterQueue | Self::DrainClusterQueue)
    }

    /// Whether the LocalQueue is stopped and the ClusterQueue is not.
    pub(crate) fn stops_local_queue(self) -> bool {
        matches!(self, Self::HoldLocalQueue | Self::DrainLocalQueue)
    }
}
