//! Decodes objects of reviews.

use crds::schema_check;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Decodes an object. The error names the field. An explicit null is an unset field.
pub(super) fn object<T: DeserializeOwned>(object: &Value) -> Result<T, String> {
    schema_check::check(object).map_err(|mismatch| mismatch.to_string())?;
    let without_nulls = without_nulls(object);
    serde_path_to_error::deserialize(&without_nulls)
        .map_err(|error| format!("{}: {}", error.path(), error.inner()))
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
