//! What the status of a job says, as data: a question with the answer yes or no.

use crds::names::reasons::MULTI_KUEUE_ADAPTER;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::pointer::Pointer;

/// A question about an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Probe {
    /// The answer is always no.
    #[default]
    Never,
    /// The condition of this type is True.
    Condition(String),
    /// A number at one of these fields is above 0.
    AnyAbove(Vec<Pointer>),
    /// A text at the field is one of these; an absent field is the empty text.
    In {
        /// The field.
        at: Pointer,
        /// The texts.
        values: Vec<String>,
    },
    /// No text at the field is one of these; an absent field is the empty text.
    NotIn {
        /// The field.
        at: Pointer,
        /// The texts.
        values: Vec<String>,
    },
    /// Two sums of numbers are equal.
    EqualSums(Vec<Pointer>, Vec<Pointer>),
    /// A field is there, and is neither empty nor false.
    Present(Pointer),
    /// The answer to another question is no.
    Not(Box<Self>),
}

/// The field that a clear may change.
const STATUS: &str = "status";

/// Where conditions stand.
const CONDITIONS: &str = "/status/conditions";

/// Message of a condition that is set to False because the copy of the job is gone.
pub(crate) const NOTHING_RUNS: &str = "Nothing of the job runs on a worker";

impl Probe {
    /// The path of the field that has to be there, if that is the question.
    pub(super) fn present_field(&self) -> Option<String> {
        match self {
            Self::Present(at) => Some(at.field_path()),
            _ => None,
        }
    }

    /// The type of the condition that is asked for, if any is.
    pub(super) fn read_condition(&self) -> Option<&str> {
        match self {
            Self::Condition(name) => Some(name),
            Self::Not(probe) => probe.read_condition(),
            _ => None,
        }
    }

    /// The answer for an object.
    #[must_use]
    pub fn holds(&self, object: &Value) -> bool {
        match self {
            Self::Never => false,
            Self::Condition(name) => true_condition(object, |one| one == name).is_some(),
            Self::AnyAbove(fields) => numbers(fields, object).any(|number| number > 0),
            Self::In { at, values } => has_text(at, values, object),
            Self::NotIn { at, values } => !has_text(at, values, object),
            Self::EqualSums(left, right) => {
                numbers(left, object).sum::<i64>() == numbers(right, object).sum::<i64>()
            }
            Self::Present(at) => at.get(object).is_some_and(says_something),
            Self::Not(probe) => !probe.holds(object),
        }
    }

    /// Changes the status so that the answer is no. A text that has no such value stays.
    pub fn clear(&self, object: &mut Value) {
        match self {
            Self::Condition(name) => clear_condition(object, name),
            Self::AnyAbove(fields) => set_to_zero(fields, object),
            // The other sum is what should be there: the sums differ unless that is nothing.
            Self::EqualSums(left, right) => {
                let of_status =
                    |sum: &&Vec<Pointer>| sum.iter().all(|field| field.is_below(STATUS));
                if let Some(sum) = [left, right].into_iter().find(of_status) {
                    set_to_zero(sum, object);
                }
            }
            // An absent field is the empty text: to remove it answers no unless the empty text is
            // in the list.
            Self::In { at, values } if !values.iter().any(String::is_empty) => {
                at.remove(object);
            }
            Self::NotIn { at, values } if values.iter().any(String::is_empty) => {
                at.remove(object);
            }
            Self::Present(at) => {
                at.remove(object);
            }
            Self::Never | Self::In { .. } | Self::NotIn { .. } | Self::Not(_) => {}
        }
    }

    /// Fields that it reads.
    pub(super) fn fields(&self) -> Vec<&Pointer> {
        match self {
            Self::Never | Self::Condition(_) => Vec::new(),
            Self::AnyAbove(fields) => fields.iter().collect(),
            Self::In { at, .. } | Self::NotIn { at, .. } | Self::Present(at) => vec![at],
            Self::Not(probe) => probe.fields(),
            Self::EqualSums(left, right) => left.iter().chain(right).collect(),
        }
    }
}

