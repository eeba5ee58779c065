//! Differences between recorded objects and those of the cluster.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    case::TraceChanges,
    essence,
    placeholders::{TraceNames, VARIES},
};

/// What differs from the changes of a step, in words; nothing if all is as recorded. `present` are the objects of the namespace.
/// Names that are seen for the first time are bound.
pub(crate) fn differences(
    then: &TraceChanges,
    present: &[Value],
    names: &mut TraceNames,
) -> Vec<String> {
    let mut found = Vec::new();
    for recorded in &then.changed {
        let (kind, name) = identity(recorded);
        if then.may_vary(&format!("{kind}/{name}")) || super::collection(kind, "").is_none() {
            continue;
        }
        match object(recorded, present, names) {
            Ok(name_now) => names.bind(kind, name, &name_now),
            Err(difference) => found.push(format!("{kind}/{name}: {difference}")),
        }
    }
    for gone in &then.gone {
        let Some((kind, recorded)) = gone.split_once('/') else { continue };
        if known(kind, recorded, present, names).is_some() {
            exchange_for_an_absent_one(kind, recorded, then, present, names);
        }
        if known(kind, recorded, present, names).is_some() {
            found.push(format!("{gone} is not gone"));
        }
    }
    found
}

/// The object that a recorded name stands for.
pub(crate) fn known<'a>(
    kind: &str,
    recorded: &str,
    present: &'a [Value],
    names: &TraceNames,
) -> Option<&'a Value> {
    let name = names.name(kind, recorded)?;
    present.iter().find(|object| identity(object) == (kind, name.as_str()))
}

/// Which of several equal objects goes first is the choice of their controller: a ReplicaSet deletes pods that share a node before
/// others. The recorded name then stands for the object that went.
fn exchange_for_an_absent_one(
    kind: &str,
    recorded: &str,
    then: &TraceChanges,
    present: &[Value],
    names: &mut TraceNames,
) {
    let absent = names.alike(kind, recorded).into_iter().find(|other| {
        let goes_too = then.gone.iter().any(|gone| *gone == format!("{kind}/{other}"));
        !goes_too && known(kind, other, present, names).is_none()
    });
    if let Some(absent) = absent {
        names.exchange(recorded, &absent);
    }
}

/// Kind and name of an object.
pub(crate) fn identity(object: &Value) -> (&str, &str) {
    (
        object["kind"].as_str().unwrap_or_default(),
        object["metadata"]["name"].as_str().unwrap_or_default(),
    )
}

/// The name of the object that is the recorded one, or how the nearest one differs.
fn object(recorded: &Value, present: &[Value], names: &TraceNames) -> Result<String, String> {
    let (kind, name) = identity(recorded);
    let known = names.name(kind, name);
    let candidates = present.iter().filter(|object| {
        let (of, now) = identity(object);
        of == kind
            && match &known {
                Some(known) => known == now,
                None => names.matches(name, now) && !names.is_bound(kind, now),
            }
    });
    let expected = essence::of(recorded);
    let mut nearest: Option<Vec<String>> = None;
    for candidate in candidates {
        let lines = of_values(&expected, &essence::of(candidate), names);
        if lines.is_empty() {
            return Ok(identity(candidate).1.to_owned());
        }
        if nearest.as_ref().is_none_or(|nearest| lines.len() < nearest.len()) {
            nearest = Some(lines);
        }
    }
    Err(nearest.map_or_else(|| "is not there".to_owned(), |lines| lines.join("; ")))
}

/// How the compared part of an answered object differs from the recorded one.
pub(crate) fn of_answer(recorded: &Value, answered: &Value, names: &TraceNames) -> Vec<String> {
    of_values(&essence::of(recorded), &essence::of(answered), names)
}

/// How a value differs from the recorded one.
pub(crate) fn of_values(recorded: &Value, ours: &Value, names: &TraceNames) -> Vec<String> {
    let mut lines = Vec::new();
    diff("", recorded, ours, names, &mut lines);
    lines
}

/// Whether a recorded value has nothing but fields that differed between two runs.
fn only_varies(recorded: &Value) -> bool {
    match recorded {
        Value::Object(fields) => !fields.is_empty() && fields.values().all(only_varies),
        value => value == VARIES,
    }
}

