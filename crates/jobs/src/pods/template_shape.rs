//! Changes of the part of a pod template that decides about placement. A set with a Workload keeps it.

use crds::{
    pod::PodSpec,
    validation::{Errors, immutable},
};
use serde_json::Value;

use super::role_hash::shape;

/// Errors about every changed field below `at`. Of containers the changed part is named, unless their number changes.
pub(crate) fn changes(at: &str, now: &PodSpec, before: &PodSpec) -> Errors {
    let (now, before) = (shape(now), shape(before));
    let mut errors = Errors::new();
    for (field, value) in now {
        let old = before.get(&field);
        match (&value, old) {
            (_, Some(old)) if value == *old => {}
            (Value::Array(now), Some(Value::Array(before)))
                if field.ends_with("ontainers") && now.len() == before.len() =>
            {
                for (index, (now, before)) in now.iter().zip(before).enumerate() {
                    errors.extend(of_container(&format!("{at}.{field}[{index}]"), now, before));
                }
            }
            _ => errors.push(immutable(format!("{at}.{field}"), value)),
        }
    }
    errors
}

fn of_container(at: &str, now: &Value, before: &Value) -> Errors {
    let parts = [("ports", "/ports"), ("resources.requests", "/resources/requests")];
    let changed = parts.into_iter().filter(|(_, part)| now.pointer(part) != before.pointer(part));
    let value = |part: &str| now.pointer(part).cloned().unwrap_or_default();
    changed.map(|(name, part)| immutable(format!("{at}.{name}"), value(part))).collect()
}
