//! Metadata of a pod template, as the webhooks of sets change it.

use serde_json::{Map, Value, json};

/// The metadata of a stored template; an empty object without any.
pub(crate) fn stored(template: Option<&Value>) -> Value {
    let metadata = template.and_then(|template| template.get("metadata"));
    metadata.filter(|metadata| metadata.is_object()).cloned().unwrap_or_else(|| json!({}))
}

/// Adds entries to a map of the metadata.
pub(crate) fn insert<'a>(
    metadata: &mut Value,
    map: &str,
    entries: impl Iterator<Item = (&'a str, &'a str)>,
) {
    let mut entries = entries.peekable();
    let Some(fields) = metadata.as_object_mut().filter(|_| entries.peek().is_some()) else {
        return;
    };
    let stored = fields.entry(map).or_insert(Value::Null);
    if !stored.is_object() {
        *stored = Value::Object(Map::new());
    }
    for (key, value) in entries {
        stored[key] = json!(value);
    }
}
