//! Effective requests: the part of a pod's requests that counts as quota.
//!
//! Excluded resources are removed, transformations are applied, negative amounts become zero. Source:
//! docs/reference/kueue.md §2.7 steps 5, 6 and 8.

use std::borrow::Cow;
use std::collections::BTreeMap;

use engine::Amount;

use super::ExactAmounts;
use crate::amount::from_nanos;
use crate::config::{IndexConfig, InputRetention, ResourceTransformation};

const NANOS_PER_UNIT: i128 = 1_000_000_000;

/// Effective requests of one pod, by name.
pub(crate) type EffectiveRequests<'a> = BTreeMap<Cow<'a, str>, Amount>;

/// Computes the effective requests of one pod.
pub(crate) fn effective<'a>(
    mut requests: ExactAmounts<'a>,
    config: &'a IndexConfig,
) -> EffectiveRequests<'a> {
    let excluded =
        |name: &str| config.exclude_prefixes.iter().any(|prefix| name.starts_with(prefix));
    requests.retain(|name, _| !excluded(name));
    let counted = transform(&requests, &config.transformations);
    let counted = counted.into_iter().map(|(name, nanos)| (name, from_nanos(name, nanos).clip()));
    counted.map(|(name, amount)| (Cow::Borrowed(name), amount)).collect()
}

fn transform<'a>(
    requests: &ExactAmounts<'a>,
    all: &'a [ResourceTransformation],
) -> ExactAmounts<'a> {
    let mut made = ExactAmounts::new();
    let mut kept = requests.clone();
    for one in all {
        // Inputs are read from the pod's own requests: no output is the input of another
        // transformation.
        let Some(&input) = requests.get(one.input.as_str()) else {
            continue;
        };
        let by = one.multiply_by.as_deref().and_then(|name| requests.get(name));
        let input = by.map_or(input, |&by| times(input, by));
        for (output, factor) in &one.outputs {
            let sum = made.entry(output.as_str()).or_default();
            *sum = sum.saturating_add(times(input, factor.nanos()));
        }
        if one.strategy == InputRetention::Replace {
            kept.remove(one.input.as_str());
        }
    }
    for (name, amount) in made {
        // A negative sum must not lower a request that is retained (docs/reference/kueue.md §2.7
        // step 6).
        let sum = kept.entry(name).or_default();
        *sum = sum.saturating_add(amount.max(0));
    }
    kept
}

/// Product of two exact amounts, rounded up to a billionth.
fn times(one: i128, other: i128) -> i128 {
    let product = one.saturating_mul(other);
    product.div_euclid(NANOS_PER_UNIT) + i128::from(product.rem_euclid(NANOS_PER_UNIT) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(pairs: &[(&'static str, i128)]) -> ExactAmounts<'static> {
        pairs.iter().map(|&(name, units)| (name, units * NANOS_PER_UNIT)).collect()
    }

    fn one(
        input: &str,
        strategy: InputRetention,
        by: Option<&str>,
        outputs: &[(&str, &str)],
    ) -> ResourceTransformation {
        let output =
            |&(name, factor): &(&str, &str)| (name.to_owned(), factor.parse().expect("a factor"));
        ResourceTransformation {
            input: input.to_owned(),
            strategy,
            multiply_by: by.map(str::to_owned),
            outputs: outputs.iter().map(output).collect(),
        }
    }

    fn counted(config: &IndexConfig, pairs: &[(&'static str, i128)]) -> Vec<(String, i64)> {
        let all = effective(requests(pairs), config);
        all.into_iter().map(|(name, amount)| (name.into_owned(), amount.0)).collect()
    }

    #[test]
    fn excluded_resources_are_removed_before_transformations() {
        let config = IndexConfig {
            exclude_prefixes: vec!["example.com/".into()],
            transformations: vec![one(
                "example.com/a",
                InputRetention::Retain,
                None,
                &[("credits", "1")],
            )],
            ..IndexConfig::default()
        };
        assert_eq!(
            counted(&config, &[("example.com/a", 2), ("memory", 1)]),
            [("memory".into(), 1)]
        );
    }

    #[test]
    fn a_transformation_adds_its_outputs() {
        let mig = |strategy| IndexConfig {
            transformations: vec![
                one("gpu/1g", strategy, None, &[("credits", "10"), ("memory", "5Gi")]),
                one("gpu/2g", strategy, None, &[("credits", "20")]),
            ],
            ..IndexConfig::default()
        };
        let requests_of_pod = [("gpu/1g", 2), ("gpu/2g", 1), ("memory", 7)];
        let sums = [("credits".to_owned(), 40), ("memory".to_owned(), 7 + (10 << 30))];
        assert_eq!(counted(&mig(InputRetention::Replace), &requests_of_pod), sums);
        let retained = counted(&mig(InputRetention::Retain), &requests_of_pod);
        assert_eq!(
            retained.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["credits", "gpu/1g", "gpu/2g", "memory"]
        );
    }

    #[test]
    fn outputs_are_multiplied_by_another_request() {
        let config = IndexConfig {
            transformations: vec![one(
                "memory-per",
                InputRetention::Replace,
                Some("gpu"),
                &[("memory", "1")],
            )],
            ..IndexConfig::default()
        };
        assert_eq!(
            counted(&config, &[("gpu", 4), ("memory-per", 3)]),
            [("gpu".into(), 4), ("memory".into(), 12)]
        );
        assert_eq!(counted(&config, &[("memory-per", 3)]), [("memory".into(), 3)]);
    }

    #[test]
    fn effective_requests_are_never_negative() {
        let config = IndexConfig {
            transformations: vec![one("a", InputRetention::Retain, None, &[("b", "-1")])],
            ..IndexConfig::default()
        };
        assert_eq!(counted(&config, &[("a", 2), ("b", 3)]), [("a".into(), 2), ("b".into(), 3)]);
    }
}
