//! Access to parts of objects that are no types of this workspace, and comparison of objects.

use std::collections::BTreeMap;

pub(crate) use crds::json::{
    annotation, base64, field, is_terminating, items, label, list, merge_patch, name, object, text,
};
use serde_json::Value;

use crate::names;

/// Whether another controller runs a RayCluster, a RayJob or a RayService; under MultiKueue that is one of a worker cluster. As for the
/// official operator, an empty name is that of another one.
#[must_use]
pub(crate) fn is_run_elsewhere(object: &Value) -> bool {
    let managed_by = &object["spec"]["managedBy"];
    !managed_by.is_null() && *managed_by != names::BUILT_IN_CONTROLLER
}

/// Whether an object names another one as an owner, be it its controller or not.
pub(crate) fn is_owned(object: &Value, owner: &Value) -> bool {
    let uid = &owner["metadata"]["uid"];
    items(&object["metadata"]["ownerReferences"]).iter().any(|it| it["uid"] == *uid)
}

/// A map of texts; what is no text is left out.
pub(crate) fn texts(value: &Value) -> BTreeMap<String, String> {
    let entries = value.as_object().into_iter().flatten();
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    entries.filter_map(text).collect()
}

/// The item of a list with this name.
pub(crate) fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    items(list).iter().find(|item| item["name"] == name)
}

/// The items of a list that exists.
pub(crate) fn list_if_any<'a>(value: &'a mut Value, name: &str) -> &'a mut [Value] {
    match value.get_mut(name) {
        Some(Value::Array(items)) => items,
        _ => &mut [],
    }
}

/// Whether a value has all that is wanted. What it has beyond that, such as defaults of the API server, does not count.
pub(crate) fn covers(present: &Value, wanted: &Value) -> bool {
    match (present, wanted) {
        (Value::Object(present), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| covers(present.get(key).unwrap_or(&Value::Null), wanted)),
        (Value::Array(present), Value::Array(wanted)) => {
            present.len() == wanted.len()
                && present.iter().zip(wanted).all(|(present, wanted)| covers(present, wanted))
        }
        _ => present == wanted,
    }
}
