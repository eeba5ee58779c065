//! The table of ClusterQueues, by id.
//!
//! A what-if restores every row that was borrowed for a change.

use crate::dense_table::DenseTable;
use crate::ids::QueueId;
use crate::queues::cluster_queue::ClusterQueueRecord;
use crate::row_undo::RowUndo;

/// ClusterQueues by id, with the rows that an open what-if changed.
#[derive(Debug, Default)]
pub(crate) struct ClusterQueueTable {
    table: DenseTable<QueueId, Option<ClusterQueueRecord>>,
    saved: RowUndo<QueueId, ClusterQueueRecord>,
}

impl ClusterQueueTable {
    /// The ids of all rows. A row may be empty: an id is handed out before the first event about it.
    pub(crate) fn ids(&self) -> impl ExactSizeIterator<Item = QueueId> + use<> {
        self.table.ids()
    }

    /// A ClusterQueue, if any object referred to it.
    #[inline]
    pub(crate) fn find(&self, id: QueueId) -> Option<&ClusterQueueRecord> {
        self.table.find(id)
    }

    /// A ClusterQueue that is in use.
    #[inline]
    pub(crate) fn at(&self, id: QueueId) -> &ClusterQueueRecord {
        self.table[id].as_ref().expect("invariant: ids of queues in use are in the table")
    }

    /// A ClusterQueue that is in use, for a change.
    #[inline]
    pub(super) fn at_mut(&mut self, id: QueueId) -> &mut ClusterQueueRecord {
        self.saved.keep(&self.table, id);
        self.table[id].as_mut().expect("invariant: ids of queues in use are in the table")
    }

    /// Adds a ClusterQueue.
    pub(crate) fn insert(&mut self, id: QueueId, queue: ClusterQueueRecord) {
        self.saved.keep(&self.table, id);
        *self.table.entry(id) = Some(queue);
    }

    /// All ClusterQueues for a change.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ClusterQueueRecord> {
        self.saved.keep_all(&self.table);
        self.table.rows_mut().flatten()
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
