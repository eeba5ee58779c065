use serde_json::Map;

use super::*;
use crate::{GenericJob, Kinds};

fn copy(framework: &str, status: &Value) -> JobObject {
    let kinds = Kinds::built_in();
    let kind = kinds.iter().find(|kind| kind.framework() == framework).expect("a kind");
    let object = json!({
        "metadata": {"name": "train", "namespace": "ns"},
        "spec": {"template": {"spec": {"containers": []}}}, "status": status,
    });
    kind.decode(object).expect("it decodes")
}

/// The status that is copied; `None` if it is the whole one.
fn bounded(framework: &str, status: &Value) -> Option<Value> {
    let bounded = bounded_status(&copy(framework, status))?;
    assert_eq!(bounded_status(&bounded), None, "it is cut once");
    Some(bounded.status())
}

fn complete(message: &str) -> Value {
    json!({"type": "Complete", "status": "True", "reason": "Done", "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

#[test]
fn a_status_within_the_limit_is_copied_whole() {
    let indexes = "1,3,".repeat(100_000);
    let status =
        json!({"succeeded": 2, "completedIndexes": indexes, "conditions": [complete("m")]});
    assert_eq!(bounded("batch/job", &status), None);
    assert_eq!(bounded("batch/job", &json!({})), None);
}

#[test]
fn a_status_beyond_the_limit_keeps_counts_and_conditions() {
    let huge = "x".repeat(LARGEST);
    let status = json!({"succeeded": 2, "completedIndexes": huge, "later": {"deep": [huge]},
        "conditions": [complete(&huge)]});
    let wanted = json!({"succeeded": 2, "conditions": [complete(&"x".repeat(LONGEST_TEXT))]});
    assert_eq!(bounded("batch/job", &status), Some(wanted));
    let cut = bounded_status(&copy("batch/job", &status)).expect("it is too large");
    assert!(cut.finished().is_some_and(|one| one.success), "the end is seen");
}

#[test]
fn hostile_shapes_are_cut_for_every_kind() {
    let huge = "é".repeat(LARGEST);
    let many_fields: Map<String, Value> =
        (0..60_000).map(|number| (format!("field-{number}"), json!(number))).collect();
    let shapes = [
        json!({"phase": huge}),
        json!({"conditions": huge}),
        json!({ huge.as_str(): 1 }),
        Value::Object(many_fields),
    ];
    for framework in ["batch/job", "pod", "ray.io/rayjob", "jobset.x-k8s.io/jobset"] {
        for status in &shapes {
            // The typed kinds refuse a field of another type where the object is decoded.
            let typed = ["batch/job", "pod"].contains(&framework);
            if typed && status.get("conditions").is_some() {
                continue;
            }
            let cut = bounded(framework, status).expect("it is too large");
            assert!(is_within(&cut, LARGEST), "{framework}");
        }
    }
}

#[test]
fn too_many_conditions_are_cut() {
    let many: Vec<Value> = (0..10_000).map(|_| complete(&"m".repeat(100))).collect();
    let cut = bounded("ray.io/rayjob", &json!({"conditions": many, "jobStatus": "RUNNING"}));
    let cut = cut.expect("it is too large");
    assert_eq!(cut["conditions"].as_array().map(Vec::len), Some(MOST_CONDITIONS));
    assert_eq!(cut["jobStatus"], "RUNNING");
    let shapeless =
        json!({"conditions": ["x".repeat(LARGEST), {"type": {"a": "x".repeat(LARGEST)}}]});
    assert_eq!(bounded("ray.io/rayjob", &shapeless), Some(json!({"conditions": []})));
}

/// Conditions of different types.
fn numbered(count: usize, message: &str) -> impl Iterator<Item = Value> {
    (0..count).map(move |number| {
        json!({"type": format!("Seen{number}"), "status": "True", "message": message})
    })
}

#[test]
fn the_condition_of_an_end_stays_wherever_it_is_in_the_list() {
    let huge = "x".repeat(LARGEST / 20);
    for (framework, end) in [("ray.io/rayjob", "Last"), ("jobset.x-k8s.io/jobset", "Completed")] {
        let ended = json!({"type": end, "status": "True"});
        let last: Vec<Value> = numbered(40, &huge).chain([ended.clone()]).collect();
        let cut = bounded(framework, &json!({"conditions": last})).expect("it is too large");
        let kept = cut["conditions"].as_array().expect("conditions");
        assert_eq!((kept.len(), kept.last()), (MOST_CONDITIONS, Some(&ended)), "{framework}");
        assert_eq!(kept[0]["type"], "Seen9", "the first ones go");
    }
    let first = std::iter::once(complete("m")).chain(numbered(40, &huge)).collect::<Vec<Value>>();
    let status = json!({"conditions": first});
    let cut = bounded_status(&copy("batch/job", &status)).expect("it is too large");
    assert!(cut.finished().is_some_and(|one| one.success), "the end is seen");
}

#[test]
fn long_conditions_cost_no_other_field() {
    let conditions: Vec<Value> = numbered(100, &"m".repeat(LARGEST / 50)).collect();
    let indexes = "1,3,".repeat(50_000);
    let status = json!({"succeeded": 2, "completedIndexes": indexes, "conditions": conditions});
    let cut = bounded("batch/job", &status).expect("it is too large");
    assert_eq!((&cut["completedIndexes"], &cut["succeeded"]), (&json!(indexes), &json!(2)));
    let medium = "x".repeat(LARGEST / 2);
    let status = json!({"huge": "x".repeat(LARGEST), "medium": medium, "phase": "Running"});
    let wanted = json!({"medium": medium, "phase": "Running"});
    assert_eq!(bounded("ray.io/rayjob", &status), Some(wanted), "the largest field goes first");
}
