//! Dominant resource share: usage above the subtree quota relative to what the parent can lend. Kueue:
//! `dominantResourceShare`.
//!
//! Per resource, borrowed amount over lendable amount; the largest ratio, divided by the node's weight. Kept as a
//! fraction of integers and compared exactly. Source: docs/reference/kueue.md §4.7. Cost: the slots of one row.

use std::cmp::Ordering;

use crate::amount::Amount;
use crate::ids::{NodeId, ResourceId, Slot};
use crate::quota::tree::QuotaTree;
use crate::spec::FairSharingWeight;

/// A share: `borrowed / lendable / weight`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DominantShare {
    borrowed: u64,
    lendable: u64,
    weight: u64,
    /// Usage exceeds the subtree quota of a slot, even if nothing is lendable.
    pub(crate) borrowing: bool,
}

impl DominantShare {
    /// The share without borrowing.
    pub(crate) const NONE: Self = Self { borrowed: 0, lendable: 1, weight: 1, borrowing: false };

    /// True when the share counts as zero.
    pub(crate) fn is_zero(self) -> bool {
        self.borrowed == 0
    }

    fn is_infinite(self) -> bool {
        self.weight == 0 && self.borrowed > 0
    }

    fn compare_unweighted(self, other: Self) -> Ordering {
        let left = u128::from(self.borrowed) * u128::from(other.lendable);
        left.cmp(&(u128::from(other.borrowed) * u128::from(self.lendable)))
    }

    fn compare_weighted(self, other: Self) -> Ordering {
        let left = wide(u128::from(other.lendable) * u128::from(other.weight), self.borrowed);
        left.cmp(&wide(u128::from(self.lendable) * u128::from(self.weight), other.borrowed))
    }
}

/// `a * b` as (high, low).
fn wide(a: u128, b: u64) -> (u128, u128) {
    let b = u128::from(b);
    let low = (a & u128::from(u64::MAX)) * b;
    let high = (a >> 64) * b + (low >> 64);
    (high >> 64, (high << 64) | (low & u128::from(u64::MAX)))
}

impl Ord for DominantShare {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_infinite(), other.is_infinite()) {
            (true, true) => self.compare_unweighted(*other),
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            // Zero shares come first: in a product with weight 0 both sides would be zero.
            (false, false) => match (self.is_zero(), other.is_zero()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                (false, false) => self.compare_weighted(*other),
            },
        }
    }
}

impl PartialOrd for DominantShare {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for DominantShare {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for DominantShare {}

/// The present share of `node`. Roots have none.
pub(crate) fn share(tree: &QuotaTree, node: NodeId) -> DominantShare {
    let Some(parent) = tree.parent(node) else {
        return DominantShare::NONE;
    };
    let FairSharingWeight(weight) = tree.node(node).weight;
    let mut best = DominantShare { weight, ..DominantShare::NONE };
    for slot in (0..tree.row(node).len()).map(Slot::from) {
        if !tree.borrows(node, slot) {
            continue;
        }
        best.borrowing = true;
        let (_, resource) = tree.pair(slot);
        if first_slot_of(tree, node, resource) != Some(slot) {
            continue;
        }
        let ratio = DominantShare {
            borrowed: borrowed(tree, node, resource),
            lendable: tree.lendable(parent, resource).0.max(0).unsigned_abs(),
            ..best
        };
        // With nothing to lend there is no ratio, and only `borrowing` shows the usage (§4.7).
        if ratio.lendable > 0 && ratio.compare_unweighted(best) == Ordering::Greater {
            best = ratio;
        }
    }
    best
}

/// The first slot of `resource` in which `node` borrows, so that each resource is summed once.
fn first_slot_of(tree: &QuotaTree, node: NodeId, resource: ResourceId) -> Option<Slot> {
    borrowed_slots(tree, node, resource).next()
}

fn borrowed_slots(
    tree: &QuotaTree,
    node: NodeId,
    resource: ResourceId,
) -> impl Iterator<Item = Slot> + '_ {
    let slots = (0..tree.row(node).len()).map(Slot::from);
    slots.filter(move |&slot| tree.pair(slot).1 == resource && tree.borrows(node, slot))
}

fn borrowed(tree: &QuotaTree, node: NodeId, resource: ResourceId) -> u64 {
    let mut sum = Amount::ZERO;
    for slot in borrowed_slots(tree, node, resource) {
        let cell = tree.at(node, slot);
        sum += cell.usage - cell.subtree;
    }
    sum.0.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fraction(borrowed: u64, lendable: u64, weight: u64) -> DominantShare {
        DominantShare { borrowed, lendable, weight, borrowing: borrowed > 0 }
    }

    #[test]
    fn shares_compare_as_fractions() {
        assert_eq!(fraction(1, 3, 1), fraction(2, 6, 1));
        assert!(fraction(1, 3, 2) < fraction(1, 3, 1));
        assert!(fraction(0, 3, 0) < fraction(1, u64::MAX, u64::MAX));
        assert!(fraction(1, 9, 0) > fraction(9, 1, 1));
        assert!(fraction(1, 9, 0) < fraction(2, 9, 0));
    }

    #[test]
    fn huge_products_do_not_overflow() {
        let big = u64::MAX;
        assert!(fraction(big, big, big) < fraction(big, big, big - 1));
        assert_eq!(
            wide(u128::MAX, u64::MAX),
            (u128::from(u64::MAX - 1), u128::MAX - u128::from(u64::MAX) + 1)
        );
    }
}
