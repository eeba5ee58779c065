//! Undo of table rows: rows are saved when a what-if first changes them.
//!
//! Cost: one comparison per change outside of a what-if; within one, a copy of every changed row.

use std::collections::BTreeMap;

/// Saved rows of one table.
#[derive(Debug)]
pub(crate) struct RowUndo<T> {
    /// Length of the table when the what-if began; `None` outside.
    length: Option<usize>,
    rows: BTreeMap<usize, Option<T>>,
}

impl<T> Default for RowUndo<T> {
    fn default() -> Self {
        Self { length: None, rows: BTreeMap::new() }
    }
}

impl<T: Clone> RowUndo<T> {
    /// Begins a what-if.
    pub(crate) fn begin(&mut self, table: &[Option<T>]) {
        self.length = Some(table.len());
    }

    /// Whether a what-if is open.
    pub(crate) fn is_open(&self) -> bool {
        self.length.is_some()
    }

    /// Saves a row before a change.
    #[inline]
    pub(crate) fn keep(&mut self, table: &[Option<T>], index: usize) {
        if self.length.is_some_and(|length| index < length) {
            self.save(table, index);
        }
    }

    // Out of line, so that a change outside of a what-if costs only the comparison.
    #[cold]
    #[inline(never)]
    fn save(&mut self, table: &[Option<T>], index: usize) {
        self.rows.entry(index).or_insert_with(|| table.get(index).cloned().flatten());
    }

    /// Saves all rows.
    pub(crate) fn keep_all(&mut self, table: &[Option<T>]) {
        for index in 0..self.length.unwrap_or_default() {
            self.keep(table, index);
        }
    }

    /// Ends the what-if: restores the table.
    pub(crate) fn undo(&mut self, table: &mut Vec<Option<T>>) {
        table.truncate(self.length.take().unwrap_or(table.len()));
        for (index, row) in std::mem::take(&mut self.rows) {
            table[index] = row;
        }
    }
}