/// Lists where a value differs from the recorded one.
fn diff(path: &str, recorded: &Value, ours: &Value, names: &TraceNames, lines: &mut Vec<String>) {
    match (recorded, ours) {
        (Value::String(text), _) if text == VARIES => {}
        (recorded, Value::Null) if only_varies(recorded) => {}
        (Value::String(recorded), Value::String(ours)) if names.matches(recorded, ours) => {}
        (Value::Object(recorded), Value::Object(ours)) => {
            // Fields that were there in some runs only may be there or not.
            let others = (!recorded.contains_key(VARIES)).then(|| ours.keys());
            let keys = recorded.keys().filter(|key| *key != VARIES);
            let keys: BTreeSet<&String> = keys.chain(others.into_iter().flatten()).collect();
            for key in keys {
                let value = |map: &serde_json::Map<String, Value>| {
                    map.get(key).cloned().unwrap_or_default()
                };
                diff(&format!("{path}.{key}"), &value(recorded), &value(ours), names, lines);
            }
        }
        (Value::Array(recorded), Value::Array(ours)) if recorded.len() == ours.len() => {
            for (at, (recorded, ours)) in recorded.iter().zip(ours).enumerate() {
                diff(&format!("{path}[{at}]"), recorded, ours, names, lines);
            }
        }
        (recorded, ours) if recorded == ours => {}
        (recorded, ours) => lines.push(format!("{path}: {ours} instead of {recorded}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workload(name: &str, status: &str) -> Value {
        json!({
            "kind": "Workload", "metadata": { "name": name },
            "spec": { "podSets": [{ "name": "main", "count": 2 }], "queueName": "main" },
            "status": { "conditions": [{ "type": "Admitted", "status": status, "reason": "R" }] },
        })
    }

    #[test]
    fn a_condition_of_some_runs_only_may_be_there_or_not() {
        let mut recorded = workload("w", "True");
        recorded["status"]["conditions"].as_array_mut().expect("a list").push(json!(VARIES));
        let then = TraceChanges { changed: vec![recorded], ..TraceChanges::default() };
        let differences =
            |present: Value| differences(&then, &[present], &mut TraceNames::of("ns"));
        assert_eq!(differences(workload("w", "True")), [""; 0]);
        let mut more = workload("w", "True");
        let target = json!({ "type": "DeactivationTarget", "status": "True", "reason": "R" });
        more["status"]["conditions"].as_array_mut().expect("a list").push(target);
        assert_eq!(differences(more), [""; 0]);
        assert_eq!(differences(workload("w", "False")).len(), 1);
    }

    #[test]
    fn fields_that_varied_may_all_be_absent() {
        let recorded = json!({ "spec": { "driver": { "nodeSelector": VARIES }, "n": VARIES } });
        let lines = of_values(&recorded, &json!({ "spec": {} }), &TraceNames::of("ns"));
        assert_eq!(lines, [""; 0]);
    }

    #[test]
    fn an_object_with_a_random_name_is_found_once() {
        let then = TraceChanges {
            changed: vec![workload("job-j-<h5:1>", "True"), workload("job-j-<h5:2>", "False")],
            gone: vec!["Pod/p".to_owned()],
            ..TraceChanges::default()
        };
        let mut names = TraceNames::of("ns");
        let present = [workload("job-j-a", "False"), workload("job-j-b", "True")];
        assert_eq!(differences(&then, &present, &mut names), [""; 0]);
        assert_eq!(names.name("Workload", "job-j-<h5:1>").as_deref(), Some("job-j-b"));
        let present = [workload("job-j-a", "False"), workload("job-j-b", "False")];
        let found = differences(&then, &present, &mut names);
        assert_eq!(
            found,
            ["Workload/job-j-<h5:1>: .conditions.Admitted.status: \"False\" instead of \"True\""]
        );
        let pod = json!({ "kind": "Pod", "metadata": { "name": "p" } });
        let found = differences(&then, &[pod], &mut TraceNames::of("ns"));
        assert!(found.contains(&"Pod/p is not gone".to_owned()), "{found:?}");
    }

    #[test]
    fn one_of_several_equal_objects_goes() {
        let pod = |name: &str| json!({ "kind": "Pod", "metadata": { "name": name } });
        let mut names = TraceNames::of("ns");
        names.bind("Pod", "d-<r5:1>", "d-x");
        names.bind("Pod", "d-<r5:2>", "d-y");
        let then =
            TraceChanges { gone: vec!["Pod/d-<r5:2>".to_owned()], ..TraceChanges::default() };
        let both = [pod("d-x"), pod("d-y")];
        assert_eq!(differences(&then, &both, &mut names), ["Pod/d-<r5:2> is not gone"]);
        assert_eq!(differences(&then, &[pod("d-y")], &mut names), [""; 0]);
        assert_eq!(names.name("Pod", "d-<r5:1>").as_deref(), Some("d-y"));
    }
}
