//! How much of a slot a node may still take, and how far up the tree it must reach for it.
//!
//! A node may take what is left of its local part, and from its parent what the parent has, bounded by its borrowing
//! limit. Source: docs/reference/kueue.md §4.3. Cost: one cell per level, no allocation.

use crate::amount::Amount;
use crate::ids::{NodeId, Slot};
use crate::quota::tree::Tree;

/// What `node` may still take of `slot` without preempting anybody. Negative when the tree is over its quota.
pub(crate) fn available(tree: &Tree, node: NodeId, slot: Slot) -> Amount {
    let own = tree.at(node, slot);
    let Some(parent) = tree.parent(node) else {
        return own.subtree - own.usage;
    };
    let mut from_parent = available(tree, parent, slot);
    if let Some(limit) = own.borrowing_limit {
        let lent = own.subtree - own.local;
        let room = lent - own.above_local() + limit;
        from_parent = from_parent.min(room);
    }
    own.local_available() + from_parent
}

/// What `node` could take of `slot` if nobody used anything.
pub(crate) fn potential(tree: &Tree, node: NodeId, slot: Slot) -> Amount {
    let own = tree.at(node, slot);
    let Some(parent) = tree.parent(node) else {
        return own.subtree;
    };
    let all = own.local + potential(tree, parent, slot);
    match own.borrowing_limit {
        Some(limit) => all.min(own.subtree + limit),
        None => all,
    }
}

/// How far a request reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LowestSubtree {
    /// Height of the lowest subtree that holds the request within its own quota; 0 is the queue itself.
    pub(crate) height: u32,
    /// That subtree is a part of a larger tree, so that others may owe it quota.
    pub(crate) below_root: bool,
}

/// Finds the lowest ancestor (or `leaf` itself) whose subtree takes `amount` more without borrowing.
pub(crate) fn reach(tree: &Tree, leaf: NodeId, slot: Slot, amount: Amount) -> LowestSubtree {
    let own = tree.at(leaf, slot);
    let has_parent = tree.parent(leaf).is_some();
    if !own.borrowing_with(amount) || !has_parent {
        return LowestSubtree { height: 0, below_root: has_parent };
    }
    let mut rest = amount - own.local_available();
    for node in tree.ancestors(leaf) {
        let cell = tree.at(node, slot);
        if !cell.borrowing_with(rest) {
            let below_root = tree.parent(node).is_some();
            return LowestSubtree { height: tree.node(node).height, below_root };
        }
        rest -= cell.local_available();
    }
    LowestSubtree { height: tree.node(tree.root(leaf)).height, below_root: false }
}
