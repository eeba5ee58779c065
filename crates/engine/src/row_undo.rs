//! Rows of a table as they were before a what-if, saved when they are first changed.
//!
//! Cost: outside of a what-if one comparison per change; within, a copy of every row that is changed.

use std::collections::BTreeMap;

/// See the module.
#[derive(Debug)]
pub(crate) struct RowUndo<T> {
    /// Length of the table when the what-if began; `None` outside of one.
    length: Option<usize>,
    rows: BTreeMap<usize, Option<T>>,
}

impl<T> Default for RowUndo<T> {
    fn default() -> Self {
        Self { length: None, rows: BTreeMap::new() }
    }
}

impl<T: Clone> RowUndo<T> {
    /// A what-if begins.
    pub(crate) fn begin(&mut self, table: &[Option<T>]) {
        self.length = Some(table.len());
    }

    /// Whether a what-if is open.
    pub(crate) fn is_open(&self) -> bool {
        self.length.is_some()
    }

    /// A row is about to change.
    #[inline]
    pub(crate) fn keep(&mut self, table: &[Option<T>], index: usize) {
        if self.length.is_some_and(|length| index < length) {
            self.save(table, index);
        }
    }

    // Apart, so that changes outside of a what-if pay for the comparison alone.
    #[cold]
    #[inline(never)]
    fn save(&mut self, table: &[Option<T>], index: usize) {
        self.rows.entry(index).or_insert_with(|| table.get(index).cloned().flatten());
    }

    /// Any row may change.
    pub(crate) fn keep_all(&mut self, table: &[Option<T>]) {
        for index in 0..self.length.unwrap_or_default() {
            self.keep(table, index);
        }
    }

    /// The what-if ends: the table is what it was.
    pub(crate) fn undo(&mut self, table: &mut Vec<Option<T>>) {
        table.truncate(self.length.take().unwrap_or(table.len()));
        for (index, row) in std::mem::take(&mut self.rows) {
            table[index] = row;
        }
    }
}
