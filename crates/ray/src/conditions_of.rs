//! Conditions in the status of an object.

use serde_json::Value;

use crate::json::items;

/// Whether a condition of an object is true.
pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    find(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// A condition of an object.
pub(crate) fn find<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    items(&object["status"]["conditions"]).iter().find(|condition| condition["type"] == kind)
}
