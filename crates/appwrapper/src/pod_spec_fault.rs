//! Fields that no pod has, and values of fields that no pod can have.
//!
//! Source: docs/reference/appwrapper.md §5.

use std::sync::LazyLock;

use crds::schema::pod_template_part;
use serde_json::Value;

/// The schema that Kubernetes publishes for the spec of a pod.
static POD_SPEC: LazyLock<Value> =
    LazyLock::new(|| pod_template_part("/properties/spec").to_value());

/// What is wrong with the spec of a pod: its unknown fields, in the words of apimachinery. Types of values are left to the API server.
pub(crate) fn pod_spec_fault(spec: &Value) -> Option<String> {
    let mut unknown = Vec::new();
    note_unknown(&POD_SPEC, spec, "", &mut unknown);
    unknown.sort_unstable();
    let unknown: Vec<String> =
        unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    (!unknown.is_empty()).then(|| format!("strict decoding error: {}", unknown.join(", ")))
}

fn note_unknown(schema: &Value, value: &Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            // An object without named fields is a map.
            let Some(known) = schema["properties"].as_object() else { return };
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match known.get(name) {
                    Some(schema) => note_unknown(schema, value, &path, unknown),
                    None => unknown.push(path),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                note_unknown(&schema["items"], item, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

/// Which field of the spec of a pod has a value of a wrong type. The API server of a worker refuses such a pod; the fields of an AppWrapper
/// have no schema.
#[must_use]
pub fn pod_spec_type_fault(spec: &Value) -> Option<String> {
    let (path, expected) = wrong_type(&POD_SPEC, spec, "spec")?;
    Some(format!("{path} has a value of another type than {expected}"))
}

/// The first field with a value of another type than its schema has, and that type. Null counts as absent.
fn wrong_type<'a>(schema: &'a Value, value: &Value, path: &str) -> Option<(String, &'a str)> {
    let expected = schema["type"].as_str()?;
    let is_right = match (expected, value) {
        (_, Value::Null) => return None,
        ("object", Value::Object(fields)) => {
            return fields.iter().find_map(|(name, value)| {
                let known = schema["properties"].get(name);
                let schema = known.unwrap_or(&schema["additionalProperties"]);
                wrong_type(schema, value, &format!("{path}.{name}"))
            });
        }
        ("array", Value::Array(items)) => {
            return items.iter().enumerate().find_map(|(index, item)| {
                wrong_type(&schema["items"], item, &format!("{path}[{index}]"))
            });
        }
        ("integer", value) => value.is_i64(),
        ("number", value) => value.is_number(),
        ("string", value) => value.is_string(),
        ("boolean", value) => value.is_boolean(),
        ("object" | "array", _) => false,
        // A type that no schema of a pod has.
        _ => true,
    };
    (!is_right).then(|| (path.to_owned(), expected))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_of_a_pod_are_named_with_their_places() {
        let limits = json!({"limits": {"example.com/gpu": 1}});
        let container = json!({"name": "a", "resources": limits, "imge": "b"});
        let selector = json!({"matchLabels": {"a": "b"}});
        let spec = json!({
            "containers": [{"name": "a"}, container], "nodeSelector": {"x/y": "z"},
            "topologySpreadConstraints": [{"labelSelector": selector}], "replicas": 2,
        });
        let expected = "strict decoding error: unknown field \"containers[1].imge\", unknown field \"replicas\"";
        assert_eq!(pod_spec_fault(&spec), Some(expected.to_owned()));
        assert_eq!(pod_spec_fault(&json!({"containers": [{"name": "a"}]})), None);
    }

    #[test]
    fn a_value_of_another_type_is_named_with_its_place() {
        let container =
            |field: &str, value: Value| json!({"containers": [{"name": "a", field: value}]});
        for (spec, expected) in [
            (
                json!({"containers": "x"}),
                Some("spec.containers has a value of another type than array"),
            ),
            (
                json!({"containers": ["x"]}),
                Some("spec.containers[0] has a value of another type than object"),
            ),
            (
                container("image", json!(7)),
                Some("spec.containers[0].image has a value of another type than string"),
            ),
            (
                json!({"hostNetwork": "true"}),
                Some("spec.hostNetwork has a value of another type than boolean"),
            ),
            (
                json!({"priority": 1.5}),
                Some("spec.priority has a value of another type than integer"),
            ),
            (
                json!({"nodeSelector": {"a": 1}}),
                Some("spec.nodeSelector.a has a value of another type than string"),
            ),
            // A quantity is a number or a text.
            (container("resources", json!({"limits": {"cpu": 1, "memory": "1Gi"}})), None),
            (json!({"containers": [], "nodeName": null, "unknown": 7}), None),
        ] {
            assert_eq!(pod_spec_type_fault(&spec).as_deref(), expected, "{spec}");
        }
    }
}
