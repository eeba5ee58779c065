//! The table of ClusterQueues, by id.

use std::ops::{Index, IndexMut};

use crate::state::Queue;
use crate::undo::Saved;

/// See the module. A what-if finds every row that is borrowed for a change.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    table: Vec<Option<Queue>>,
    saved: Saved<Queue>,
}

impl Queues {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Makes room for so many.
    pub(crate) fn reach(&mut self, length: usize) {
        if self.table.len() < length {
            self.table.resize_with(length, || None);
        }
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Option<Queue>> {
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

impl Index<usize> for Queues {
    type Output = Option<Queue>;

    fn index(&self, index: usize) -> &Option<Queue> {
        &self.table[index]
    }
}

impl IndexMut<usize> for Queues {
    fn index_mut(&mut self, index: usize) -> &mut Option<Queue> {
        self.saved.keep(&self.table, index);
        &mut self.table[index]
    }
}
