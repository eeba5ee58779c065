//! An object as text, and how a write changes it.

use std::collections::BTreeMap;

use axum::body::Bytes;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// Fields of metadata that a write may demand.
const PRECONDITIONS: [&str; 2] = ["uid", "resourceVersion"];

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DoubleRefusal {
    /// The cluster does not serve the resource.
    #[error("the server could not find the requested resource")]
    NotServed,
    /// There is no such object.
    #[error("not found")]
    NotFound,
    /// An object of this name exists.
    #[error("already exists")]
    AlreadyExists,
    /// A precondition does not hold.
    #[error("the object has been modified")]
    Conflict,
    /// The changes since this version are forgotten.
    #[error("too old resource version")]
    Expired,
    /// The request is no object, or of a form that the double does not know.
    #[error("the request is invalid")]
    Invalid,
}

/// An object of a store.
#[derive(Debug)]
pub(super) struct StoredText {
    pub(super) text: Bytes,
    pub(super) version: u64,
    pub(super) labels: BTreeMap<Box<str>, Box<str>>,
}

/// What an object has once a write is applied.
pub(super) enum WrittenObject {
    /// Nothing changes.
    Same,
    /// Another content.
    Changed(Value),
    /// It is deleted, and nothing holds it.
    Gone(Value),
}

#[derive(Deserialize)]
struct StoredFields<'a> {
    #[serde(borrow, rename = "apiVersion")]
    api_version: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: &'a RawValue,
}

impl StoredText {
    /// Keeps an object as this version.
    pub(super) fn new(mut object: Value, version: u64) -> Self {
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        let text = Bytes::from(object.to_string());
        Self { text, version, labels: labels(&object) }
    }

    /// The object.
    pub(super) fn value(&self) -> Value {
        serde_json::from_slice(&self.text).unwrap_or_default()
    }

    /// Its metadata alone, as `PartialObjectMetadata`.
    pub(super) fn metadata(&self) -> Bytes {
        let Ok(fields) = serde_json::from_slice::<StoredFields<'_>>(&self.text) else {
            return Bytes::new();
        };
        let metadata = fields.metadata.get();
        let version = fields.api_version.map_or("\"v1\"", RawValue::get);
        Bytes::from(format!(
            r#"{{"kind":"PartialObjectMetadata","apiVersion":{version},"metadata":{metadata}}}"#
        ))
    }
}

fn labels(object: &Value) -> BTreeMap<Box<str>, Box<str>> {
    let labels = object["metadata"]["labels"].as_object();
    let text = |value: &Value| value.as_str().unwrap_or_default().into();
    labels.into_iter().flatten().map(|(key, value)| (key.as_str().into(), text(value))).collect()
}

/// The name of an object within its resource, `NAMESPACE/NAME`.
pub(super) fn key(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

/// A new object, as an API server completes its metadata.
pub(super) fn created(mut object: Value, uid: &str) -> Result<Value, DoubleRefusal> {
    if !object["metadata"].is_object() {
        return Err(DoubleRefusal::Invalid);
    }
    let metadata = &mut object["metadata"];
    metadata["uid"] = json!(uid);
    metadata["generation"] = json!(1);
    metadata["creationTimestamp"] = json!(now());
    Ok(object)
}

/// The time as objects have it, in whole seconds.
pub(crate) fn now() -> String {
    let seconds = Timestamp::from_second(Timestamp::now().as_second());
    seconds.map(|time| time.to_string()).unwrap_or_default()
}

/// Whether an object has this value of a field of its metadata; null demands nothing.
fn holds(object: &Value, field: &str, wanted: &Value) -> bool {
    wanted.is_null() || *wanted == object["metadata"][field]
}

/// Merges a patch into an object. A version or a uid in the patch is a precondition.
pub(super) fn merged(before: &Value, mut patch: Value) -> Result<WrittenObject, DoubleRefusal> {
    for field in PRECONDITIONS {
        let metadata = patch.get_mut("metadata").and_then(Value::as_object_mut);
        let wanted = metadata.and_then(|metadata| metadata.remove(field));
        if wanted.is_some_and(|wanted| !holds(before, field, &wanted)) {
            return Err(DoubleRefusal::Conflict);
        }
    }
    let mut after = before.clone();
    json_patch::merge(&mut after, &patch);
    Ok(written(before, after))
}

/// Deletes an object: what has finalizers is marked.
pub(super) fn deleted(
    before: &Value,
    preconditions: &Value,
) -> Result<WrittenObject, DoubleRefusal> {
    if !PRECONDITIONS.iter().all(|field| holds(before, field, &preconditions[*field])) {
        return Err(DoubleRefusal::Conflict);
    }
    let mut after = before.clone();
    if after["metadata"]["deletionTimestamp"].is_null() {
        after["metadata"]["deletionTimestamp"] = json!(now());
    }
    Ok(written(before, after))
}

fn written(before: &Value, mut after: Value) -> WrittenObject {
    let finalizers = after["metadata"]["finalizers"].as_array();
    let held = finalizers.is_some_and(|all| !all.is_empty());
    if !after["metadata"]["deletionTimestamp"].is_null() && !held {
        return WrittenObject::Gone(after);
    }
    if after == *before {
        return WrittenObject::Same;
    }
    if after["spec"] != before["spec"] {
        let generation = before["metadata"]["generation"].as_u64().unwrap_or_default();
        after["metadata"]["generation"] = json!(generation + 1);
    }
    WrittenObject::Changed(after)
}
