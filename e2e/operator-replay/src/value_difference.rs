//! The places in which two values differ.

use std::collections::BTreeSet;

use serde_json::Value;

/// The places in which two values differ.
#[cfg(test)]
pub(crate) fn different(ours: &Value, theirs: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", ours, theirs, &mut found);
    found
}

/// Compares two values and names the places that differ. `path` is that of the values.
pub(crate) fn compare(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let null = Value::Null;
                let pair = (a.get(name).unwrap_or(&null), b.get(name).unwrap_or(&null));
                compare(&format!("{path}.{name}"), pair.0, pair.1, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), a, b, found);
            }
        }
        _ if ours == theirs => {}
        _ => found.push(format!("{path}\n      theirs {theirs}\n      ours   {ours}")),
    }
}
