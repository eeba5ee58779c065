//! How many pods a pod set has, as data.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    expected_type::{ExpectedType, WrongType},
    pointer::Pointer,
};

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
    fn of(&self, object: &Value) -> Result<i64, WrongType> {
        let number = integer(&self.number, object)?.unwrap_or_default();
        let least = integer(&self.least, object)?.unwrap_or_default();
        let raised = number.max(least).max(0);
        Ok(integer(&self.most, object)?.map_or(raised, |most| raised.min(most)))
    }
}

impl Default for Count {
    fn default() -> Self {
        Self::Number(1)
    }
}

impl Count {
    /// The number in an object.
    ///
    /// # Errors
    /// If a field that is read is there and no integer. It never counts as absent: the job may have any number of pods.
    pub fn of(&self, object: &Value) -> Result<Option<i64>, WrongType> {
        match self {
            Self::Number(number) => Ok(Some(*number)),
            Self::At(at) => integer(at, object),
            Self::First(counts) => {
                let mut present = counts.iter().filter_map(|count| count.of(object).transpose());
                present.next().transpose()
            }
            Self::Min(counts) => Ok(present(counts, object)?.into_iter().min()),
            Self::Max(counts) => Ok(present(counts, object)?.into_iter().max()),
            Self::Product(counts) => {
                let factors = present(counts, object)?;
                let product = factors.iter().fold(1_i64, |all, factor| all.saturating_mul(*factor));
                Ok((factors.len() == counts.len()).then_some(product))
            }
            Self::Bounded(bounded) => bounded.of(object).map(Some),
        }
    }

    /// The number as a count of pods: 1 if it is absent, never negative.
    ///
    /// # Errors
    /// As for the number.
    pub fn pods(&self, object: &Value) -> Result<i32, WrongType> {
        // An absent field has the default of Kubernetes' own replicas and parallelism.
        let number = self.of(object)?.unwrap_or(1).max(0);
        Ok(i32::try_from(number).unwrap_or(i32::MAX))
    }
}

/// The integer at a field; absent if the field is.
fn integer(at: &Pointer, object: &Value) -> Result<Option<i64>, WrongType> {
    // What surrounds a number that is there has the right types.
    if let Some(number) = at.number(object) {
        return Ok(Some(number));
    }
    match ExpectedType::Number.contradicted(at, object) {
        Some(wrong) => Err(wrong),
        None => Ok(at.get(object).map(|_| i64::MAX)),
    }
}

/// Those of several numbers that are present.
fn present(counts: &[Count], object: &Value) -> Result<Vec<i64>, WrongType> {
    counts.iter().filter_map(|count| count.of(object).transpose()).collect()
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
            (json!({}), 1),
            (json!({ "completions": -3 }), 0),
        ] {
            assert_eq!(rule.pods(&object), Ok(pods), "{object}");
        }
    }

    #[test]
    fn a_maximum_is_a_lower_bound() {
        let rule = count(json!({ "max": [{ "number": 1 }, { "at": "/hosts" }] }));
        for (object, pods) in
            [(json!({ "hosts": 0 }), 1), (json!({}), 1), (json!({ "hosts": 4 }), 4)]
        {
            assert_eq!(rule.pods(&object), Ok(pods), "{object}");
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
            assert_eq!(rule.pods(&object), Ok(pods), "{object}");
        }
    }

    #[test]
    fn a_product_does_not_overflow() {
        let rule = count(json!({ "product": [
            { "first": [{ "at": "/a" }, { "number": 2 }] }, { "at": "/b" },
        ] }));
        assert_eq!(rule.pods(&json!({ "b": 3 })), Ok(6));
        assert_eq!(rule.pods(&json!({ "a": i64::MAX, "b": i64::MAX })), Ok(i32::MAX));
        assert_eq!(rule.of(&json!({ "a": 1 })), Ok(None));
    }

    #[test]
    fn a_field_that_is_no_integer_is_never_absent() {
        let read = json!({ "at": "/spec/size" });
        for rule in [
            read.clone(),
            json!({ "first": [read, { "number": 1 }] }),
            json!({ "min": [{ "number": 1 }, read] }),
            json!({ "max": [{ "number": 1 }, read] }),
            json!({ "product": [{ "at": "/none" }, read] }),
            json!({ "bounded": { "number": "/none", "least": "/none", "most": "/spec/size" } }),
        ] {
            let rule = count(rule);
            let error = |object: Value| rule.pods(&object).map_err(|wrong| wrong.to_string());
            for size in [json!("8"), json!(8.0), json!({}), json!([8]), json!(true)] {
                let found = error(json!({ "spec": { "size": size } }));
                assert_eq!(found, Err("spec.size is no integer".to_owned()), "{rule:?} {size}");
            }
            for spec in [json!("x"), json!([{ "size": 8 }])] {
                let found = error(json!({ "spec": spec }));
                assert_eq!(found, Err("spec is no object".to_owned()), "{rule:?} {spec}");
            }
            assert!(error(json!({ "spec": { "size": 1 } })).is_ok());
            assert!(error(json!({ "spec": { "size": u64::MAX } })).is_ok());
        }
    }
}
