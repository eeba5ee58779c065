//! Requests of pods.
//!
//! [`limit_ranges`] holds defaults of LimitRanges and RuntimeClasses, [`pod_requests`] the sum over the containers of
//! a pod, [`effective_requests`] the part that counts as quota, [`problems`] validation. Everything is pure; nothing
//! is written back to a spec. Amounts are exact, in billionths, and rounded once at the end. Source:
//! docs/reference/kueue.md §2.7.

pub(crate) mod effective_requests;
pub(crate) mod limit_ranges;
pub(crate) mod pod_requests;
pub(crate) mod problems;

use std::collections::BTreeMap;

use crds::quantity::Quantity;

/// Exact amounts by resource, in billionths.
pub(crate) type ExactAmounts<'a> = BTreeMap<&'a str, i128>;

/// Exact amounts with owned names.
pub(crate) type OwnedExactAmounts = BTreeMap<String, i128>;

pub(crate) fn read(map: &BTreeMap<String, Quantity>) -> ExactAmounts<'_> {
    map.iter().map(|(name, quantity)| (name.as_str(), quantity.nanos())).collect()
}

/// Adds entries that are missing.
pub(crate) fn complete<'a>(
    amounts: &mut ExactAmounts<'a>,
    from: impl IntoIterator<Item = (&'a str, i128)>,
) {
    for (name, amount) in from {
        amounts.entry(name).or_insert(amount);
    }
}

pub(crate) fn borrowed(kept: &OwnedExactAmounts) -> impl Iterator<Item = (&str, i128)> {
    kept.iter().map(|(name, &amount)| (name.as_str(), amount))
}
