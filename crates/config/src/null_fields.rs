//! Decoding in which a null field is an absent one, as for Go's decoder.
//!
//! A null in a list or map of the file stays what it is. The file is read as a tree first, which shows the nulls; the decoder keeps
//! its positions, so that errors have them.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, Error, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor,
        value::StringDeserializer,
    },
};
use serde_json::Value;

/// Decodes `text` without the fields that are null in `tree`, which is the same text.
pub(super) fn decode<'de, T: Deserialize<'de>>(
    text: &'de str,
    tree: &Value,
) -> Result<T, serde_saphyr::Error> {
    serde_saphyr::with_deserializer_from_str(text, |inner| {
        T::deserialize(WithoutNulls { inner, tree, known: &[] })
    })
}

/// A part of the decoder, at a node of the file.
struct WithoutNulls<'t, T> {
    inner: T,
    tree: &'t Value,
    /// The fields of a struct. Any other name is an error, null or not.
    known: &'static [&'static str],
}

macro_rules! forward {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method(visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for WithoutNulls<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_unit deserialize_map deserialize_identifier
        deserialize_ignored_any
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_option(WithoutNulls { inner: visitor, tree: self.tree, known: &[] })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_seq(WithoutNulls { inner: visitor, tree: self.tree, known: &[] })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = WithoutNulls { inner: visitor, tree: self.tree, known: fields };
        self.inner.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple(length, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple_struct(name, length, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_enum(name, variants, visitor)
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for WithoutNulls<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, some: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(WithoutNulls { inner: some, tree: self.tree, known: &[] })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(Elements { inner: elements, tree: self.tree, at: 0 })
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<V::Value, A::Error> {
        let WithoutNulls { inner, tree, known } = self;
        inner.visit_map(Fields { inner: fields, tree, known, value: &Value::Null })
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for WithoutNulls<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(WithoutNulls { inner, tree: self.tree, known: &[] })
    }
}

/// The elements of a list.
struct Elements<'t, A> {
    inner: A,
    tree: &'t Value,
    at: usize,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Elements<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let tree = self.tree.get(self.at).unwrap_or(&Value::Null);
        self.at += 1;
        self.inner.next_element_seed(WithoutNulls { inner: seed, tree, known: &[] })
    }
}

/// The fields of a struct.
struct Fields<'t, A> {
    inner: A,
    tree: &'t Value,
    known: &'static [&'static str],
    /// The value of the field that is decoded.
    value: &'t Value,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let mut seed = seed;
        loop {
            let key = FieldName { seed, tree: self.tree, known: self.known };
            match self.inner.next_key_seed(key)? {
                None => return Ok(None),
                Some(Named::Set(key, name)) => {
                    self.value = self.tree.get(name).unwrap_or(&Value::Null);
                    return Ok(Some(key));
                }
                Some(Named::Null(unused)) => {
                    self.inner.next_value::<IgnoredAny>()?;
                    seed = unused;
                }
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(WithoutNulls { inner: seed, tree: self.value, known: &[] })
    }
}

/// The name of a field, before it is decoded.
struct FieldName<'t, S> {
    seed: S,
    tree: &'t Value,
    known: &'static [&'static str],
}

/// The name of a field, decoded unless its value is null.
enum Named<K, S> {
    Set(K, String),
    Null(S),
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for FieldName<'_, S> {
    type Value = Named<S::Value, S>;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<Self::Value, D::Error> {
        let name = String::deserialize(name)?;
        let is_null = self.tree.get(&name).is_some_and(Value::is_null);
        if is_null && self.known.contains(&name.as_str()) {
            return Ok(Named::Null(self.seed));
        }
        let key: StringDeserializer<D::Error> = name.clone().into_deserializer();
        Ok(Named::Set(self.seed.deserialize(key)?, name))
    }
}
