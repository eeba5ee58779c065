//! The JSON type of a field, and of the fields below it.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;
use serde_json::Value;

/// The type of a field, read from a reduced schema. A schema without a type accepts every value.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FieldType {
    #[serde(default)]
    r#type: JsonType,
    #[serde(default)]
    format: FieldFormat,
    #[serde(default, rename = "x-kubernetes-int-or-string")]
    int_or_string: bool,
    #[serde(default)]
    properties: BTreeMap<Box<str>, Self>,
    #[serde(default)]
    additional_properties: Option<Box<Self>>,
    #[serde(default)]
    items: Option<Box<Self>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum JsonType {
    #[default]
    Any,
    Object,
    Array,
    String,
    Boolean,
    Integer,
}

/// The formats that differ in what they accept, or in their name.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FieldFormat {
    Int32,
    DateTime,
    Quantity,
    #[default]
    #[serde(other)]
    Other,
}

impl FieldType {
    /// The type of a field of an object.
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.additional_properties.as_deref())
    }

    /// The type of the items of a list.
    pub(super) fn item(&self) -> Option<&Self> {
        self.items.as_deref()
    }

    pub(super) fn is_quantity(&self) -> bool {
        matches!(self.format, FieldFormat::Quantity)
    }

    /// Whether the value has this type. The values below it are not looked at.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        if self.int_or_string {
            // Whether the text is a quantity is checked apart: a port has the same schema.
            return value.is_string() || value.is_number();
        }
        match (self.r#type, self.format) {
            (JsonType::Any, _) => true,
            (JsonType::Object, _) => value.is_object(),
            (JsonType::Array, _) => value.is_array(),
            (JsonType::String, _) => value.is_string(),
            (JsonType::Boolean, _) => value.is_boolean(),
            (JsonType::Integer, FieldFormat::Int32) => {
                value.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
            }
            (JsonType::Integer, _) => value.is_i64(),
        }
    }
}

/// As errors name it.
impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.int_or_string {
            return f.write_str("a number or text");
        }
        f.write_str(match (self.r#type, self.format) {
            (JsonType::Object, _) => "an object",
            (JsonType::Array, _) => "a list",
            (JsonType::Integer, FieldFormat::Int32) => "a 32-bit integer",
            (JsonType::Integer, _) => "an integer",
            (JsonType::Boolean, _) => "true or false",
            (JsonType::String, FieldFormat::DateTime) => "a point in time",
            (JsonType::String | JsonType::Any, _) => "text",
        })
    }
}
