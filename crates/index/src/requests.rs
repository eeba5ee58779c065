//! What the pods of a Workload ask for.
//!
//! [`defaults`] is what LimitRanges and RuntimeClasses add, [`formula`] the sum over the containers of one pod,
//! [`effective`] what of it counts as quota, [`problems`] what is wrong with it. Pure, and never written back to a spec.
//! Amounts are exact here, in billionths; they are rounded once, when they leave. Source: docs/reference/kueue.md §2.7.

pub(crate) mod effective_requests;
pub(crate) mod limit_ranges;
pub(crate) mod pod_requests;
pub(crate) mod problems;

use std::collections::BTreeMap;

use crds::quantity::Quantity;

/// Exact amounts by resource, in billionths.
pub(crate) type ExactAmounts<'a> = BTreeMap<&'a str, i128>;

/// Exact amounts that outlive the object they came from.
pub(crate) type OwnedExactAmounts = BTreeMap<String, i128>;

pub(crate) fn read(map: &BTreeMap<String, Quantity>) -> ExactAmounts<'_> {
    map.iter().map(|(name, quantity)| (name.as_str(), quantity.nanos())).collect()
}

/// Adds what is missing.
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
