//! Dominant resource share: how much more than its own a node uses, measured against what its parent could lend.
//!
//! Per resource, borrowed amount over lendable amount, in thousandths; the largest ratio, divided by the node's weight.
//! Taken in upstream's numbers and steps: where two shares differ by no more than the last bit of these, the bit decides.
//! Source: spec/kueue-core.md §4.7. Cost: the slots of one row.

use std::cmp::Ordering;

use crate::amount::Amount;
use crate::ids::{NodeId, ResourceId, Slot};
use crate::quota::tree::Tree;
use crate::spec::Weight;

/// A share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    /// Something is borrowed without any weight: more than any other share, and compared as it is.
    weightless: bool,
    /// Never negative, nor undefined.
    value: f64,
    /// Something is used beyond the own quota, even if nothing is lendable.
    pub(crate) borrowing: bool,
}

impl Share {
    /// No share at all.
    pub(crate) const NONE: Self = Self { weightless: false, value: 0.0, borrowing: false };

    fn new(ratio: f64, weight: f64, borrowing: bool) -> Self {
        let weightless = weight == 0.0 && ratio > 0.0;
        let divides = ratio > 0.0 && !weightless;
        Self { weightless, value: if divides { ratio / weight } else { ratio }, borrowing }
    }
}

impl Ord for Share {
    fn cmp(&self, other: &Self) -> Ordering {
        self.weightless.cmp(&other.weightless).then_with(|| self.value.total_cmp(&other.value))
    }
}

impl PartialOrd for Share {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Share {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Share {}

/// The share of `node` as things stand. Roots have none.
pub(crate) fn share(tree: &Tree, node: NodeId) -> Share {
    let Some(parent) = tree.parent(node) else {
        return Share::NONE;
    };
    let (mut ratio, mut borrowing) = (0.0_f64, false);
    for (slot, cell) in tree.row(node).iter().enumerate() {
        if cell.usage <= cell.subtree {
            continue;
        }
        borrowing = true;
        let (_, resource) = tree.pair(Slot::from(slot));
        if first_slot_of(tree, node, resource) != slot {
            continue;
        }
        let lendable = float(tree.lendable(parent, resource));
        if lendable > 0.0 {
            ratio = ratio.max(float(borrowed(tree, node, resource)) * 1000.0 / lendable);
        }
    }
    Share::new(ratio, units(tree.node(node).weight), borrowing)
}

fn float(amount: Amount) -> f64 {
    amount.0 as f64
}

fn units(Weight(billionths): Weight) -> f64 {
    billionths as f64 / 1e9
}

/// The first slot of `resource` in which `node` borrows, so that each resource is summed once.
fn first_slot_of(tree: &Tree, node: NodeId, resource: ResourceId) -> usize {
    let row = tree.row(node);
    let of_resource = |slot: &usize| {
        tree.pair(Slot::from(*slot)).1 == resource && row[*slot].usage > row[*slot].subtree
    };
    (0..row.len()).find(of_resource).unwrap_or(usize::MAX)
}

fn borrowed(tree: &Tree, node: NodeId, resource: ResourceId) -> Amount {
    let mut sum = Amount::ZERO;
    for (slot, cell) in tree.row(node).iter().enumerate() {
        if tree.pair(Slot::from(slot)).1 == resource {
            sum += (cell.usage - cell.subtree).clip();
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(borrowed: f64, lendable: f64, weight: f64) -> Share {
        Share::new(borrowed * 1000.0 / lendable, weight, borrowed > 0.0)
    }

    #[test]
    fn more_weight_is_less_share() {
        assert_eq!(share(1.0, 3.0, 1.0), share(2.0, 6.0, 1.0));
        assert!(share(1.0, 3.0, 2.0) < share(1.0, 3.0, 1.0));
        assert!(share(0.0, 3.0, 0.0) < share(1.0, 1e9, 1e9));
        assert!(share(1.0, 9.0, 0.0) > share(9.0, 1.0, 1.0));
        assert!(share(1.0, 9.0, 0.0) < share(2.0, 9.0, 0.0));
    }

    /// One of three with weight two, and five of three with weight ten, are the same; but not in these numbers.
    #[test]
    fn the_last_bit_decides() {
        assert!(share(1.0, 3.0, 2.0) < share(5.0, 3.0, 10.0));
    }

    #[test]
    fn weights_are_the_nearest_numbers() {
        assert_eq!([units(Weight(1_500_000_000)), units(Weight(100_000_000))], [1.5, 0.1]);
    }
}
