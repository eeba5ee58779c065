//! A pod that no node takes, as the Workload life cycle sees it.

use jiff::Timestamp;

/// Of a clone, the pod that has been unschedulable for the longest time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnschedulablePod {
    /// When the clone is evicted for it.
    pub(crate) at: Timestamp,
    /// The message of that eviction.
    pub(crate) message: String,
}
