//! A spec in the form in which a program in Go writes it.
//!
//! An operator that decodes a spec and writes it again changes its text: quantities become canonical, and fields without a value vanish or
//! come. Two specs that are equal in this form are equal for such an operator.

use crds::quantity::Quantity;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Fields with a map of quantities.
const QUANTITY_MAPS: &[&str] = &["limits", "requests", "overhead"];

/// Fields with one quantity.
const QUANTITIES: &[&str] = &["sizeLimit", "divisor"];

/// Structs, which Go writes as `{}` even without a value, and maps, which it leaves out if they are empty. An empty object at any other
/// field is a pointer, and means something else than none: an empty selector selects all.
const EMPTY_AS_ABSENT: &[&str] = &[
    "annotations",
    "headServiceAnnotations",
    "labels",
    "limits",
    "loadBalancer",
    "matchLabels",
    "metadata",
    "nodeSelector",
    "overhead",
    "rayStartParams",
    "requests",
    "resources",
    "scaleStrategy",
    "spec",
    "status",
];

/// Flags and numbers without a pointer: `false` and 0 are left out. At any other field they may differ from none.
const ZERO_AS_ABSENT: &[&str] = &[
    "failureThreshold",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPort",
    "initialDelaySeconds",
    "periodSeconds",
    "readOnly",
    "stdin",
    "stdinOnce",
    "successThreshold",
    "timeoutSeconds",
    "tty",
];

/// Texts behind a pointer: an empty one differs from none.
const EMPTY_TEXTS: &[&str] = &["storageClassName"];

/// Maps of texts, of which every entry counts.
const TEXT_MAPS: &[&str] = &[
    "annotations",
    "headServiceAnnotations",
    "labels",
    "matchLabels",
    "nodeSelector",
    "options",
    "rayStartParams",
    "resources",
    "selector",
    "volumeAttributes",
];

/// A value in that form.
pub(super) fn go_form(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name, field_form(name, value)));
            let written = fields.filter(|(name, value)| is_written(name, value));
            Value::Object(written.map(|(name, value)| (name.clone(), value)).collect())
        }
        Value::Array(items) => items.iter().map(go_form).collect(),
        other => other.clone(),
    }
}

fn field_form(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(entries) if QUANTITY_MAPS.contains(&name) => quantities(entries),
        // Their keys are no names of fields.
        Value::Object(_) if is_text_map(name, value) => value.clone(),
        _ if QUANTITIES.contains(&name) => quantity(value),
        _ => go_form(value),
    }
}

/// A field of such a name is an object with fields of its own elsewhere.
fn is_text_map(name: &str, value: &Value) -> bool {
    let mut entries = value.as_object().into_iter().flatten();
    TEXT_MAPS.contains(&name) && entries.all(|(_, entry)| entry.is_string())
}

fn quantities(entries: &Map<String, Value>) -> Value {
    entries.iter().map(|(name, value)| (name.clone(), quantity(value))).collect()
}

/// The value in billionths. What is no quantity stays as it is.
fn quantity(value: &Value) -> Value {
    let quantity = Quantity::deserialize(value);
    quantity.map_or_else(|_| value.clone(), |it| Value::String(it.nanos().to_string()))
}

fn is_written(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty() || !EMPTY_AS_ABSENT.contains(&name),
        Value::String(text) => !text.is_empty() || EMPTY_TEXTS.contains(&name),
        Value::Bool(false) => !ZERO_AS_ABSENT.contains(&name),
        Value::Number(number) => number.as_i64() != Some(0) || !ZERO_AS_ABSENT.contains(&name),
        Value::Bool(true) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn are_equal(specs: [Value; 2]) -> bool {
        let [written, by_go] = specs.map(|spec| go_form(&spec));
        written == by_go
    }

    #[test]
    fn quantities_are_compared_by_their_value() {
        let resources = |cpu: Value, memory: &str| json!({"resources": {"limits": {"cpu": cpu, "memory": memory}}});
        assert!(are_equal([resources(json!(2), "1024Mi"), resources(json!("2"), "1Gi")]));
        assert!(are_equal([resources(json!("0.5"), "1Gi"), resources(json!("500m"), "1Gi")]));
        assert!(!are_equal([resources(json!(2), "1Gi"), resources(json!("2500m"), "1Gi")]));
        let volume = |limit: &str| json!({"emptyDir": {"sizeLimit": limit}});
        assert!(are_equal([volume("2048Mi"), volume("2Gi")]));
        assert!(!are_equal([json!({"image": "1024Mi"}), json!({"image": "1Gi"})]));
    }

    #[test]
    fn fields_without_a_value_vanish() {
        let given = json!({
            "hostNetwork": false, "args": [], "subPath": "", "nodeSelector": {},
            "readinessProbe": {"initialDelaySeconds": 0},
        });
        assert!(are_equal([given, json!({"readinessProbe": {}})]));
        let template = json!({"metadata": {"creationTimestamp": null}, "resources": {}});
        assert!(are_equal([json!({}), template]));
    }

    #[test]
    fn what_differs_from_none_stays() {
        for given in [
            json!({"namespaceSelector": {}}),
            json!({"labelSelector": {"matchLabels": {}}}),
            json!({"gcsFaultToleranceOptions": {}}),
            json!({"emptyDir": {}}),
            json!({"enableServiceLinks": false}),
            json!({"runAsUser": 0}),
            json!({"storageClassName": ""}),
            json!({"nodeSelector": {"pool": ""}}),
            json!({"rayStartParams": {"readOnly": ""}}),
        ] {
            assert!(!are_equal([json!({}), given.clone()]), "{given}");
        }
    }
}
