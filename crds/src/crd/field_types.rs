//! Schemas reduced to the types of fields, for [`crate::schema_check`].

use serde_json::{Map, Value};

use super::{Definition, sorted};

/// What a check of types reads.
const KEPT: &[&str] = &[
    "additionalProperties",
    "format",
    "items",
    "properties",
    "type",
    "x-kubernetes-int-or-string",
];

/// The reduced schemas as JSON: kinds by `apiVersion`, schemas by kind, one line per version of the API.
#[must_use]
pub fn field_types(definitions: &[Definition]) -> String {
    let mut versions: Map<String, Value> = Map::new();
    for definition in definitions {
        for version in &definition.versions {
            let api_version = format!("{}/{}", definition.group, version.name);
            let kinds = versions.entry(api_version).or_insert_with(|| Value::Object(Map::new()));
            kinds[definition.kind] = reduced(&version.schema);
        }
    }
    let versions = sorted(Value::Object(versions));
    let versions = versions.as_object().into_iter().flatten();
    let lines: Vec<String> =
        versions.map(|(version, kinds)| format!("\"{version}\": {kinds}")).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

fn reduced(schema: &Value) -> Value {
    let kept = |(key, value): (&String, &Value)| {
        let value = match key.as_str() {
            // Names of fields are no keywords.
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                fields.map(|(name, field)| (name.clone(), reduced(field))).collect()
            }
            key if KEPT.contains(&key) => reduced(value),
            _ => return None,
        };
        Some((key.clone(), value))
    };
    let Value::Object(fields) = schema else {
        return schema.clone();
    };
    let mut reduced: Map<String, Value> = fields.iter().filter_map(kept).collect();
    // A port is a number or text too, without a pattern.
    if schema["x-kubernetes-int-or-string"] == true && schema["pattern"].is_string() {
        reduced.insert("format".to_owned(), "quantity".into());
    }
    Value::Object(reduced)
}
