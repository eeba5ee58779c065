//! Who comes before whom among those who wait for room.

use std::cmp::Ordering;

use engine::{Time, ids::WorkloadId};

/// The turn of a Workload: higher priority first, then older. The smaller turn comes first.
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

/// A turn of one Workload; no two are equal.
pub(crate) type QueuePosition = (QueueOrder, WorkloadId);
