//! Amounts per slot of the quota tree, for one Workload.

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::ids::Slot;

/// Amounts per slot, in no particular order. Slots are few, so the search is linear.
pub(crate) type SlotUsage = SmallVec<[(Slot, Amount); 4]>;

/// Adds to the amount of a slot.
pub(crate) fn charge(usage: &mut SlotUsage, slot: Slot, amount: Amount) {
    match usage.iter_mut().find(|(known, _)| *known == slot) {
        Some((_, sum)) => *sum += amount,
        None => usage.push((slot, amount)),
    }
}

/// The amount of a slot; zero if absent.
pub(crate) fn charged(usage: &[(Slot, Amount)], slot: Slot) -> Amount {
    usage.iter().find(|(known, _)| *known == slot).map_or(Amount::ZERO, |&(_, amount)| amount)
}
