//! Types of fields that no schema checks before they are read: that of a status that an operator writes, and that of a configured kind.

use std::fmt;

use serde_json::Value;

use crate::pointer::Pointer;

/// The type that a field should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedType {
    /// An integer.
    Number,
    /// A string.
    Text,
    /// A list of objects.
    List,
    /// An object, or a list.
    Fields,
}

/// A field with another type than the expected one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is no {expected}", .at.field_path())]
pub struct WrongType {
    at: Pointer,
    expected: ExpectedType,
}

impl fmt::Display for ExpectedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "integer",
            Self::Text => "string",
            Self::List => "list of objects",
            Self::Fields => "object",
        })
    }
}

impl ExpectedType {
    fn is_of(self, value: &Value) -> bool {
        match self {
            // Null counts as absent, as for the API server.
            _ if value.is_null() => true,
            Self::Number => value.is_i64() || value.is_u64(),
            Self::Text => value.is_string(),
            Self::List => value.as_array().is_some_and(|all| all.iter().all(Value::is_object)),
            Self::Fields => value.is_object() || value.is_array(),
        }
    }

    /// The field, or one around it, if it is there with another type.
    pub(crate) fn contradicted(self, at: &Pointer, object: &Value) -> Option<WrongType> {
        let wrong = |at: &Pointer, expected| WrongType { at: at.clone(), expected };
        let parents = at.parents();
        let mut around = parents.iter().zip(at.steps().skip(1));
        if let Some((parent, _)) = around.find(|(at, step)| !may_have(at, step, object)) {
            return Some(wrong(parent, Self::Fields));
        }
        let is_wrong = at.all(object).into_iter().any(|value| !self.is_of(value));
        is_wrong.then(|| wrong(at, self))
    }
}

/// Whether a field may stand in what is at a place. A list has elements and no fields.
fn may_have(at: &Pointer, step: &str, object: &Value) -> bool {
    let of_list = Pointer::is_element(step);
    let mut values = at.all(object).into_iter();
    values.all(|value| match value {
        Value::Null | Value::Object(_) => true,
        Value::Array(_) => of_list,
        _ => false,
    })
}

impl WrongType {
    /// The same field of the object in which the one that was read stands at a place.
    pub(crate) fn below(self, place: &Pointer) -> Self {
        Self { at: place.join(&self.at), ..self }
    }
}
