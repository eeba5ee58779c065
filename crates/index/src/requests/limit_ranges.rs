//! Defaults and bounds of LimitRanges, and overheads of RuntimeClasses.
//!
//! Several LimitRanges of a namespace combine: the smallest maximum, the largest minimum, the first default by name.
//! Source: docs/reference/kueue.md §2.7 steps 1 and 3.

use std::collections::BTreeMap;

use crds::quantity::Quantity;
use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem};
use k8s_openapi::apimachinery::pkg::api::resource;

use super::OwnedExactAmounts;

/// Bounds and defaults for containers, or for pods.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LimitBounds {
    pub(crate) max: OwnedExactAmounts,
    pub(crate) min: OwnedExactAmounts,
    pub(crate) default: OwnedExactAmounts,
    pub(crate) default_request: OwnedExactAmounts,
}

/// The combined LimitRanges of a namespace.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NamespaceLimits {
    pub(crate) container: LimitBounds,
    pub(crate) pod: LimitBounds,
}

/// Item types that concern pods.
const CONTAINER: &str = "Container";
const POD: &str = "Pod";

/// Combines LimitRanges.
pub(crate) fn summarize<'a>(ranges: impl IntoIterator<Item = &'a LimitRange>) -> NamespaceLimits {
    let mut limits = NamespaceLimits::default();
    for item in ranges.into_iter().filter_map(|one| one.spec.as_ref()).flat_map(|one| &one.limits) {
        match item.type_.as_str() {
            CONTAINER => limits.container.add(item),
            POD => limits.pod.add(item),
            // PersistentVolumeClaims and others limit no pods.
            _ => {}
        }
    }
    limits
}

impl LimitBounds {
    fn add(&mut self, item: &LimitRangeItem) {
        // Smallest maximum, largest minimum, first default (§2.7 step 3).
        merge(&mut self.max, item.max.as_ref(), |old, new| old.min(new));
        merge(&mut self.min, item.min.as_ref(), |old, new| old.max(new));
        merge(&mut self.default, item.default.as_ref(), |old, _| old);
        merge(&mut self.default_request, item.default_request.as_ref(), |old, _| old);
    }
}

fn merge(
    kept: &mut OwnedExactAmounts,
    new: Option<&BTreeMap<String, resource::Quantity>>,
    choose: impl Fn(i128, i128) -> i128,
) {
    for (name, amount) in amounts(new) {
        let entry = kept.entry(name).or_insert(amount);
        *entry = choose(*entry, amount);
    }
}

/// Quantities as exact amounts. An invalid quantity is left out.
pub(crate) fn amounts(map: Option<&BTreeMap<String, resource::Quantity>>) -> OwnedExactAmounts {
    let read = |(name, text): (&String, &resource::Quantity)| {
        let quantity: Quantity = text.0.parse().ok()?;
        Some((name.clone(), quantity.nanos()))
    };
    map.into_iter().flatten().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn several_limit_ranges_combine() {
        let range = |max: &str, min: &str, default: &str| -> LimitRange {
            serde_json::from_value(json!({"spec": {"limits": [
                {"type": "Container", "max": {"cpu": max}, "min": {"cpu": min},
                 "default": {"cpu": default}},
                {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
            ]}}))
            .expect("a LimitRange")
        };
        let limits = summarize(&[range("4", "1", "2"), range("3", "2", "3")]);
        let cpu = |kept: &OwnedExactAmounts| kept.get("cpu").map(|nanos| nanos / 1_000_000_000);
        let range = &limits.container;
        assert_eq!(
            (cpu(&range.max), cpu(&range.min), cpu(&range.default)),
            (Some(3), Some(2), Some(2))
        );
        assert_eq!(limits.pod, LimitBounds::default());
    }
}
