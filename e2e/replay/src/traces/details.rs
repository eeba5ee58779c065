//! What is counted of an object beside what is compared: messages of conditions, and every other field that was recorded.
//!
//! A case passes by the essence of its objects. Their details are counted, so that the share of equal ones is known, and each
//! difference can be looked up.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{case::TraceChanges, comparison, placeholders::TraceNames};

/// Metadata that every API server writes in its own way.
const SERVER_METADATA: &[&str] =
    &["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"];

/// Kinds of which a recording keeps a few fields only.
const SHORTENED: &[&str] = &["Pod", "Job", "Deployment", "StatefulSet"];

/// Times and versions within conditions.
const UNSTEADY: &[&str] = &["lastTransitionTime", "observedGeneration"];

/// The class of messages of conditions.
pub(crate) const MESSAGES: &str = "messages of conditions";

/// How many details of a class are as recorded, and how many are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DetailCount {
    pub(crate) same: usize,
    pub(crate) different: usize,
}

/// The details of objects, by class, and what differs.
#[derive(Debug, Default)]
pub(crate) struct DetailCounts {
    pub(crate) counts: BTreeMap<&'static str, DetailCount>,
    pub(crate) differences: Vec<String>,
}

impl DetailCounts {
    pub(crate) fn absorb(&mut self, other: Self) {
        for (class, count) in other.counts {
            let sum = self.counts.entry(class).or_default();
            sum.same += count.same;
            sum.different += count.different;
        }
        self.differences.extend(other.differences);
    }

    /// The share of the details of a class that are as recorded, in percent and rounded down; 0 without details.
    pub(crate) fn equal_percent(&self, class: &str) -> usize {
        let count = self.counts.get(class).copied().unwrap_or_default();
        let percent = (100 * count.same).checked_div(count.same + count.different);
        percent.unwrap_or_default()
    }

    /// These details with the case and the step at each difference.
    pub(crate) fn of(mut self, case: &str, step: u64) -> Self {
        for difference in &mut self.differences {
            *difference = format!("{case} step {step}: {difference}");
        }
        self
    }

    fn count(&mut self, class: &'static str, differences: Vec<String>) {
        let count = self.counts.entry(class).or_default();
        if differences.is_empty() {
            count.same += 1;
        } else {
            count.different += 1;
        }
        self.differences.extend(differences);
    }
}

/// The details of the objects that changed in a step and are known by name.
pub(crate) fn of_step(then: &TraceChanges, present: &[Value], names: &TraceNames) -> DetailCounts {
    let mut details = DetailCounts::default();
    for recorded in &then.changed {
        let (kind, name) = comparison::identity(recorded);
        if then.may_vary(&format!("{kind}/{name}")) {
            continue;
        }
        if let Some(ours) = comparison::known(kind, name, present, names) {
            of_object(recorded, ours, names, &mut details);
        }
    }
    details
}

fn of_object(recorded: &Value, ours: &Value, names: &TraceNames, details: &mut DetailCounts) {
    let (kind, name) = comparison::identity(recorded);
    let (mut recorded_rest, mut our_rest) = (normal(recorded), normal(ours));
    let (recorded_conditions, our_conditions) =
        (take_conditions(&mut recorded_rest), take_conditions(&mut our_rest));
    for (of, condition) in &recorded_conditions {
        let Some(now) = our_conditions.get(of) else { continue };
        let (recorded, now) = (&condition["message"], &now["message"]);
        // A shortened condition has none.
        if recorded.is_null() {
            continue;
        }
        let lines = comparison::of_values(recorded, now, names);
        let text = |line| format!("{kind}/{name} condition {of}{line}");
        details.count(MESSAGES, lines.into_iter().map(text).collect());
    }
    if SHORTENED.contains(&kind) {
        return;
    }
    let class =
        if kind == "Workload" { "other fields of Workloads" } else { "other fields of jobs" };
    let lines = comparison::of_values(&recorded_rest, &our_rest, names);
    let text = |line: String| format!("{kind}/{name} {line}");
    details.count(class, lines.into_iter().map(text).collect());
}

/// Conditions by type, taken out of the status of an object.
fn take_conditions(object: &mut Value) -> Map<String, Value> {
    let taken = object["status"].as_object_mut().and_then(|status| status.remove("conditions"));
    let Some(Value::Array(list)) = taken else { return Map::new() };
    let by_type = list.into_iter().filter_map(|one| Some((one["type"].as_str()?.to_owned(), one)));
    by_type.collect()
}

/// An object without what differs from server to server, and without fields that say nothing.
fn normal(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| !SERVER_METADATA.contains(&key.as_str()));
        if let Some(owners) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) {
            owners.sort_by_key(|owner| format!("{}/{}", owner["kind"], owner["name"]));
        }
    }
    without_empty(object).unwrap_or_else(|| json!({}))
}

/// Zero values and absent fields are the same to upstream's encoder.
fn without_empty(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(key, _)| !UNSTEADY.contains(&key.as_str()));
            let kept = kept.filter_map(|(key, value)| Some((key, without_empty(value)?)));
            let kept: Map<String, Value> = kept.collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let kept: Vec<Value> =
                items.into_iter().map(|item| without_empty(item).unwrap_or_default()).collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        Value::Null => None,
        Value::Bool(on) => on.then_some(value),
        Value::String(ref text) => (!text.is_empty()).then_some(value),
        Value::Number(ref number) => (number.as_f64() != Some(0.0)).then_some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(message: &str, owner: &str) -> Value {
        json!({
            "kind": "Workload",
            "metadata": { "name": "w", "uid": owner, "ownerReferences": [{ "kind": "Job", "name": owner }] },
            "spec": { "priority": 0, "podSets": [] },
            "status": { "conditions": [{ "type": "Admitted", "message": message }] },
        })
    }

    #[test]
    fn the_details_of_an_object_count_if_one_of_a_longer_name_varies() {
        let of = |varies: &str| {
            let changed = vec![workload("m", "a")];
            let then = TraceChanges {
                changed,
                varies: vec![varies.to_owned()],
                ..TraceChanges::default()
            };
            of_step(&then, &[workload("m", "a")], &TraceNames::of("ns")).counts.len()
        };
        assert_eq!((of("Workload/w-2"), of("Workload/w")), (2, 0));
    }

    #[test]
    fn messages_and_other_fields_are_counted_apart() {
        let recorded = workload("waits for <varies>", "a");
        let then = TraceChanges { changed: vec![recorded], ..TraceChanges::default() };
        let of = |present| of_step(&then, &[present], &TraceNames::of("ns"));
        let count = |details: &DetailCounts| {
            details.counts.values().map(|one| (one.same, one.different)).collect::<Vec<_>>()
        };
        let same = of(workload("waits for 3", "a"));
        assert_eq!((count(&same), same.differences.len()), (vec![(1, 0), (1, 0)], 0));
        assert_eq!(same.equal_percent(MESSAGES), 100);
        let differs = of(workload("waits", "b"));
        assert_eq!(differs.equal_percent(MESSAGES), 0);
        assert_eq!(DetailCounts::default().equal_percent(MESSAGES), 0);
        assert_eq!(count(&differs), [(0, 1), (0, 1)]);
        assert_eq!(
            differs.differences,
            [
                "Workload/w condition Admitted: \"waits\" instead of \"waits for <varies>\"",
                "Workload/w .metadata.ownerReferences[0].name: \"b\" instead of \"a\"",
            ]
        );
    }
}
