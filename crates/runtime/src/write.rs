//! A write request as a value: built by the component that decides, sent by a [`Writer`](crate::writer::Writer).
//!
//! Every write has a *purpose*, one word that labels it in metrics and logs and names its two failpoints
//! ([`crate::failpoint`]). Writes are idempotent: each carries a precondition or states the desired values, so sending it
//! twice does no harm.

use http::{HeaderValue, Request, header::CONTENT_TYPE};
use kube::{
    Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy},
    core::{Request as Requests, request},
};
use serde::Serialize;
use serde_json::Value;

use crate::watch::Key;

/// A write that cannot be encoded as a request.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the request to {purpose} {object}: {source}")]
pub struct WriteError {
    purpose: &'static str,
    object: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// A create, apply, patch or delete request.
#[derive(Debug)]
pub struct Write {
    /// What the write is for: one word of lower-case letters and dashes.
    pub purpose: &'static str,
    /// Kind, namespace and name, for logs.
    pub object: String,
    pub(crate) request: Request<Vec<u8>>,
}

/// Preconditions of a deletion. The API server refuses the request if the object does not match them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeletePreconditions {
    /// The uid of the object.
    pub uid: Option<String>,
    /// The resourceVersion of the object.
    pub resource_version: Option<String>,
}

/// Whether the garbage collector deletes dependents after the object or before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletePropagation {
    /// The object is deleted at once, its dependents later.
    Background,
    /// The object stays until all its dependents are deleted.
    Foreground,
}

/// The field manager of every write that is not a server-side apply.
pub const FIELD_MANAGER: &str = "sluice";

/// Builds requests for kind `K` in a namespace.
fn requests<K: Resource<DynamicType = ()>>(namespace: Option<&str>) -> Requests {
    Requests::new(K::url_path(&(), namespace))
}

/// Kind, namespace and name, for logs.
fn describe<K: Resource<DynamicType = ()>>(key: &Key) -> String {
    format!("{} {key}", K::kind(&()))
}

impl Write {
    /// The HTTP request.
    #[must_use]
    pub fn request(&self) -> &Request<Vec<u8>> {
        &self.request
    }

    /// Creates `object`.
    ///
    /// # Errors
    /// If the object cannot be encoded.
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
        Self::from_request::<K>(purpose, &key, request)
    }

    /// Server-side apply of `fields` as field manager `manager`, with force: `manager` becomes the owner of the fields.
    /// `subresource` is for example `status`.
    ///
    /// # Errors
    /// If the fields cannot be encoded.
    pub fn apply<K>(
        purpose: &'static str,
        key: &Key,
        subresource: Option<&str>,
        manager: &str,
        fields: &Value,
    ) -> Result<Self, WriteError>
    where
        K: Resource<DynamicType = ()>,
    {
        Self::patch::<K>(
            purpose,
            key,
            subresource,
            &PatchParams::apply(manager).force(),
            &Patch::Apply(fields),
        )
    }

    /// JSON merge patch: null removes a field. `subresource` is for example `status`.
    ///
    /// # Errors
    /// If the fields cannot be encoded.
    pub fn merge<K>(
        purpose: &'static str,
        key: &Key,
        subresource: Option<&str>,
        fields: &Value,
    ) -> Result<Self, WriteError>
    where
        K: Resource<DynamicType = ()>,
    {
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        Self::patch::<K>(purpose, key, subresource, &params, &Patch::Merge(fields))
    }

    fn patch<K>(
        purpose: &'static str,
        key: &Key,
        subresource: Option<&str>,
        params: &PatchParams,
        patch: &Patch<&Value>,
    ) -> Result<Self, WriteError>
    where
        K: Resource<DynamicType = ()>,
    {
        let requests = requests::<K>(key.namespace.as_deref());
        let request = match subresource {
            Some(subresource) => requests.patch_subresource(subresource, &key.name, params, patch),
            None => requests.patch(&key.name, params, patch),
        };
        Self::from_request::<K>(purpose, key, request.map_err(request_error))
    }

    /// Deletes the object if it matches `preconditions`.
    ///
    /// # Errors
    /// If the request cannot be encoded.
    pub fn delete<K>(
        purpose: &'static str,
        key: &Key,
        preconditions: DeletePreconditions,
        propagation: DeletePropagation,
    ) -> Result<Self, WriteError>
    where
        K: Resource<DynamicType = ()>,
    {
        let policy = match propagation {
            DeletePropagation::Background => PropagationPolicy::Background,
            DeletePropagation::Foreground => PropagationPolicy::Foreground,
        };
        let params = DeleteParams {
            propagation_policy: Some(policy),
            preconditions: Some(Preconditions {
                uid: preconditions.uid,
                resource_version: preconditions.resource_version,
            }),
            ..DeleteParams::default()
        };
        let request = requests::<K>(key.namespace.as_deref()).delete(&key.name, &params);
        Self::from_request::<K>(purpose, key, request.map_err(request_error)).map(as_json)
    }

    fn from_request<K: Resource<DynamicType = ()>>(
        purpose: &'static str,
        key: &Key,
        request: Result<Request<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<Self, WriteError> {
        let object = describe::<K>(key);
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
        let only = DeletePreconditions { uid: Some("u".to_owned()), resource_version: None };
        let write = Write::delete::<ConfigMap>("drop", &key, only, DeletePropagation::Foreground)
            .expect("a request");
        assert_eq!(write.object, "ConfigMap ns/m");
        assert_eq!(write.request.uri().path(), "/api/v1/namespaces/ns/configmaps/m");
        let body: Value = serde_json::from_slice(write.request.body()).expect("JSON");
        assert_eq!(body["preconditions"], json!({"uid": "u"}));
        assert_eq!(body["propagationPolicy"], "Foreground");
    }
}
