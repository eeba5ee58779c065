//! An object that is kept whole: its metadata is typed, and all other fields stay as they came.

use crds::decode::from_value;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

/// The metadata of an object and its other fields.
///
/// # Errors
/// If the value is no object, or its metadata does not decode.
pub(crate) fn split(object: Value) -> Result<(ObjectMeta, Value), String> {
    let Value::Object(mut fields) = object else {
        return Err("it is no object".to_owned());
    };
    let metadata = fields.remove("metadata").unwrap_or_else(|| Value::Object(Map::new()));
    let metadata = from_value(&metadata).map_err(|error| format!("metadata: {error}"))?;
    Ok((metadata, Value::Object(fields)))
}

/// The status, as it is written; empty if there is none.
pub(crate) fn status(fields: &Value) -> Value {
    fields.get("status").cloned().unwrap_or_else(|| Value::Object(Map::new()))
}

/// Every field but the status, without the type.
pub(crate) fn without_status(fields: &Value) -> Value {
    let mut fields = fields.clone();
    if let Some(fields) = fields.as_object_mut() {
        fields.retain(|field, _| !matches!(field.as_str(), "apiVersion" | "kind" | "status"));
    }
    fields
}
