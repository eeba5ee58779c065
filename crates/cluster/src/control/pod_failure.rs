//! Pods of a clone that cannot run here, as the Workload life cycle sees them.

use jiff::Timestamp;

/// Why a clone is evicted unless its pods run before: no node takes one, the API server refuses them, or their nodes are not provided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodFailure {
    /// When the clone is evicted.
    pub(crate) at: Timestamp,
    /// The reason of that eviction.
    pub(crate) reason: &'static str,
    /// Its message.
    pub(crate) message: String,
}
