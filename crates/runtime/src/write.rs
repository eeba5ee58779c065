//! A write as a value: made by whoever decides, sent by a [`Writer`](crate::writer::Writer).
//!
//! Every write says what it is for in one word. The word names it in metrics and logs, and is where a test can stop a
//! process ([`crate::failpoint`]). A write repeats well: it carries a precondition, or says how things shall be.

use http::{HeaderValue, Request, header::CONTENT_TYPE};
use kube::{
    Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy},
    core::{Request as Requests, request},
};
use serde::Serialize;
use serde_json::Value;

use crate::watch::Key;

/// Why a write cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the request to {purpose} {object}: {source}")]
pub struct WriteError {
    purpose: &'static str,
    object: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// A request that changes something.
#[derive(Debug)]
pub struct Write {
    /// What it is for, in one word of lower case and dashes.
    pub purpose: &'static str,
    /// Kind, namespace and name, for logs.
    pub object: String,
    pub(crate) request: Request<Vec<u8>>,
}

/// What must hold of an object for a deletion to be meant for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// Its uid.
    pub uid: Option<String>,
    /// Its resourceVersion.
    pub resource_version: Option<String>,
}

/// When an object is gone: before what it owns, or after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// What it owns is collected later.
    First,
    /// It stays until all that it owns is gone.
    Last,
}

/// Whose writes these are, for the record of who set which field.
pub const FIELD_MANAGER: &str = "sluice";

/// Makes writes of one kind for one purpose.
fn requests<K: Resource<DynamicType = ()>>(namespace: Option<&str>) -> Requests {
    Requests::new(K::url_path(&(), namespace))
}

/// An object in words.
fn words<K: Resource<DynamicType = ()>>(key: &Key) -> String {
    format!("{} {key}", K::kind(&()))
}

impl Write {
    /// What is sent.
    #[must_use]
    pub fn request(&self) -> &Request<Vec<u8>> {
        &self.request
    }

    /// Creates an object.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn create<K>(purpose: &'static str, object: &K) -> Result<Self, WriteError>
    where
        K: Resource<DynamicType = ()> + Serialize,
    {
        let key = Key::of(object);
        let params =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let request = typed(object).map_err(Into::into).and_then(|body| {
            requests::<K>(key.namespace.as_deref()).create(&params, body).map_err(request_error)
        });
        Self::made::<K>(purpose, &key, request)
    }

    /// Applies fields as `manager`, who takes them from whoever has them. `part` is a subresource.
    ///
    /// # Errors
    /// If they cannot be encoded.
    pub fn apply<K>(
        purpose: &'static str,
        key: &Key,
        part: Option<&str>,
        manager: &str,
        fields: &Value,
    ) -> Result<Self, WriteError>
    where
        K: Resource<DynamicType = ()>,
    {
        Self::patch::<K>(
            purpose,
            key,
            part,
            &PatchParams::apply(manager).force(),
            &Patch::Apply(fields),
        )
    }

    /// Merges fields into an object; null takes a field away. `part` is a subresource.
    ///
    /// # Errors
    /// If they cannot be encoded.
    pub fn merge<K>(
        purpose: &'static str,
        key: &Key,
        part: Option<&str>,
        fields: &Value,
    ) -> Result<Self, WriteError>
    where
        K: Resource<DynamicType = ()>,
    {
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        Self::patch::<K>(purpose, key, part, &params, &Patch::Merge(fields))
    }

    fn patch<K>(
        purpose: &'static str,
        key: &Key,
        part: Option<&str>,
        params: &PatchParams,
        patch: &Patch<&Value>,
    ) -> Result<Self, WriteError>
    where
        K: Resource<DynamicType = ()>,
    {
        let requests = requests::<K>(key.namespace.as_deref());
        let request = match part {
            Some(part) => requests.patch_subresource(part, &key.name, params, patch),
            None => requests.patch(&key.name, params, patch),
        };
        Self::made::<K>(purpose, key, request.map_err(request_error))
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// If the request cannot be made.
    pub fn delete<K>(
        purpose: &'static str,
        key: &Key,
        only: Only,
        gone: Gone,
    ) -> Result<Self, WriteError>
    where
        K: Resource<DynamicType = ()>,
    {
        let policy = match gone {
            Gone::First => PropagationPolicy::Background,
            Gone::Last => PropagationPolicy::Foreground,
        };
        let params = DeleteParams {
            propagation_policy: Some(policy),
            preconditions: Some(Preconditions {
                uid: only.uid,
                resource_version: only.resource_version,
            }),
            ..DeleteParams::default()
        };
        let request = requests::<K>(key.namespace.as_deref()).delete(&key.name, &params);
        Self::made::<K>(purpose, key, request.map_err(request_error)).map(as_json)
    }

    fn made<K: Resource<DynamicType = ()>>(
        purpose: &'static str,
        key: &Key,
        request: Result<Request<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<Self, WriteError> {
        let object = words::<K>(key);
        match request {
            Ok(request) => Ok(Self { purpose, object, request }),
            Err(source) => Err(WriteError { purpose, object, source }),
        }
    }
}

fn request_error(error: request::Error) -> Box<dyn std::error::Error + Send + Sync> {
    Box::new(error)
}

fn as_json(mut write: Write) -> Write {
    write.request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    write
}

/// An object with its `apiVersion` and `kind`, which not all types carry.
fn typed<K>(object: &K) -> serde_json::Result<Vec<u8>>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    let mut value = serde_json::to_value(object)?;
    if let Value::Object(fields) = &mut value {
        fields.insert("apiVersion".to_owned(), K::api_version(&()).into());
        fields.insert("kind".to_owned(), K::kind(&()).into());
    }
    serde_json::to_vec(&value)
}

/// What is to be merged into `before` to make it `after`; nothing when they are equal.
#[must_use]
pub fn difference(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let mut patch = serde_json::Map::new();
    for (key, value) in new {
        if let Some(change) = difference(old.get(key).unwrap_or(&Value::Null), value) {
            patch.insert(key.clone(), change);
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_names_what_changed_and_what_went() {
        let before = json!({"a": {"b": 1, "c": 2, "d": {"e": 1}}, "l": [1, 2], "same": 1});
        let after = json!({"a": {"b": 1, "c": 3}, "l": [1], "same": 1, "new": {"x": 1}});
        let patch = difference(&before, &after);
        let expected = json!({"a": {"c": 3, "d": null}, "l": [1], "new": {"x": 1}});
        assert_eq!(patch, Some(expected.clone()));
        let mut merged = before;
        json_patch::merge(&mut merged, &expected);
        assert_eq!(merged, after);
        assert_eq!(difference(&after, &after), None);
    }

    #[test]
    fn a_deletion_is_meant_for_one_object_only() {
        let key = Key { namespace: Some("ns".into()), name: "m".into() };
        let only = Only { uid: Some("u".to_owned()), resource_version: None };
        let write = Write::delete::<ConfigMap>("drop", &key, only, Gone::Last).expect("a request");
        assert_eq!(write.object, "ConfigMap ns/m");
        assert_eq!(write.request.uri().path(), "/api/v1/namespaces/ns/configmaps/m");
        let body: Value = serde_json::from_slice(write.request.body()).expect("JSON");
        assert_eq!(body["preconditions"], json!({"uid": "u"}));
        assert_eq!(body["propagationPolicy"], "Foreground");
    }
}
