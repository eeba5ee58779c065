//! Changes of the part of a pod template that decides about placement. A set with a Workload keeps it.

use std::collections::BTreeSet;

use crds::{
    pod::PodSpec,
    validation::{Errors, immutable},
};
use serde_json::Value;

use super::role_hash::shape;

/// Errors about every changed field below `at`. Of containers the changed part is named, unless their number changes.
pub(crate) fn changes(at: &str, now: &PodSpec, before: &PodSpec) -> Errors {
    let (now, before) = (shape(now), shape(before));
    // Requests of a whole pod are in a shape only if there are any, so each shape may have fields that the other one lacks.
    let fields: BTreeSet<&String> = now.keys().chain(before.keys()).collect();
    let values = |field| [&now, &before].map(|shape| shape.get(field).unwrap_or(&Value::Null));
    let errors = fields.into_iter().flat_map(|field| of_field(at, field, values(field)));
    errors.collect()
}

fn of_field(at: &str, field: &str, [now, before]: [&Value; 2]) -> Errors {
    let at = format!("{at}.{field}");
    match (now, before) {
        _ if now == before => Errors::new(),
        (Value::Array(now), Value::Array(before))
            if field.ends_with("ontainers") && now.len() == before.len() =>
        {
            let pairs = now.iter().zip(before).enumerate();
            let errors = pairs.flat_map(|(index, (now, before))| {
                of_container(&format!("{at}[{index}]"), now, before)
            });
            errors.collect()
        }
        _ => vec![immutable(at, now)],
    }
}

fn of_container(at: &str, now: &Value, before: &Value) -> Errors {
    let parts = [("ports", "/ports"), ("resources.requests", "/resources/requests")];
    let changed = parts.into_iter().filter(|(_, part)| now.pointer(part) != before.pointer(part));
    let value = |part: &str| now.pointer(part).cloned().unwrap_or_default();
    changed.map(|(name, part)| immutable(format!("{at}.{name}"), value(part))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(now: &Value, before: &Value) -> Vec<String> {
        let spec = |spec: &Value| serde_json::from_value(spec.clone()).expect("a pod spec");
        let errors = changes("spec", &spec(now), &spec(before));
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_field_is_neither_added_nor_removed() {
        let containers = json!([{ "name": "c" }]);
        let bare = json!({ "containers": containers });
        for (field, value) in [
            ("affinity", json!({ "nodeAffinity": {} })),
            ("initContainers", json!([{ "name": "i" }])),
            ("nodeSelector", json!({ "a": "b" })),
            ("overhead", json!({ "cpu": "1" })),
            ("priority", json!(1)),
            ("resourceClaims", json!([{ "name": "r" }])),
            ("resources", json!({ "requests": { "cpu": "1" } })),
            ("runtimeClassName", json!("slow")),
            ("tolerations", json!([{ "key": "a" }])),
            ("topologySpreadConstraints", json!([{ "topologyKey": "zone" }])),
        ] {
            let full = json!({ "containers": containers, field: value });
            assert_eq!(texts(&full, &full), [""; 0], "{field}");
            let [added] = &texts(&full, &bare)[..] else { panic!("one error: {field}") };
            assert!(added.starts_with(&format!("spec.{field}: Invalid value: ")), "{added}");
            let removed = format!("spec.{field}: Invalid value: null: field is immutable");
            assert_eq!(texts(&bare, &full), [removed], "{field}");
        }
    }

    #[test]
    fn parts_of_a_container_are_neither_added_nor_removed() {
        let container = |part: Value| json!({ "containers": [part] });
        let bare = container(json!({ "name": "c" }));
        for (part, full) in [
            ("ports", json!({ "name": "c", "ports": [{ "containerPort": 80 }] })),
            (
                "resources.requests",
                json!({ "name": "c", "resources": { "requests": { "cpu": "1" } } }),
            ),
        ] {
            let full = container(full);
            let error =
                format!("spec.containers[0].{part}: Invalid value: null: field is immutable");
            assert_eq!(texts(&bare, &full), [error]);
            assert_eq!(texts(&full, &bare).len(), 1, "{part}");
        }
    }
}
