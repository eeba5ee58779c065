//! The undo log of usage: take a mark, change usage, evaluate, rewind.
//!
//! Changes are logged only while a simulation is open.

use crate::amount::Amount;

/// The usage at the begin of a simulation: a position in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SimulationMark(usize);

/// Former values of changed cells, newest last.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    entries: Vec<(usize, Amount)>,
    open: usize,
}

impl Journal {
    /// Opens a simulation and returns the mark of the present state.
    pub(crate) fn mark(&mut self) -> SimulationMark {
        self.open += 1;
        SimulationMark(self.entries.len())
    }

    /// Closes the innermost simulation. Its changes must have been rewound, or stay until the enclosing one is
    /// rewound.
    pub(crate) fn close(&mut self) {
        self.open -= 1;
        if self.open == 0 {
            self.entries.clear();
        }
    }

    /// Whether exactly one simulation is open.
    pub(super) fn is_outermost(&self) -> bool {
        self.open == 1
    }

    /// Whether no simulation is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open == 0 && self.entries.is_empty()
    }

    /// Drops entries after the first `length`.
    pub(super) fn cut(&mut self, length: usize) {
        self.entries.truncate(length);
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn note(&mut self, index: usize, old: Amount) {
        // Outside of a simulation nothing is rewound, so nothing is noted.
        if self.open > 0 {
            self.entries.push((index, old));
        }
    }

    /// The mark to rewind to if no more than `changes` are undone.
    pub(super) fn mark_before(&self, changes: usize, mark: SimulationMark) -> SimulationMark {
        SimulationMark(self.entries.len().saturating_sub(changes).max(mark.0))
    }

    pub(super) fn undo(&mut self, mark: SimulationMark) -> Option<(usize, Amount)> {
        if self.entries.len() > mark.0 { self.entries.pop() } else { None }
    }
}
