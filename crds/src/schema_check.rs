//! Checks the JSON types of an object: objects, lists, numbers and quantities where the schema has them.
//!
//! Serde alone accepts a list for a struct. This check walks the schema of the kind and reports the first field with another
//! type. `field_types.json` has the schemas, reduced to types: `crdgen` writes it, so that programs hold no generator.

mod field_type;

use std::{collections::BTreeMap, fmt, sync::LazyLock};

use serde::Deserialize;
use serde_json::Value;

use self::field_type::FieldType;
use crate::quantity::Quantity;

/// Reduced schemas: kinds by `apiVersion`, schemas by kind.
const FIELD_TYPES: &str = include_str!("field_types.json");

type Schemas = BTreeMap<Box<str>, BTreeMap<Box<str>, FieldType>>;

static SCHEMAS: LazyLock<Schemas> =
    LazyLock::new(|| serde_json::from_str(FIELD_TYPES).unwrap_or_default());

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

/// A field that is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct InvalidQuantity {
    /// The path of the field.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Checks the types of an object. Objects of other kinds pass.
///
/// # Errors
/// The first field of a wrong type.
pub fn check(object: &Value) -> Result<(), Mismatch> {
    walk_object(object, &|path, value, r#type| {
        if r#type.accepts(value) {
            return Ok(());
        }
        let expected = r#type.to_string();
        Err(Mismatch { field: path.to_string(), expected, found: found(value) })
    })
}

/// Checks the quantities of an object. Objects of other kinds pass. A decoder would refuse them too, but name no field.
///
/// # Errors
/// The first field that is no quantity.
pub fn check_quantities(object: &Value) -> Result<(), InvalidQuantity> {
    walk_object(object, &|path, value, r#type| {
        if !r#type.is_quantity() {
            return Ok(());
        }
        let quantity = Quantity::deserialize(value).map(drop);
        quantity.map_err(|error| InvalidQuantity {
            field: path.to_string(),
            problem: error.to_string(),
        })
    })
}

/// Where a field is. It becomes text only for an error: most objects have none.
#[derive(Clone, Copy)]
enum Path<'a> {
    Object,
    Field(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object => Ok(()),
            Self::Field(Self::Object, name) => f.write_str(name),
            Self::Field(path, name) => write!(f, "{path}.{name}"),
            Self::Item(path, at) => write!(f, "{path}[{at}]"),
        }
    }
}

/// A check of one field.
type FieldCheck<'a, E> = &'a dyn Fn(Path<'_>, &Value, &FieldType) -> Result<(), E>;

fn walk_object<E>(object: &Value, check: FieldCheck<'_, E>) -> Result<(), E> {
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    match SCHEMAS.get(text("apiVersion")).and_then(|kinds| kinds.get(text("kind"))) {
        Some(r#type) => walk(Path::Object, object, r#type, check),
        None => Ok(()),
    }
}

fn walk<E>(
    path: Path<'_>,
    value: &Value,
    r#type: &FieldType,
    check: FieldCheck<'_, E>,
) -> Result<(), E> {
    // Null is an unset field, of whatever type.
    if value.is_null() {
        return Ok(());
    }
    check(path, value, r#type)?;
    match value {
        // A field without a schema is dropped later, whatever its type.
        Value::Object(object) => object.iter().try_for_each(|(name, value)| {
            let below = |below| walk(Path::Field(&path, name), value, below, check);
            r#type.field(name).map_or(Ok(()), below)
        }),
        Value::Array(items) => items.iter().enumerate().try_for_each(|(at, value)| {
            let below = |below| walk(Path::Item(&path, at), value, below, check);
            r#type.item().map_or(Ok(()), below)
        }),
        _ => Ok(()),
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
    fn the_first_field_that_is_no_quantity_is_reported() {
        let requests =
            |cpu: &str| json!({"containers": [{"resources": {"requests": {"cpu": cpu}}}]});
        let check = |cpu: &str| {
            let pod_set = json!({"template": {"spec": requests(cpu)}});
            check_quantities(&json!({
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "Workload",
                "spec": {"podSets": [pod_set]},
            }))
        };
        assert_eq!(check("1500m"), Ok(()));
        let error = check("many").expect_err("no quantity");
        assert_eq!(
            error.field,
            "spec.podSets[0].template.spec.containers[0].resources.requests.cpu"
        );
        assert!(error.problem.starts_with("quantities must match"), "{error}");
    }

    #[test]
    fn unset_and_unknown_fields_pass() {
        assert_eq!(refusal(&json!({"podSets": null, "bogus": [1], "priority": 1})), None);
        assert_eq!(check(&json!({"apiVersion": "v1", "kind": "Pod", "spec": 1})), Ok(()));
    }
}
