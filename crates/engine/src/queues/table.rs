//! The table of ClusterQueues, by id.

use std::ops::{Index, IndexMut};

use crate::row_undo::RowUndo;
use crate::state::ClusterQueueRecord;

/// See the module. A what-if finds every row that is borrowed for a change.
#[derive(Debug, Default)]
pub(crate) struct ClusterQueueTable {
    table: Vec<Option<ClusterQueueRecord>>,
    saved: RowUndo<ClusterQueueRecord>,
}

impl ClusterQueueTable {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Makes room for so many.
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

    /// A what-if begins.
    pub(crate) fn begin(&mut self) {
        self.saved.begin(&self.table);
    }

    /// The what-if ends.
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
