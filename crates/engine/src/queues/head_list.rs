//! The ClusterQueues that may have a head, so that a cycle need not visit all of them.
//!
//! Invariant: a ClusterQueue with a head is listed. One without a head may be listed; the next cycle removes it.

use std::ops::Range;

use crate::ids::QueueId;

/// ClusterQueues that may have a head, each at most once, in no particular order.
#[derive(Debug, Default, Clone)]
pub(crate) struct HeadList(Vec<QueueId>);

impl HeadList {
    /// Adds a ClusterQueue that is not listed.
    pub(crate) fn add(&mut self, queue: QueueId) {
        self.0.push(queue);
    }

    /// Number of listed ClusterQueues.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The ClusterQueue at a position.
    pub(crate) fn at(&self, position: usize) -> QueueId {
        self.0[position]
    }

    /// Moves a ClusterQueue to an earlier position. The entry there is overwritten.
    pub(crate) fn move_to(&mut self, position: usize, queue: QueueId) {
        self.0[position] = queue;
    }

    /// Removes the entries at these positions.
    pub(crate) fn remove(&mut self, positions: Range<usize>) {
        self.0.drain(positions);
    }

    /// All listed ClusterQueues.
    pub(crate) fn iter(&self) -> impl Iterator<Item = QueueId> + '_ {
        self.0.iter().copied()
    }
}
