//! Quota and usage of one node in one (flavor, resource). Kueue: `ResourceQuota`, `SubtreeQuota`, `Usage` of a
//! `resourceNode`. Source: docs/reference/kueue.md §4.3.

use crate::amount::Amount;

/// The numbers of one (node, slot).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Own quota.
    pub(crate) nominal: Amount,
    /// Own quota plus what the children lend.
    pub(crate) subtree: Amount,
    /// The part of `subtree` that the parent cannot see.
    pub(crate) local: Amount,
    /// What is charged here.
    pub(crate) usage: Amount,
    /// Bound on what may be taken from the parent.
    pub(crate) borrowing_limit: Option<Amount>,
    pub(super) lending_limit: Option<Amount>,
}

impl Cell {
    pub(crate) const EMPTY: Self = Self {
        nominal: Amount::ZERO,
        subtree: Amount::ZERO,
        local: Amount::ZERO,
        usage: Amount::ZERO,
        borrowing_limit: None,
        lending_limit: None,
    };

    /// What is left of the part that the parent cannot see.
    #[inline]
    pub(crate) fn local_available(&self) -> Amount {
        (self.local - self.usage).clip()
    }

    /// What is charged to the parent.
    #[inline]
    pub(crate) fn above_local(&self) -> Amount {
        (self.usage - self.local).clip()
    }

    /// Whether `more` would take this subtree beyond its own quota.
    #[inline]
    pub(crate) fn borrowing_with(&self, more: Amount) -> bool {
        !self.subtree.is_unlimited() && self.usage + more > self.subtree
    }
}
