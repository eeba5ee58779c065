//! The table of ClusterQueues, by id.
//!
//! A what-if restores every row that was borrowed for a change.

use std::ops::{Index, IndexMut};

use crate::ids::QueueId;
use crate::queues::cluster_queue::ClusterQueueRecord;
use crate::row_undo::RowUndo;

/// ClusterQueues by id, with the rows that an open what-if changed.
#[derive(Debug, Default)]
pub(crate) struct ClusterQueueTable {
    table: Vec<Option<ClusterQueueRecord>>,
    saved: RowUndo<ClusterQueueRecord>,
}

impl ClusterQueueTable {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// A ClusterQueue that is in use.
    #[inline]
    pub(crate) fn at(&self, id: QueueId) -> &ClusterQueueRecord {
        self.table[id.index()].as_ref().expect("invariant: ids of queues in use are in the table")
    }

    /// The same for a change.
    #[inline]
    pub(crate) fn at_mut(&mut self, id: QueueId) -> &mut ClusterQueueRecord {
        self[id.index()].as_mut().expect("invariant: ids of queues in use are in the table")
    }

    /// Makes the table at least this long.
    pub(crate) fn reach(&mut self, length: usize) {
        if self.table.len() < length {
            self.table.resize_with(length, || None);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Option<ClusterQueueRecord>> {
        self.table.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Option<ClusterQueueRecord>> {
        self.saved.keep_all(&self.table);
        self.table.iter_mut()
    }

    /// Starts to record rows for a what-if.
    pub(crate) fn begin(&mut self) {
        self.saved.begin(&self.table);
    }

    /// Restores the rows that changed since the what-if began.
    pub(crate) fn undo(&mut self) {
        self.saved.undo(&mut self.table);
    }
}

impl Index<usize> for ClusterQueueTable {
    type Output = Option<ClusterQueueRecord>;

    fn index(&self, index: usize) -> &Option<ClusterQueueRecord> {
        &self.table[index]
    }
}

impl IndexMut<usize> for ClusterQueueTable {
    fn index_mut(&mut self, index: usize) -> &mut Option<ClusterQueueRecord> {
        self.saved.keep(&self.table, index);
        &mut self.table[index]
    }
}
