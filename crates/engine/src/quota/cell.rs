//! Quota and usage of one node in one (flavor, resource). Kueue: `ResourceQuota`, `SubtreeQuota`, `Usage` of a
//! `resourceNode`. Source: docs/reference/kueue.md §4.3.

use crate::amount::Amount;

/// Quota and usage of one (node, slot).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuotaCell {
    /// Nominal quota of the node itself.
    pub(crate) nominal: Amount,
    /// Subtree quota: nominal quota plus what the children lend.
    pub(crate) subtree: Amount,
    /// Local quota: the part of `subtree` that is not lent to the parent.
    pub(crate) local: Amount,
    /// Usage charged to this node.
    pub(crate) usage: Amount,
    /// `borrowingLimit`: bound on what the node borrows from its parent.
    pub(crate) borrowing_limit: Option<Amount>,
    /// `lendingLimit`: bound on what the node lends of its subtree quota to its parent.
    pub(super) lending_limit: Option<Amount>,
}

impl QuotaCell {
    pub(crate) const EMPTY: Self = Self {
        nominal: Amount::ZERO,
        subtree: Amount::ZERO,
        local: Amount::ZERO,
        usage: Amount::ZERO,
        borrowing_limit: None,
        lending_limit: None,
    };

    /// Unused local quota.
    #[inline]
    pub(crate) fn local_available(&self) -> Amount {
        (self.local - self.usage).clip()
    }

    /// Usage that is charged to the parent.
    #[inline]
    pub(crate) fn used_in_parent(&self) -> Amount {
        (self.usage - self.local).clip()
    }

    /// Whether `more` usage would exceed the subtree quota.
    #[inline]
    pub(crate) fn borrows_with(&self, more: Amount) -> bool {
        // An unlimited sum absorbs: no usage exceeds it, not even an unlimited one.
        !self.subtree.is_unlimited() && self.usage + more > self.subtree
    }
}
