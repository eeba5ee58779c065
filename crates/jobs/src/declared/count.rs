//! How many pods a pod set has, as data.

use serde::Deserialize;
use serde_json::Value;

use crate::pointer::Pointer;

/// A number that is read from an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Count {
    /// This number.
    Number(i64),
    /// The integer at a field; absent if the field is.
    At(Pointer),
    /// The first of several that is present.
    First(Vec<Self>),
    /// The smallest of those that are present.
    Min(Vec<Self>),
    /// The largest of those that are present.
    Max(Vec<Self>),
    /// The product. An absent factor makes it absent.
    Product(Vec<Self>),
    /// The number of a group that its operator keeps within bounds, as that of KubeRay does.
    Bounded(Bounded),
}

/// See [`Count::Bounded`]. Never absent: a group without a number has its least one, and none is below zero.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bounded {
    /// The number.
    pub number: Pointer,
    /// Its lower bound.
    pub least: Pointer,
    /// Its upper bound, which comes before the lower one.
    pub most: Pointer,
}

impl Bounded {
    fn of(&self, object: &Value) -> i64 {
        let [number, least] =
            [&self.number, &self.least].map(|at| at.number(object).unwrap_or_default());
        let raised = number.max(least).max(0);
        self.most.number(object).map_or(raised, |most| raised.min(most))
    }
}

impl Default for Count {
    fn default() -> Self {
        Self::Number(1)
    }
}

impl Count {
    /// The number in an object.
    #[must_use]
    pub fn of(&self, object: &Value) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::At(at) => at.number(object),
            Self::First(counts) => counts.iter().find_map(|count| count.of(object)),
            Self::Min(counts) => counts.iter().filter_map(|count| count.of(object)).min(),
            Self::Max(counts) => counts.iter().filter_map(|count| count.of(object)).max(),
            Self::Product(counts) => counts
                .iter()
                .try_fold(1_i64, |product, count| Some(product.saturating_mul(count.of(object)?))),
            Self::Bounded(bounded) => Some(bounded.of(object)),
        }
    }

    /// The number as a count of pods: 1 if it is absent, never negative.
    #[must_use]
    pub fn pods(&self, object: &Value) -> i32 {
        // An absent field has the default of Kubernetes' own replicas and parallelism.
        let number = self.of(object).unwrap_or(1).max(0);
        i32::try_from(number).unwrap_or(i32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn count(rule: Value) -> Count {
        serde_json::from_value(rule).expect("a count decodes")
    }

    #[test]
    fn absent_numbers_are_left_out_of_a_minimum_and_one_in_the_end() {
        let rule = count(json!({ "min": [{ "at": "/completions" }, { "at": "/parallelism" }] }));
        for (object, pods) in [
            (json!({ "completions": 2, "parallelism": 5 }), 2),
            (json!({ "completions": 2 }), 2),
            (json!({ "completions": null, "parallelism": 5 }), 5),
            (json!({ "completions": "2" }), 1),
            (json!({}), 1),
            (json!({ "completions": -3 }), 0),
        ] {
            assert_eq!(rule.pods(&object), pods, "{object}");
        }
    }

    #[test]
    fn a_maximum_is_a_lower_bound() {
        let rule = count(json!({ "max": [{ "number": 1 }, { "at": "/hosts" }] }));
        for (object, pods) in
            [(json!({ "hosts": 0 }), 1), (json!({}), 1), (json!({ "hosts": 4 }), 4)]
        {
            assert_eq!(rule.pods(&object), pods, "{object}");
        }
    }

    #[test]
    fn a_bounded_number_is_that_of_the_operator() {
        let rule = count(json!({ "bounded": { "number": "/n", "least": "/min", "most": "/max" } }));
        for (object, pods) in [
            (json!({}), 0),
            (json!({ "min": 2 }), 2),
            (json!({ "n": 1, "min": 2, "max": 5 }), 2),
            (json!({ "n": 7, "min": 2, "max": 5 }), 5),
            (json!({ "n": 3, "max": 5 }), 3),
            (json!({ "n": 3, "min": 4, "max": 2 }), 2),
            (json!({ "n": -1 }), 0),
        ] {
            assert_eq!(rule.pods(&object), pods, "{object}");
        }
    }

    #[test]
    fn a_product_does_not_overflow() {
        let rule = count(json!({ "product": [
            { "first": [{ "at": "/a" }, { "number": 2 }] }, { "at": "/b" },
        ] }));
        assert_eq!(rule.pods(&json!({ "b": 3 })), 6);
        assert_eq!(rule.pods(&json!({ "a": i64::MAX, "b": i64::MAX })), i32::MAX);
        assert_eq!(rule.of(&json!({ "a": 1 })), None);
    }
}
