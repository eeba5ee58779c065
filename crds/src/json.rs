//! Access to parts of objects that are no types of this workspace. Reads of what is not there give null, writes replace what is no object.

use k8s_openapi::ByteString;
use serde_json::{Map, Value};

/// The text of a value; empty if it is none.
#[must_use]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The items of a list; none if it is no list.
#[must_use]
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A value as an object that can be changed.
///
/// # Panics
/// Never: the value is made an object first.
pub fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("invariant: made an object above")
}

/// A field of an object, as a value that can be changed.
pub fn field<'a>(value: &'a mut Value, name: &str) -> &'a mut Value {
    object(value).entry(name).or_insert(Value::Null)
}

/// A field of an object, as a list that can be changed.
///
/// # Panics
/// Never: the field is made a list first.
pub fn list<'a>(value: &'a mut Value, name: &str) -> &'a mut Vec<Value> {
    let value = field(value, name);
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().expect("invariant: made a list above")
}

/// The name of an object.
#[must_use]
pub fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

/// A label of an object.
#[must_use]
pub fn label<'a>(object: &'a Value, key: &str) -> &'a str {
    text(&object["metadata"]["labels"][key])
}

/// An annotation of an object.
#[must_use]
pub fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    text(&object["metadata"]["annotations"][key])
}

/// Whether an object is being deleted.
#[must_use]
pub fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Bytes as the API encodes them.
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    let value = serde_json::to_value(ByteString(bytes.to_vec()));
    value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The JSON merge patch that turns `before` into `after`; none if they are equal.
#[must_use]
pub fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        // A merge patch replaces a list as a whole.
        return (before != after).then(|| after.clone());
    };
    let mut patch = Map::new();
    for (key, value) in after {
        if let Some(change) = merge_patch(before.get(key).unwrap_or(&Value::Null), value) {
            patch.insert(key.clone(), change);
        }
    }
    // A merge patch removes a field by null.
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_has_changed_fields_and_nulls_for_removed_ones() {
        let before = json!({"a": {"b": 1, "c": 2, "d": {"e": 1}}, "l": [1, 2], "same": 1});
        let after = json!({"a": {"b": 1, "c": 3}, "l": [1], "same": 1, "new": {"x": 1}});
        let patch = json!({"a": {"c": 3, "d": null}, "l": [1], "new": {"x": 1}});
        assert_eq!(merge_patch(&before, &after), Some(patch));
        assert_eq!(merge_patch(&after, &after), None);
        assert_eq!(merge_patch(&json!([1]), &json!([1, 2])), Some(json!([1, 2])));
    }

    #[test]
    fn what_is_not_there_reads_as_nothing() {
        let pod = json!({ "metadata": { "name": 7, "labels": null } });
        assert_eq!((name(&pod), label(&pod, "a"), annotation(&pod, "a")), ("", "", ""));
        assert!(items(&pod["spec"]["containers"]).is_empty());
        assert!(!is_terminating(&pod));
        assert!(is_terminating(&json!({ "metadata": { "deletionTimestamp": "now" } })));
    }

    #[test]
    fn base64_is_padded() {
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn a_write_replaces_what_is_of_another_type() {
        let mut pod = json!({ "metadata": "text", "spec": { "containers": {} } });
        *field(field(&mut pod, "metadata"), "name") = json!("p");
        list(field(&mut pod, "spec"), "containers").push(json!({ "name": "c" }));
        let wanted =
            json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c" }] } });
        assert_eq!(pod, wanted);
    }
}