/// The first condition of such a type that is True. A list without keys may have several of one type.
pub(super) fn true_condition(object: &Value, is_wanted: impl Fn(&str) -> bool) -> Option<&Value> {
    let mut conditions = object.pointer(CONDITIONS)?.as_array()?.iter();
    conditions.find(|one| one["status"] == "True" && one["type"].as_str().is_some_and(&is_wanted))
}

fn clear_condition(object: &mut Value, name: &str) {
    let conditions = object.pointer_mut(CONDITIONS).and_then(Value::as_array_mut);
    let conditions = conditions.into_iter().flatten();
    for condition in conditions.filter(|one| one["type"] == name && one["status"] == "True") {
        // The time of the last transition stays: schemas require one, and a decision reads no clock.
        condition["status"] = json!("False");
        condition["reason"] = json!(MULTI_KUEUE_ADAPTER);
        condition["message"] = json!(NOTHING_RUNS);
    }
}

fn set_to_zero(fields: &[Pointer], object: &mut Value) {
    for field in fields {
        field.change_all(object, &mut |number| {
            if number.as_i64().is_some_and(|number| number > 0) {
                *number = json!(0);
            }
        });
    }
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

fn numbers<'a>(fields: &'a [Pointer], object: &'a Value) -> impl Iterator<Item = i64> + 'a {
    fields.iter().flat_map(|field| field.all(object)).filter_map(Value::as_i64)
}

fn has_text(at: &Pointer, values: &[String], object: &Value) -> bool {
    let mut texts = at.all(object).into_iter().filter_map(Value::as_str).peekable();
    if texts.peek().is_none() {
        return values.iter().any(String::is_empty);
    }
    texts.any(|text| values.iter().any(|value| value == text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(rule: Value) -> Probe {
        serde_json::from_value(rule).expect("a probe decodes")
    }

    #[test]
    fn each_form_is_answered_and_cleared() {
        let running = json!({ "status": {
            "conditions": [{ "type": "Running", "status": "True" }],
            "replicas": { "a": { "active": 0, "ready": 2 }, "b": { "active": 1, "ready": 1 } },
            "phase": "Running",
        }, "spec": { "n": 3 } });
        let phase = |form: &str, values: &[&str]| {
            probe(json!({ form: { "at": "/status/phase", "values": values } }))
        };
        let table = [
            (probe(json!({ "condition": "Running" })), true, false),
            (probe(json!({ "condition": "Other" })), false, false),
            (probe(json!({ "anyAbove": ["/status/replicas/*/active"] })), true, false),
            (phase("in", &["Running"]), true, false),
            (phase("notIn", &["", "Suspended"]), true, false),
            (probe(json!({ "in": { "at": "/status/none", "values": [""] } })), true, true),
            // No value of the status makes the empty phase count as suspended.
            (phase("notIn", &["Suspended"]), true, true),
            (
                probe(json!({ "equalSums": [["/status/replicas/*/ready"], ["/spec/n"]] })),
                true,
                false,
            ),
            (
                probe(json!({ "equalSums": [["/spec/n"], ["/status/replicas/*/ready"]] })),
                true,
                false,
            ),
            (probe(json!({ "equalSums": [["/spec/n"], ["/spec/n"]] })), true, true),
            (Probe::Never, false, false),
            (
                probe(
                    json!({ "in": { "at": "/status/conditions/*/type", "values": ["Running"] } }),
                ),
                true,
                false,
            ),
            (probe(json!({ "present": "/status/replicas" })), true, false),
            (probe(json!({ "present": "/status/none" })), false, false),
            (probe(json!({ "not": { "condition": "Other" } })), true, true),
        ];
        for (probe, answer, cleared) in table {
            let mut object = running.clone();
            assert_eq!(probe.holds(&object), answer, "{probe:?}");
            probe.clear(&mut object);
            assert_eq!(probe.holds(&object), cleared, "{probe:?}");
        }
    }
}
