//! Converts the JSON schema of a type to the structural schema of a CRD.
//!
//! Fields are never nullable and definitions are inlined. `"x-list"` stands for the list markers (`map NAME`, `set` or
//! `atomic`), `"x-default"` for a default of the API. The default that serde uses for a missing field is not one.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// The structural schema of one type.
#[must_use]
pub fn of<T: JsonSchema>() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    structural(&mut schema);
    schema
}

fn structural(schema: &mut Value) {
    let Value::Object(schema) = schema else {
        return;
    };
    // The API server would apply the `default` of serde; the other keywords are of no use to it.
    for mark in ["$schema", "title", "default", "x-written", "x-zero"] {
        schema.remove(mark);
    }
    if let Some(default) = schema.remove("x-default") {
        schema.insert("default".into(), default);
    }
    drop_null(schema);
    expand_list(schema);
    // The values of these keys are schemas, or maps or lists of schemas; everything else is data.
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            ("items" | "additionalProperties", value) => structural(value),
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(structural);
            }
            ("anyOf", Value::Array(options)) => options.iter_mut().for_each(structural),
            _ => {}
        }
    }
}

/// An optional field is one that may be missing, not one that may be null.
fn drop_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        // A structural schema has one type and not a list of types.
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
    let null = json!({"type": "null"});
    let Some(Value::Array(options)) = schema.get_mut("anyOf") else {
        return;
    };
    let before = options.len();
    options.retain(|option| *option != null);
    if options.len() == before {
        return;
    }
    if let [Value::Object(only)] = options.as_slice() {
        let only = only.clone();
        schema.remove("anyOf");
        for (key, value) in only {
            // Keywords of the field count before those of its type.
            schema.entry(key).or_insert(value);
        }
    }
}

fn expand_list(schema: &mut Map<String, Value>) {
    let Some(Value::String(list)) = schema.remove("x-list") else {
        return;
    };
    let mut words = list.split(' ');
    schema.insert("x-kubernetes-list-type".into(), words.next().into());
    let keys: Vec<&str> = words.collect();
    if !keys.is_empty() {
        schema.insert("x-kubernetes-list-map-keys".into(), json!(keys));
    }
}
