//! Checks the JSON types of an object: objects, lists and numbers where the schema has them.
//!
//! Serde alone accepts a list for a struct. This check walks the schema of the kind and reports the first field with another
//! type.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::Value;

use crate::crd;

/// The schemas of all kinds, by `apiVersion` and `kind`.
static SCHEMAS: LazyLock<BTreeMap<(String, String), Value>> =
    LazyLock::new(|| crd::all().into_iter().flat_map(crd::Definition::into_schemas).collect());

/// A field whose type differs from the schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: must be {expected}, not {found}")]
pub struct Mismatch {
    /// The path of the field.
    pub field: String,
    /// What it must be.
    pub expected: String,
    /// What it is.
    pub found: &'static str,
}

/// Checks an object. Objects of other kinds pass.
///
/// # Errors
/// The first field of a wrong type.
pub fn check(object: &Value) -> Result<(), Mismatch> {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    match SCHEMAS.get(&(text("apiVersion"), text("kind"))) {
        Some(schema) => walk("", object, schema),
        None => Ok(()),
    }
}

fn walk(path: &str, value: &Value, schema: &Value) -> Result<(), Mismatch> {
    if value.is_null() {
        return Ok(());
    }
    let expected = expected(schema);
    if !fits(value, schema) {
        let field = path.trim_start_matches('.').to_owned();
        return Err(Mismatch { field, expected: expected.to_owned(), found: found(value) });
    }
    match value {
        Value::Object(object) => object.iter().try_for_each(|(name, value)| {
            let below =
                schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
            below.map_or(Ok(()), |schema| walk(&format!("{path}.{name}"), value, schema))
        }),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(at, value)| walk(&format!("{path}[{at}]"), value, &schema["items"])),
        _ => Ok(()),
    }
}

fn expected(schema: &Value) -> &str {
    if schema["x-kubernetes-int-or-string"] == true {
        return "a number or text";
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("object"), _) => "an object",
        (Some("array"), _) => "a list",
        (Some("integer"), Some("int32")) => "a 32-bit integer",
        (Some("integer"), _) => "an integer",
        (Some("boolean"), _) => "true or false",
        (Some("string"), Some("date-time")) => "a point in time",
        _ => "text",
    }
}

fn fits(value: &Value, schema: &Value) -> bool {
    if schema["x-kubernetes-int-or-string"] == true {
        return value.is_string() || value.is_number();
    }
    match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") if schema["format"] == "int32" => {
            value.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
        }
        Some("integer") => value.is_i64(),
        _ => true,
    }
}

fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(spec: &Value) -> Option<String> {
        let object =
            json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "spec": spec});
        check(&object).err().map(|mismatch| mismatch.to_string())
    }

    #[test]
    fn the_first_field_with_a_wrong_type_is_reported() {
        let refused = |spec: Value, text: &str| assert_eq!(refusal(&spec).as_deref(), Some(text));
        refused(json!([]), "spec: must be an object, not a list");
        refused(json!({"podSets": {}}), "spec.podSets: must be a list, not an object");
        refused(
            json!({"podSets": [{"count": "3"}]}),
            "spec.podSets[0].count: must be a 32-bit integer, not text",
        );
        refused(
            json!({"priority": 2_147_483_648_i64}),
            "spec.priority: must be a 32-bit integer, not a number",
        );
        refused(
            json!({"priority": 1.5}),
            "spec.priority: must be a 32-bit integer, not a fraction",
        );
        refused(
            json!({"podSets": [{"template": {"spec": {"containers": [{"name": 1}]}}}]}),
            "spec.podSets[0].template.spec.containers[0].name: must be text, not a number",
        );
    }

    #[test]
    fn unset_and_unknown_fields_pass() {
        assert_eq!(refusal(&json!({"podSets": null, "bogus": [1], "priority": 1})), None);
        assert_eq!(check(&json!({"apiVersion": "v1", "kind": "Pod", "spec": 1})), Ok(()));
    }
}
