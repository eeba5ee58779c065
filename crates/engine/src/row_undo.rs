//! Undo of table rows: rows are saved when a what-if first changes them.
//!
//! Cost: one comparison per change outside of a what-if; within one, a copy of every changed row.

use std::collections::BTreeMap;

use crate::dense_table::DenseTable;

/// Saved rows of one table.
#[derive(Debug)]
pub(crate) struct RowUndo<Id, T> {
    /// Length of the table when the what-if began; `None` outside.
    length: Option<usize>,
    rows: BTreeMap<Id, Option<T>>,
}

impl<Id, T> Default for RowUndo<Id, T> {
    fn default() -> Self {
        Self { length: None, rows: BTreeMap::new() }
    }
}

impl<Id: From<usize> + Into<usize> + Copy + Ord, T: Clone> RowUndo<Id, T> {
    /// Begins a what-if.
    pub(crate) fn begin(&mut self, table: &DenseTable<Id, Option<T>>) {
        self.length = Some(table.len());
    }

    /// Saves a row before a change.
    #[inline]
    pub(crate) fn keep(&mut self, table: &DenseTable<Id, Option<T>>, id: Id) {
        // Rows that the what-if added are dropped with the end of the table.
        if self.length.is_some_and(|length| id.into() < length) {
            self.save(table, id);
        }
    }

    // Out of line, so that a change outside of a what-if costs only the comparison.
    #[cold]
    #[inline(never)]
    fn save(&mut self, table: &DenseTable<Id, Option<T>>, id: Id) {
        self.rows.entry(id).or_insert_with(|| table.find(id).cloned());
    }

    /// Saves all rows.
    pub(crate) fn keep_all(&mut self, table: &DenseTable<Id, Option<T>>) {
        for index in 0..self.length.unwrap_or_default() {
            self.keep(table, Id::from(index));
        }
    }

    /// Ends the what-if: restores the table.
    pub(crate) fn undo(&mut self, table: &mut DenseTable<Id, Option<T>>) {
        // Rows behind the former end were added by the what-if.
        table.truncate(self.length.take().unwrap_or(table.len()));
        for (id, row) in std::mem::take(&mut self.rows) {
            table[id] = row;
        }
    }
}
