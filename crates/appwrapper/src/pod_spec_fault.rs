//! Fields that no pod has.
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
}
