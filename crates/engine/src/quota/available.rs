//! Available quota of a node in the cohort tree, and the lowest subtree that a request fits in.
//!
//! A node can use what is left of its local quota, and what its parent has available, up to its borrowing limit.
//! Kueue: `available`, `potentialAvailable`. Source: docs/reference/kueue.md §4.3. Cost: one cell per level, no
//! allocation.

use crate::amount::Amount;
use crate::ids::{NodeId, Slot};
use crate::quota::tree::QuotaTree;

/// Quota that `node` can still use for `slot` without preemption. Negative if usage exceeds quota, e.g. after a quota
/// was lowered.
pub(crate) fn available(tree: &QuotaTree, node: NodeId, slot: Slot) -> Amount {
    let own = tree.at(node, slot);
    let Some(parent) = tree.parent(node) else {
        return own.subtree - own.usage;
    };
    let mut from_parent = available(tree, parent, slot);
    if let Some(limit) = own.borrowing_limit {
        // Usage that the parent stores already counts against the borrowing limit.
        let lent = own.subtree - own.local;
        let room = lent - own.used_in_parent() + limit;
        from_parent = from_parent.min(room);
    }
    own.local_available() + from_parent
}

/// Quota that `node` could use for `slot` if there were no usage.
pub(crate) fn potential(tree: &QuotaTree, node: NodeId, slot: Slot) -> Amount {
    let own = tree.at(node, slot);
    let Some(parent) = tree.parent(node) else {
        return own.subtree;
    };
    let all = own.local + potential(tree, parent, slot);
    match own.borrowing_limit {
        // The limit counts from the whole subtree quota, of which the local quota is a part.
        Some(limit) => all.min(own.subtree + limit),
        None => all,
    }
}

/// The lowest subtree that a request fits in. Kueue: `FindHeightOfLowestSubtreeThatFits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LowestSubtree {
    /// Its height; 0 is the ClusterQueue itself.
    pub(crate) height: u32,
    /// It is not the whole tree, so other subtrees may have borrowed from it.
    pub(crate) below_root: bool,
}

/// Finds the lowest ancestor of `leaf`, or `leaf` itself, whose subtree takes `amount` more without borrowing.
pub(crate) fn reach(tree: &QuotaTree, leaf: NodeId, slot: Slot, amount: Amount) -> LowestSubtree {
    let own = tree.at(leaf, slot);
    let has_parent = tree.parent(leaf).is_some();
    // Without a parent there is no other subtree to borrow from.
    if !own.borrows_with(amount) || !has_parent {
        return LowestSubtree { height: 0, below_root: has_parent };
    }
    let mut rest = amount - own.local_available();
    for node in tree.ancestors(leaf) {
        let cell = tree.at(node, slot);
        if !cell.borrows_with(rest) {
            let below_root = tree.parent(node).is_some();
            return LowestSubtree { height: tree.node(node).height, below_root };
        }
        rest -= cell.local_available();
    }
    // If no subtree takes the request, Kueue uses the height of the root (§4.3).
    LowestSubtree { height: tree.node(tree.root(leaf)).height, below_root: false }
}
