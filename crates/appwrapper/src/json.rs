//! Access to parts of objects that have no type here. Reads of what is not there give null, writes replace what is no object.

use serde_json::{Map, Value};

/// The text of a value; empty if it is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The items of a list; none if it is no list.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A value as an object that can be changed.
pub(crate) fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("invariant: made an object above")
}

/// A field of an object, as a value that can be changed.
pub(crate) fn field<'a>(value: &'a mut Value, name: &str) -> &'a mut Value {
    object(value).entry(name).or_insert(Value::Null)
}

/// A field of an object, as a list that can be changed.
pub(crate) fn list<'a>(value: &'a mut Value, name: &str) -> &'a mut Vec<Value> {
    let value = field(value, name);
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().expect("invariant: made a list above")
}

/// The name of an object.
pub(crate) fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

/// A label of an object.
pub(crate) fn label<'a>(object: &'a Value, key: &str) -> &'a str {
    text(&object["metadata"]["labels"][key])
}

/// An annotation of an object.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    text(&object["metadata"]["annotations"][key])
}

/// Whether an object is being deleted.
pub(crate) fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}
