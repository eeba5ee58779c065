//! What is found of a case, step by step.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::wanted;

/// Ours goes on writing.
pub(crate) const NO_REST: &str = "does not come to rest";

/// What an operation of a step was about.
pub(crate) const NOT_THERE: &str = "is not there to be changed";

/// Takes the objects that a recorded step made, changed and removed, by `Kind/name`.
pub(crate) fn take_recorded(objects: &mut BTreeMap<String, Value>, step: &Value) {
    for (id, object) in step["put"].as_object().into_iter().flatten() {
        objects.insert(id.clone(), object.clone());
    }
    for id in step["gone"].as_array().into_iter().flatten() {
        objects.remove(id.as_str().unwrap_or_default());
    }
}

/// A step of a case as it was recorded.
pub(crate) struct Moment<'a> {
    pub(crate) step: &'a Value,
    /// The objects after the step before, by `Kind/name`.
    pub(crate) before: &'a BTreeMap<String, Value>,
    /// The objects after the step.
    pub(crate) after: &'a BTreeMap<String, Value>,
}

impl Moment<'_> {
    /// The recorded objects of a kind after the step.
    pub(crate) fn objects(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.after.values().filter(move |object| object["kind"] == kind)
    }

    /// Whether an operation of the step, or an object before or after it, has a part that fulfils a condition.
    pub(crate) fn shows(&self, condition: &dyn Fn(&Value) -> bool) -> bool {
        let objects = self.before.values().chain(self.after.values());
        objects.chain([&self.step["do"]]).any(|it| any_part(it, condition))
    }
}

/// Whether any part of a value fulfils a condition.
fn any_part(value: &Value, condition: &dyn Fn(&Value) -> bool) -> bool {
    match value {
        Value::Object(fields) => {
            condition(value) || fields.values().any(|it| any_part(it, condition))
        }
        Value::Array(items) => items.iter().any(|it| any_part(it, condition)),
        _ => false,
    }
}

/// What was found of a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaseVerdict {
    /// Those that are not wanted: the case fails.
    pub(crate) differences: Vec<String>,
    /// Rules and reasons of those that are wanted.
    pub(crate) wanted: BTreeSet<&'static str>,
    /// Steps after the first wanted difference that are as recorded. One that differs by a rule again is not.
    pub(crate) n_further: usize,
    /// The step, from 1, that differed and follows one with a wanted difference. What comes after it is not compared.
    pub(crate) cut_at: Option<u64>,
    /// Steps that were taken.
    n_steps: u64,
    /// Events that were left out of the comparison, because they depend on the delay of a watch.
    pub(crate) n_exempt: usize,
}

impl CaseVerdict {
    /// The verdict of a case without steps.
    pub(crate) fn of_request(found: Vec<String>) -> Self {
        Self { differences: found, ..Self::default() }
    }

    /// Takes what differs in the next step. Returns whether the case goes on.
    ///
    /// A wanted difference ends no case. What differs in a later step and follows from no rule follows from the earlier difference: the
    /// case ends there, and does not fail.
    pub(crate) fn take(&mut self, moment: &Moment<'_>, found: Vec<String>) -> bool {
        self.n_steps += 1;
        let is_further = !self.wanted.is_empty();
        let mut unexplained = Vec::new();
        let mut reasons = BTreeSet::new();
        for difference in found {
            match wanted::reason(moment, &difference).filter(|_| !is_void(&difference)) {
                Some(reason) => {
                    reasons.insert(reason);
                }
                None => unexplained.push(difference),
            }
        }
        if unexplained.is_empty() {
            self.n_further += usize::from(is_further && reasons.is_empty());
            self.wanted.extend(reasons);
        } else if is_further {
            self.cut_at = Some(self.n_steps);
        } else {
            self.differences = unexplained;
        }
        self.differences.is_empty() && self.cut_at.is_none()
    }

    /// What tells a better verdict of the same case from a worse one, which has the greater value.
    pub(crate) fn badness(&self) -> (bool, bool, usize, usize) {
        let n_wanted = self.wanted.len();
        (!self.differences.is_empty(), self.cut_at.is_some(), n_wanted, usize::MAX - self.n_further)
    }
}

/// Whether the step could not be taken as recorded, so that no rule says what follows.
fn is_void(difference: &str) -> bool {
    difference.ends_with(NOT_THERE) || difference.ends_with(&format!(": {NO_REST}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_case_goes_on_after_a_wanted_difference_until_something_else_differs() {
        let spec = json!({"workerGroupSpecs": [{"groupName": "headgroup"}]});
        let objects = BTreeMap::from([("RayCluster/c".to_owned(), json!({"spec": spec}))]);
        let (none, step) = (BTreeMap::new(), json!({}));
        let wanted = Moment { step: &step, before: &none, after: &objects };
        let other = Moment { step: &step, before: &none, after: &none };
        let found = || vec!["Pod/p is missing".to_owned()];
        let mut verdict = CaseVerdict::default();
        assert!(verdict.take(&other, Vec::new()) && verdict.take(&wanted, found()));
        assert!(verdict.take(&wanted, found()) && verdict.take(&other, Vec::new()));
        assert_eq!((verdict.wanted.len(), verdict.n_further, verdict.cut_at), (1, 1, None));
        assert!(!verdict.take(&other, found()));
        assert!(verdict.differences.is_empty(), "it follows from the wanted one");
        assert_eq!(verdict.cut_at, Some(5));
        let mut failed = CaseVerdict::default();
        assert!(!failed.take(&other, found()));
        assert!(failed.cut_at.is_none() && failed.differences.len() == 1);
    }

    #[test]
    fn no_rule_explains_what_makes_the_comparison_void() {
        let spec = json!({"workerGroupSpecs": [{"groupName": "headgroup"}]});
        let objects = BTreeMap::from([("RayCluster/c".to_owned(), json!({"spec": spec}))]);
        let (none, step) = (BTreeMap::new(), json!({}));
        let moment = Moment { step: &step, before: &none, after: &objects };
        let differences = |text: &str| {
            let mut verdict = CaseVerdict::default();
            verdict.take(&moment, vec![format!("step 1 (a): {text}")]);
            verdict.differences.len()
        };
        assert_eq!(differences("Pod/p is missing"), 0, "the rule explains any other");
        assert_eq!(differences("does not come to rest"), 1);
        assert_eq!(differences("Pod/p is not there to be changed"), 1);
        assert_eq!(differences("the official operator does not come to rest"), 0, "theirs");
    }
}
