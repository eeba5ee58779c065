//! Pod templates, encoded like Go's encoder encodes Kubernetes' types.
//!
//! That encoder omits empty values, except behind pointers, and writes structs held by value even if they are empty:
//! `metadata: {}`, `resources: {}`. The schema of the template tells which fields are which.

use serde_json::{Map, Value};

use crate::{quantity::Quantity, schema::POD_TEMPLATE_SCHEMA};

/// Normalizes a template in place.
pub fn rewrite(template: &mut Value) {
    write_like_an_encoder(template, &POD_TEMPLATE_SCHEMA);
}

fn write_like_an_encoder(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(object) => match (&schema["properties"], &schema["additionalProperties"]) {
            (Value::Object(properties), _) => write_struct(object, properties),
            (_, Value::Null) => {}
            (_, values) => {
                object.values_mut().for_each(|value| write_like_an_encoder(value, values));
            }
        },
        Value::Array(items) => {
            items.iter_mut().for_each(|item| write_like_an_encoder(item, &schema["items"]));
        }
        scalar if schema["pattern"].is_string() => canonical_quantity(scalar),
        _ => {}
    }
}

fn write_struct(object: &mut Map<String, Value>, properties: &Map<String, Value>) {
    // The API server prunes unknown fields as well.
    object.retain(|name, value| properties.contains_key(name) && !value.is_null());
    for (name, schema) in properties {
        let always = schema["x-written"] == "always";
        if always && !object.contains_key(name) {
            let Some(zero) = zero(schema) else { continue };
            object.insert(name.clone(), zero);
        }
        let Some(value) = object.get_mut(name) else {
            continue;
        };
        write_like_an_encoder(value, schema);
        if !always && schema["x-zero"] != "kept" && is_zero(value) {
            object.remove(name);
        }
    }
}

/// The encoded value of an unset field. Lists and maps would be null, which a CRD does not accept.
fn zero(schema: &Value) -> Option<Value> {
    if schema["x-kubernetes-int-or-string"] == true {
        return schema["pattern"].is_string().then(|| "0".into());
    }
    match schema["type"].as_str()? {
        "object" if schema["properties"].is_object() => Some(Value::Object(Map::new())),
        // The unset value of a point in time is null, as those of lists and maps.
        "string" if schema["format"].is_null() => Some("".into()),
        "integer" => Some(0.into()),
        "boolean" => Some(false.into()),
        _ => None,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_i64() == Some(0),
        Value::String(value) => value.is_empty(),
        Value::Array(value) => value.is_empty(),
        Value::Object(value) => value.is_empty(),
    }
}

fn canonical_quantity(value: &mut Value) {
    if let Ok(quantity) = serde_json::from_value::<Quantity>(value.clone()) {
        *value = quantity.to_string().into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rewritten(mut template: Value) -> Value {
        rewrite(&mut template);
        template
    }

    #[test]
    fn structs_are_encoded_and_empty_values_omitted() {
        let template = json!({"spec": {
            "hostNetwork": false,
            "restartPolicy": "",
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {},
            "containers": [{"name": "c", "ports": [{"containerPort": 80, "protocol": "TCP"}]}],
        }});
        let expected = json!({"metadata": {}, "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "resources": {}, "ports": [{"containerPort": 80, "protocol": "TCP"}]}],
        }});
        assert_eq!(rewritten(template), expected);
    }

    #[test]
    fn quantities_become_canonical() {
        let template = json!({"metadata": {}, "spec": {"containers": [
            {"name": "c", "resources": {"requests": {"cpu": "1000m", "memory": 1024}}},
        ]}});
        let expected = json!({"metadata": {}, "spec": {"containers": [
            {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1024"}}},
        ]}});
        assert_eq!(rewritten(template), expected);
    }
}
