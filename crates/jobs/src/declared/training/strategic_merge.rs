//! A strategic merge patch of a pod template in a Job template, as the API of Kubernetes defines it: maps merge, lists with a key
//! merge by it, other lists are replaced, and null removes a field.

use std::cmp::Ordering;

use serde_json::{Map, Value};

/// Lists that merge, with the field that identifies an element.
const KEYS: &[(&str, &str)] = &[
    ("containers", "name"),
    ("env", "name"),
    ("ephemeralContainers", "name"),
    ("hostAliases", "ip"),
    ("imagePullSecrets", "name"),
    ("initContainers", "name"),
    ("ports", "containerPort"),
    ("resourceClaims", "name"),
    ("schedulingGates", "name"),
    ("topologySpreadConstraints", "topologyKey"),
    ("volumeDevices", "devicePath"),
    ("volumeMounts", "mountPath"),
    ("volumes", "name"),
];

/// Merges a patch into a value.
pub(super) fn merge(original: &mut Value, patch: &Value) {
    let (Value::Object(fields), Value::Object(changes)) = (&mut *original, patch) else {
        *original = patch.clone();
        return;
    };
    for (field, change) in changes {
        merge_field(fields, field, change);
    }
}

fn merge_field(fields: &mut Map<String, Value>, field: &str, change: &Value) {
    if change.is_null() {
        fields.remove(field);
        return;
    }
    let key = KEYS.iter().find(|(list, _)| *list == field).map(|(_, key)| *key);
    match (key, change) {
        (Some(key), Value::Array(patch)) => {
            let original = fields.get(field).and_then(Value::as_array);
            let merged = merge_list(original.map(Vec::as_slice).unwrap_or_default(), patch, key);
            fields.insert(field.to_owned(), Value::Array(merged));
        }
        _ => merge(fields.entry(field).or_insert(Value::Null), change),
    }
}

/// The elements of both lists. Those of the patch keep its order and come before others, unless the original list has both and
/// says otherwise.
fn merge_list(original: &[Value], patch: &[Value], key: &str) -> Vec<Value> {
    let at = |list: &[Value], one: &Value| list.iter().position(|other| other[key] == one[key]);
    let mut patched: Vec<Value> = Vec::new();
    for change in patch {
        let mut element = at(original, change).map_or(Value::Null, |at| original[at].clone());
        merge(&mut element, change);
        patched.push(element);
    }
    let mut others = original.iter().filter(|one| at(patch, one).is_none()).peekable();
    let mut merged = Vec::with_capacity(original.len() + patched.len());
    for element in patched {
        while let Some(other) = others.peek() {
            let order = at(original, other).zip(at(original, &element));
            if order.map(|(other, element)| other.cmp(&element)) != Some(Ordering::Less) {
                break;
            }
            merged.extend(others.next().cloned());
        }
        merged.push(element);
    }
    merged.extend(others.cloned());
    merged
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_and_keyed_lists_merge_and_other_lists_are_replaced() {
        let mut template = json!({ "metadata": { "labels": { "a": "1", "b": "1" } }, "spec": {
            "tolerations": [{ "key": "old" }], "nodeSelector": { "zone": "x" },
            "containers": [
                { "name": "side", "image": "s" },
                { "name": "node", "image": "n", "env": [{ "name": "A", "value": "1" }] },
            ],
        } });
        merge(
            &mut template,
            &json!({ "metadata": { "labels": { "b": null, "c": "2" } }, "spec": {
                "tolerations": [{ "key": "new" }], "nodeSelector": { "rack": "y" },
                "containers": [
                    { "name": "node", "env": [{ "name": "B", "value": "2" }, { "name": "A", "value": "3" }] },
                    { "name": "new" },
                ],
            } }),
        );
        let expected = json!({ "metadata": { "labels": { "a": "1", "c": "2" } }, "spec": {
            "tolerations": [{ "key": "new" }], "nodeSelector": { "zone": "x", "rack": "y" },
            "containers": [
                { "name": "side", "image": "s" },
                { "name": "node", "image": "n", "env": [{ "name": "B", "value": "2" }, { "name": "A", "value": "3" }] },
                { "name": "new" },
            ],
        } });
        assert_eq!(template, expected);
    }

    #[test]
    fn new_elements_come_before_those_that_are_not_patched() {
        let mut spec = json!({ "volumes": [{ "name": "a" }, { "name": "b" }, { "name": "c" }] });
        merge(&mut spec, &json!({ "volumes": [{ "name": "new" }, { "name": "b", "x": 1 }] }));
        let names: Vec<&str> = spec["volumes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|v| v["name"].as_str())
            .collect();
        assert_eq!(names, ["new", "a", "b", "c"]);
    }
}
