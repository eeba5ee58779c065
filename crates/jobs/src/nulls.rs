//! An explicit null is an unset field: the API keeps it where a CRD has no schema and in requests to webhooks, and the types of
//! this project refuse it.

use serde_json::Value;

/// The object without fields that are null.
#[must_use]
pub fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let present = fields.iter().filter(|(_, value)| !value.is_null());
            present.map(|(key, value)| (key.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        value => value.clone(),
    }
}
