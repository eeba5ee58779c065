//! Order of Workloads that wait for cluster capacity.

use std::cmp::Ordering;

use engine::{Time, ids::WorkloadId};

/// Queue order: higher priority first, then the earlier queue-order timestamp. The smaller value comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueOrder {
    /// Effective priority.
    pub priority: i64,
    /// Queue-order timestamp.
    pub queued_at: Time,
}

impl Ord for QueueOrder {
    fn cmp(&self, other: &Self) -> Ordering {
        other.priority.cmp(&self.priority).then(self.queued_at.cmp(&other.queued_at))
    }
}

impl PartialOrd for QueueOrder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Queue order with the id of the Workload as the last key, so that no two positions are equal.
pub(crate) type WaitingPosition = (QueueOrder, WorkloadId);
