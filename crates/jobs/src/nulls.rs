//! An explicit null is an unset field: the API keeps it where a CRD has no schema and in requests to webhooks, and the types of
//! this project refuse it.

use serde_json::Value;

/// Removes the fields that are null.
pub fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|_, value| {
            remove_nulls(value);
            !value.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// The object without fields that are null.
#[must_use]
pub fn without_nulls(value: &Value) -> Value {
    let mut value = value.clone();
    remove_nulls(&mut value);
    value
}
