//! Objects as trees of JSON, without `managedFields`.
//!
//! These fields are passed over while the text is read, so that no memory is allocated for them.

use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Error, Map, Value};

/// Reads an object for a field of type [`Value`].
///
/// # Errors
/// If the text is no JSON.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Without { path: &["metadata", "managedFields"] }.deserialize(deserializer)
}

/// Reads the text of an object.
///
/// # Errors
/// If the text is no JSON.
pub fn parse(text: &str) -> Result<Value, Error> {
    let mut text = serde_json::Deserializer::from_str(text);
    let object = deserialize(&mut text)?;
    text.end()?;
    Ok(object)
}

/// Any value, without the field at a path if it is an object.
#[derive(Clone, Copy)]
struct Without {
    path: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for Without {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Without {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = match self.path.split_first() {
                Some((first, [])) if *first == name => {
                    fields.next_value::<IgnoredAny>()?;
                    continue;
                }
                Some((first, path)) if *first == name => fields.next_value_seed(Self { path })?,
                _ => fields.next_value()?,
            };
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Value {
        parse(&value.to_string()).expect("JSON")
    }

    #[test]
    fn an_object_has_everything_but_its_managed_fields() {
        let managed = json!([{"manager": "kubectl", "fieldsV1": {"f:metadata": {}}}]);
        let mut object = json!({
            "metadata": {"name": "a", "managedFields": managed, "labels": {"managedFields": "x"}},
            "spec": {
                "metadata": {"managedFields": managed}, "count": 3, "low": -3, "share": 0.5,
                "on": true, "none": null, "list": [1, "two", [], {}],
            },
            "managedFields": managed,
        });
        let found = read(&object);
        let metadata = object["metadata"].as_object_mut().expect("an object");
        metadata.remove("managedFields");
        assert_eq!(found, object);
        // A decoded value is read in the same way.
        object["metadata"]["managedFields"] = managed;
        assert_eq!(deserialize(object).expect("it decodes"), found);
    }

    #[test]
    fn every_value_decodes() {
        for value in [
            json!(null),
            json!(true),
            json!(-1),
            json!(u64::MAX),
            json!(1.5),
            json!("text"),
            json!([{"metadata": {"managedFields": 1}}]),
            json!({"metadata": 1}),
            json!({"metadata": null}),
            json!({"metadata": ["managedFields"]}),
        ] {
            assert_eq!(read(&value), value);
        }
        assert!(parse("{").is_err());
        assert!(parse("{} {}").is_err());
    }
}
