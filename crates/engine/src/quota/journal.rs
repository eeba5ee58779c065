//! The undo log of usage. What-if is: take a mark, change usage, look, rewind.
//!
//! Nothing is logged outside of a what-if, so that keeping the books costs no memory.

use crate::amount::Amount;

/// Old values of changed cells, newest last.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    entries: Vec<(usize, Amount)>,
    open: usize,
}

impl Journal {
    /// Starts a what-if and names the present state.
    pub(crate) fn mark(&mut self) -> usize {
        self.open += 1;
        self.entries.len()
    }

    /// Ends the what-if begun last. Its changes must have been undone, or be meant to stay in the enclosing one.
    pub(crate) fn close(&mut self) {
        self.open -= 1;
        if self.open == 0 {
            self.entries.clear();
        }
    }

    /// True within one what-if and no other.
    pub(super) fn is_outermost(&self) -> bool {
        self.open == 1
    }

    /// True outside of every what-if.
    pub(crate) fn is_empty(&self) -> bool {
        self.open == 0 && self.entries.is_empty()
    }

    /// Forgets what was noted after the first `length` entries.
    pub(super) fn cut(&mut self, length: usize) {
        self.entries.truncate(length);
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn note(&mut self, index: usize, old: Amount) {
        if self.open > 0 {
            self.entries.push((index, old));
        }
    }

    pub(super) fn undo(&mut self, mark: usize) -> Option<(usize, Amount)> {
        if self.entries.len() > mark { self.entries.pop() } else { None }
    }
}
