//! The text of a JSON value, from any deserializer.
//!
//! `RawValue` alone reads from text and from `Value`. serde buffers an event if its `object` precedes its `type`; the object
//! is encoded again.

use std::{fmt, iter};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapDeserializer},
    forward_to_deserialize_any,
};
use serde_json::{Value, value::RawValue};

/// Reads one value.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Box<RawValue>, D::Error> {
    Box::<RawValue>::deserialize(TextDeserializer(deserializer))
}

/// A deserializer of texts: `RawValue` asks for a struct of a name that only the deserializers of `serde_json` know.
struct TextDeserializer<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for TextDeserializer<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, TextVisitor { name, visitor })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The visitor of `RawValue`, also for deserializers that do not know it.
struct TextVisitor<V> {
    name: &'static str,
    visitor: V,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for TextVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, text: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(text)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        let text = Value::deserialize(value)?.to_string();
        self.visitor.visit_map(MapDeserializer::new(iter::once((self.name, text))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// serde buffers the content of an enum that precedes its tag.
    #[derive(Debug, Deserialize)]
    #[serde(tag = "type", content = "object")]
    enum Tagged {
        Text(#[serde(deserialize_with = "deserialize")] Box<RawValue>),
    }

    #[test]
    fn a_value_before_or_after_its_tag_has_a_text() {
        let text = |of: &str| {
            let Tagged::Text(text) = serde_json::from_str(of).expect("it decodes");
            text.get().to_owned()
        };
        assert_eq!(
            text(r#"{"type": "Text", "object": {"b": 1.50, "a": [] }}"#),
            r#"{"b": 1.50, "a": [] }"#
        );
        assert_eq!(
            text(r#"{"object": {"b": 1.50, "a": [] }, "type": "Text"}"#),
            r#"{"a":[],"b":1.5}"#
        );
        assert_eq!(text(r#"{"object": 1, "type": "Text"}"#), "1");
    }
}
