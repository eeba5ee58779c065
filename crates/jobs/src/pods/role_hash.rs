//! The role of a pod in its group: a hash of the part of its spec that decides about its placement
//! (docs/reference/kueue.md §7.9).
//!
//! The hash is part of the wire: managers of both implementations may meet pods that the other one has marked. It is made over
//! the JSON that Go prints: the fields of a struct in the order of their declaration, the keys of a map sorted, `null` for
//! what is absent.

use crds::pod::{Container, PodSpec};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Number of bytes of the hash that are printed.
const LENGTH: usize = 4;

/// Fields of structs in the order in which Go prints them. Structs with the same fields have the same order, except
/// [`SPREAD_FIRST`].
const FIELD_ORDER: &[&str] = &[
    "name",
    "hostPort",
    "containerPort",
    "protocol",
    "hostIP",
    "nodeAffinity",
    "podAffinity",
    "podAntiAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
    "weight",
    "preference",
    "podAffinityTerm",
    "labelSelector",
    "matchLabels",
    "matchExpressions",
    "matchFields",
    "key",
    "operator",
    "value",
    "values",
    "effect",
    "tolerationSeconds",
    "namespaces",
    "topologyKey",
    "namespaceSelector",
    "minDomains",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    "matchLabelKeys",
    "mismatchLabelKeys",
    "resourceClaimName",
    "resourceClaimTemplateName",
];

/// First fields of a topology spread constraint. There the topology key precedes the label selector.
const SPREAD_FIRST: &[&str] = &["maxSkew", "topologyKey", "whenUnsatisfiable"];

/// Fields that are maps: their keys are sorted.
const MAPS: &[&str] = &["matchLabels", "nodeSelector", "overhead", "requests", "resources"];

/// The role of a pod: the first 8 hexadecimal digits of a SHA-256.
#[must_use]
pub fn role_hash(spec: &PodSpec) -> String {
    let mut text = String::new();
    let shape = Map::from_iter([("spec".to_owned(), Value::Object(shape(spec)))]);
    print_fields(&shape, &mut text);
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(LENGTH).map(|byte| format!("{byte:02x}")).collect()
}

/// The fields that decide about placement.
pub(crate) fn shape(spec: &PodSpec) -> Map<String, Value> {
    let mut shape = Map::new();
    for name in ["affinity", "priority", "resourceClaims", "topologySpreadConstraints"] {
        shape.insert(name.to_owned(), spec.rest.get(name).cloned().unwrap_or_default());
    }
    let typed = [
        ("containers", containers(&spec.containers)),
        ("initContainers", containers(&spec.init_containers)),
        ("nodeSelector", json!(spec.node_selector)),
        ("overhead", json!(spec.overhead)),
        ("runtimeClassName", json!(spec.runtime_class_name)),
        ("tolerations", json!(spec.tolerations)),
    ];
    shape.extend(typed.map(|(name, value)| (name.to_owned(), or_null(value))));
    // Requests of a whole pod are in it only if there are any.
    if let Some(resources) = spec.resources.as_ref().filter(|one| !one.requests.is_empty()) {
        shape.insert("resources".to_owned(), json!(resources.requests));
    }
    shape
}

fn containers(all: &[Container]) -> Value {
    let shape = |container: &Container| {
        let requests = container.resources.as_ref().map(|resources| json!(resources.requests));
        let ports = container.rest.get("ports").cloned().unwrap_or_default();
        json!({ "ports": ports, "resources": { "requests": or_null(requests.unwrap_or_default()) } })
    };
    all.iter().map(shape).collect()
}

/// An empty map or list of Go is nil, which is `null`.
fn or_null(value: Value) -> Value {
    let is_empty = match &value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if is_empty { Value::Null } else { value }
}

fn print(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => print_fields(in_declared_order(fields), text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                print(item, text);
            }
            text.push(']');
        }
        Value::String(string) => print_string(string, text),
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// The fields of a struct. Unknown ones are last, in the order of their names.
fn in_declared_order(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let is_spread = fields.contains_key(SPREAD_FIRST[0]);
    let rank = |name: &str| {
        let first = SPREAD_FIRST.iter().position(|one| is_spread && *one == name);
        let other = FIELD_ORDER.iter().position(|one| *one == name);
        (first.unwrap_or(SPREAD_FIRST.len()), other.unwrap_or(FIELD_ORDER.len()))
    };
    let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| rank(name));
    fields
}

fn print_fields<'a>(fields: impl IntoIterator<Item = (&'a String, &'a Value)>, text: &mut String) {
    text.push('{');
    for (index, (name, value)) in fields.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        print_string(name, text);
        text.push(':');
        match value {
            // The keys of a map may be those of a struct: a label may be called `key`.
            Value::Object(entries) if MAPS.contains(&name.as_str()) => print_fields(entries, text),
            value => print(value, text),
        }
    }
    text.push('}');
}

/// A string as Go prints it: characters that HTML reads as markup are escaped.
fn print_string(string: &str, text: &mut String) {
    for character in Value::from(string).to_string().chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => text.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(spec: Value) -> String {
        role_hash(&serde_json::from_value(spec).expect("a pod spec decodes"))
    }

    /// `tests/kindsoracle/role-hash.jsonl.gz` has the recorded ones.
    #[test]
    fn labels_named_like_fields_are_sorted() {
        let affinity = |first: &str, second: &str| {
            let labels = format!(r#"{{ "{first}": "1", "{second}": "2" }}"#);
            let labels: Value = serde_json::from_str(&labels).expect("JSON");
            let term = json!({ "labelSelector": { "matchLabels": labels }, "topologyKey": "h" });
            let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": [term] });
            let mut text = String::new();
            print(&json!({ "podAffinity": required }), &mut text);
            text
        };
        assert!(affinity("name", "effect").contains(r#"{"effect":"2","name":"1"}"#));
        assert!(affinity("a", "b").ends_with(r#"},"topologyKey":"h"}]}}"#));
    }

    #[test]
    fn markup_is_escaped() {
        let mut text = String::new();
        print_string("a<b>&\u{2028}\"", &mut text);
        assert_eq!(text, r#""a\u003cb\u003e\u0026\u2028\"""#);
    }

    #[test]
    fn images_and_limits_are_no_part_of_a_role() {
        let one = json!({ "containers": [{ "name": "a", "image": "x" }] });
        let other = json!({ "containers": [{
            "name": "b", "image": "y", "resources": { "limits": { "cpu": "1" } },
        }] });
        assert_eq!(hash(one), hash(other));
    }
}
