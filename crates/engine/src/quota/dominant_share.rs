//! Dominant resource share: usage above the subtree quota relative to what the parent can lend. Kueue:
//! `dominantResourceShare`.
//!
//! Per resource, borrowed amount over lendable amount; the largest ratio, divided by the node's weight. Computed in floating
//! point in upstream's order of operations: shares that are equal as fractions may differ by a rounding, and upstream decides
//! by it. Source: docs/reference/kueue.md §4.7. Cost: the slots of one row.

use std::cmp::Ordering;

use crate::amount::Amount;
use crate::ids::{NodeId, ResourceId, Slot};
use crate::quota::tree::QuotaTree;
use crate::spec::FairSharingWeight;

/// A share, in thousandths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DominantShare {
    /// The largest ratio over the resources, before the weight.
    unweighted: f64,
    weight: f64,
    /// Usage exceeds the subtree quota of a slot, even if nothing is lendable.
    pub(crate) borrowing: bool,
}

impl DominantShare {
    /// The share without borrowing.
    pub(crate) const NONE: Self = Self { unweighted: 0.0, weight: 1.0, borrowing: false };

    /// No ratio: nothing is borrowed, or only what is not lendable.
    fn is_zero(self) -> bool {
        self.unweighted == 0.0
    }

    /// A node of weight 0 that borrows, even if it borrows only what is not lendable and so has no ratio.
    fn is_infinite(self) -> bool {
        self.weight == 0.0 && self.borrowing
    }

    /// The share divided by the weight.
    pub(crate) fn weighted(self) -> f64 {
        match (self.is_infinite(), self.is_zero()) {
            (true, _) => f64::INFINITY,
            (_, true) => 0.0,
            _ => self.unweighted / self.weight,
        }
    }
}

impl Ord for DominantShare {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.is_infinite() && other.is_infinite() {
            return self.unweighted.total_cmp(&other.unweighted);
        }
        self.weighted().total_cmp(&other.weighted())
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

/// A weight as upstream reads it from the canonical form of its quantity: the digits times a power of ten.
fn weight_of(FairSharingWeight(nanos): FairSharingWeight) -> f64 {
    const SCALES: [(u64, f64); 4] =
        [(1_000_000_000, 1.0), (1_000_000, 1e-3), (1_000, 1e-6), (1, 1e-9)];
    let scale = SCALES.iter().find(|(unit, _)| nanos % unit == 0);
    scale.map_or(0.0, |(unit, factor)| float(nanos / unit) * factor)
}

#[expect(clippy::cast_precision_loss, reason = "upstream rounds, too")]
fn float(number: u64) -> f64 {
    number as f64
}

/// The present share of `node`. Roots have none.
pub(crate) fn share(tree: &QuotaTree, node: NodeId) -> DominantShare {
    let Some(parent) = tree.parent(node) else {
        return DominantShare::NONE;
    };
    let mut best = DominantShare::NONE;
    for slot in (0..tree.row(node).len()).map(Slot::from) {
        if !tree.borrows(node, slot) {
            continue;
        }
        best.borrowing = true;
        let (_, resource) = tree.flavor_and_resource(slot);
        // A resource is summed over its flavors once, at the first slot in which it is borrowed.
        if first_slot_of(tree, node, resource) != Some(slot) {
            continue;
        }
        let lendable = tree.lendable(parent, resource).0.max(0).unsigned_abs();
        // With nothing to lend there is no ratio, and only `borrowing` shows the usage (§4.7).
        if lendable > 0 {
            let ratio = float(borrowed(tree, node, resource)) * 1000.0 / float(lendable);
            best.unweighted = best.unweighted.max(ratio);
        }
    }
    if best.borrowing {
        best.weight = weight_of(tree.node(node).weight);
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
    slots.filter(move |&slot| {
        tree.flavor_and_resource(slot).1 == resource && tree.borrows(node, slot)
    })
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

    fn share(unweighted: f64, weight: u64) -> DominantShare {
        let weight = weight_of(FairSharingWeight(weight));
        DominantShare { unweighted, weight, borrowing: unweighted > 0.0 }
    }

    const ONE: u64 = 1_000_000_000;

    #[test]
    fn shares_are_divided_by_their_weight() {
        assert!(share(200.0, 2 * ONE) < share(200.0, ONE));
        assert_eq!(share(200.0, 2 * ONE), share(100.0, ONE));
        assert!(share(0.0, 0) < share(f64::MIN_POSITIVE, u64::MAX));
        assert!(share(1.0, 0) > share(1e18, 1));
        assert!(share(1.0, 0) < share(2.0, 0));
    }

    #[test]
    fn fractions_that_are_equal_may_differ_by_a_rounding() {
        let ratio = |borrowed: u64, lendable: u64| float(borrowed) * 1000.0 / float(lendable);
        // A third over weight 3 is a ninth over weight 1, and the smaller one for upstream.
        assert!(share(ratio(1, 3), 3 * ONE) < share(ratio(1, 9), ONE));
        assert_eq!(share(ratio(1, 2), 2 * ONE), share(ratio(1, 4), ONE));
    }

    #[test]
    fn a_weight_is_its_digits_times_a_power_of_ten() {
        for (nanos, weight) in [
            (0, 0.0),
            (2 * ONE, 2.0),
            (ONE / 2, 500.0 * 1e-3),
            (3_000, 3.0 * 1e-6),
            (7, 7.0 * 1e-9),
        ] {
            assert_eq!(
                weight_of(FairSharingWeight(nanos)).to_bits(),
                f64::to_bits(weight),
                "{nanos}"
            );
        }
    }

    #[test]
    fn weight_zero_is_infinite_as_soon_as_it_borrows() {
        let not_lendable = DominantShare { unweighted: 0.0, weight: 0.0, borrowing: true };
        assert!(not_lendable > share(1e18, ONE));
        assert!(not_lendable < share(1.0, 0), "by the unweighted shares");
        assert_eq!(not_lendable.weighted(), f64::INFINITY);
        assert_eq!(share(0.0, 0).weighted(), 0.0);
        assert_eq!(DominantShare { weight: 1.0, ..not_lendable }, share(0.0, ONE));
    }
}
