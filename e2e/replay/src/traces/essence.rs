//! What of an object is compared: what Kueue decides about it, and nothing that an encoder or another controller adds.

use serde_json::{Map, Value, json};

/// Fields of jobs and pods that Kueue writes.
const WRITTEN: &[&str] = &["schedulingGates", "nodeSelector", "tolerations", "finalizers"];

/// Labels and annotations of Kueue begin with these.
const OWN: &[&str] = &["kueue.x-k8s.io/", "provreq.kueue.x-k8s.io/"];

/// The compared part of an object; null if there is none.
pub(crate) fn of(object: &Value) -> Value {
    match object["kind"].as_str() {
        Some("Workload") => workload(object),
        _ => part(object).unwrap_or_default(),
    }
}

/// Pod sets, queue, priority, activity, and conditions with their reasons.
fn workload(object: &Value) -> Value {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let sets = list(&object["spec"]["podSets"]).into_iter();
    let sets: Vec<Value> =
        sets.map(|set| json!({ "name": set["name"], "count": set["count"] })).collect();
    let conditions = list(&object["status"]["conditions"]).into_iter().map(|one| {
        // A recorded condition that was there in some runs only is a text in the place of the object.
        let name = one["type"].as_str().or(one.as_str()).unwrap_or_default().to_owned();
        (name, json!({ "status": one["status"], "reason": one["reason"] }))
    });
    let spec = &object["spec"];
    json!({
        "podSets": sets, "queueName": spec["queueName"], "priority": spec["priority"],
        "active": spec["active"], "conditions": Map::from_iter(conditions),
    })
}

/// The parts of a value that Kueue writes; nothing where there are none.
fn part(value: &Value) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter_map(|(key, value)| {
                let kept = match key.as_str() {
                    // A status shows templates again, and times.
                    "status" | "ownerReferences" => None,
                    "labels" | "annotations" => own(value),
                    "tolerations" => tolerations(value),
                    // Off says the same as absent: upstream leaves it out for some kinds.
                    "suspend" => value.as_bool().filter(|on| *on).map(Value::Bool),
                    key if WRITTEN.contains(&key) => Some(value.clone()),
                    _ => part(value),
                };
                Some((key.clone(), kept.filter(|kept| !is_empty(kept))?))
            });
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => {
            let kept: Vec<Value> = items.iter().filter_map(part).collect();
            // Positions count only where every element says something.
            let all = kept.iter().all(is_empty);
            Some(Value::Array(if all { vec![] } else { kept }))
        }
        _ => None,
    }
}

fn own(map: &Value) -> Option<Value> {
    let entries = map.as_object()?.iter();
    let own = entries.filter(|(key, _)| OWN.iter().any(|begin| key.starts_with(begin)));
    Some(Value::Object(own.map(|(key, value)| (key.clone(), value.clone())).collect()))
}

/// Without those that the API server adds to every pod.
fn tolerations(list: &Value) -> Option<Value> {
    let added = |one: &&Value| {
        one["key"].as_str().is_some_and(|key| key.starts_with("node.kubernetes.io/"))
    };
    Some(list.as_array()?.iter().filter(|one| !added(one)).cloned().collect())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Array(items) => items.iter().all(is_empty),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_kueue_writes_is_compared() {
        let pod = json!({
            "kind": "Pod",
            "metadata": {
                "labels": { "app": "d", "kueue.x-k8s.io/managed": "true" }, "finalizers": ["f"],
            },
            "spec": {
                "containers": [{ "name": "c" }], "nodeSelector": {}, "suspend": false,
                "tolerations": [{ "key": "node.kubernetes.io/not-ready" }, { "key": "a" }],
            },
            "status": { "phase": "Running" },
        });
        let expected = json!({
            "metadata": { "labels": { "kueue.x-k8s.io/managed": "true" }, "finalizers": ["f"] },
            "spec": { "tolerations": [{ "key": "a" }] },
        });
        assert_eq!(of(&pod), expected);
    }
}
