//! A write request as a value: built by the component that decides, sent by a [`Writer`](crate::writer::Writer).
//!
//! Every write has a *purpose*, one word that labels it in metrics and logs and names its two failpoints
//! ([`crate::failpoint`]). Writes are idempotent: each carries a precondition or states the desired values, so sending it
//! twice does no harm.

mod not_found;

use std::sync::Arc;

use http::{HeaderValue, Request, header::CONTENT_TYPE};
use kube::{
    Resource,
    api::{
        DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions,
        PropagationPolicy,
    },
    core::{ApiResource, DynamicObject, Request as Requests, request},
};
use serde::Serialize;
use serde_json::Value;

use self::not_found::NamedObject;
pub use self::not_found::is_absence;
pub(crate) use self::not_found::{NotFound, NotFoundRule};
use crate::watch::Key;

/// A write that cannot be encoded as a request.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the request to {purpose} {object}: {source}")]
pub struct WriteError {
    purpose: &'static str,
    object: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// A request for one object: a create, an apply, a patch, a delete, or a consistent read.
#[derive(Debug)]
pub struct Write {
    /// What the write is for: one word of lower-case letters and dashes.
    pub purpose: &'static str,
    /// Kind, namespace and name, for logs.
    pub object: String,
    pub(crate) request: Request<Vec<u8>>,
    pub(crate) not_found: NotFoundRule,
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

/// Builds writes of objects of one resource, with one purpose.
#[derive(Clone, Copy, Debug)]
pub struct ResourceWrites<'a> {
    purpose: &'static str,
    resource: &'a ApiResource,
}

type RequestResult = Result<Request<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>>;

impl Write {
    /// The HTTP request.
    #[must_use]
    pub fn request(&self) -> &Request<Vec<u8>> {
        &self.request
    }

    /// Writes of objects of a resource that is known at run time.
    #[must_use]
    pub fn of<'a>(purpose: &'static str, resource: &'a ApiResource) -> ResourceWrites<'a> {
        ResourceWrites { purpose, resource }
    }

    /// Creates `object`.
    ///
    /// # Errors
    /// If the object cannot be encoded.
    pub fn create<K>(purpose: &'static str, object: &K) -> Result<Self, WriteError>
    where
        K: Resource<DynamicType = ()> + Serialize,
    {
        let value = serde_json::to_value(object).map_err(Into::into);
        Self::of(purpose, &resource_of::<K>()).create_encoded(&Key::of(object), value)
    }

    /// See [`ResourceWrites::apply`].
    ///
    /// # Errors
    /// If the fields cannot be encoded.
    pub fn apply<K: Resource<DynamicType = ()>>(
        purpose: &'static str,
        key: &Key,
        subresource: Option<&str>,
        manager: &str,
        fields: &Value,
    ) -> Result<Self, WriteError> {
        Self::of(purpose, &resource_of::<K>()).apply(key, subresource, manager, fields)
    }

    /// See [`ResourceWrites::merge`].
    ///
    /// # Errors
    /// If the fields cannot be encoded.
    pub fn merge<K: Resource<DynamicType = ()>>(
        purpose: &'static str,
        key: &Key,
        subresource: Option<&str>,
        fields: &Value,
    ) -> Result<Self, WriteError> {
        Self::of(purpose, &resource_of::<K>()).merge(key, subresource, fields)
    }

    /// See [`ResourceWrites::delete`].
    ///
    /// # Errors
    /// If the request cannot be encoded.
    pub fn delete<K: Resource<DynamicType = ()>>(
        purpose: &'static str,
        key: &Key,
        preconditions: DeletePreconditions,
        propagation: DeletePropagation,
    ) -> Result<Self, WriteError> {
        Self::of(purpose, &resource_of::<K>()).delete(key, preconditions, propagation)
    }
}

impl ResourceWrites<'_> {
    /// Lists the object of this name, if it has the labels: a consistent read that changes nothing and needs no right but `list`. The
    /// outcome is `Refused` if the resource is not served.
    ///
    /// # Errors
    /// If the request cannot be encoded.
    pub fn list_one(self, key: &Key, labels: &str) -> Result<Write, WriteError> {
        let params =
            ListParams::default().fields(&format!("metadata.name={}", key.name)).labels(labels);
        let request = self.requests(key).list(&params).map_err(request_error);
        self.write(key, request, NotFoundRule::Read(self.named(key)))
    }

    /// Reads the metadata of the object: a consistent read that changes nothing and needs no right but `get`. The outcome is `Gone`
    /// if the object does not exist, and `Refused` if the resource is not served.
    ///
    /// # Errors
    /// If the request cannot be encoded.
    pub fn get_metadata(self, key: &Key) -> Result<Write, WriteError> {
        let request = self.requests(key).get_metadata(&key.name, &GetParams::default());
        let rule = NotFoundRule::Read(self.named(key));
        self.write(key, request.map_err(request_error), rule)
    }

    /// Creates `object`, with `apiVersion` and `kind` of the resource.
    ///
    /// # Errors
    /// If the object cannot be encoded.
    pub fn create(self, object: Value) -> Result<Write, WriteError> {
        let text = |field: &str| object.pointer(field).and_then(Value::as_str).map(Arc::from);
        let name = text("/metadata/name").unwrap_or_default();
        let key = Key { namespace: text("/metadata/namespace"), name };
        self.create_encoded(&key, Ok(object))
    }

    /// Server-side apply of `fields` as field manager `manager`, with force: `manager` becomes the owner of the fields.
    /// `subresource` is for example `status`.
    ///
    /// # Errors
    /// If the fields cannot be encoded.
    pub fn apply(
        self,
        key: &Key,
        subresource: Option<&str>,
        manager: &str,
        fields: &Value,
    ) -> Result<Write, WriteError> {
        // A former writer of these fields may be another version of this program: the applied ones
        // are ours.
        let params = PatchParams::apply(manager).force();
        self.patch(key, subresource, &params, &Patch::Apply(fields))
    }

    /// JSON merge patch: null removes a field. `subresource` is for example `status`.
    ///
    /// # Errors
    /// If the fields cannot be encoded.
    pub fn merge(
        self,
        key: &Key,
        subresource: Option<&str>,
        fields: &Value,
    ) -> Result<Write, WriteError> {
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        self.patch(key, subresource, &params, &Patch::Merge(fields))
    }

    /// Deletes the object if it matches `preconditions`.
    ///
    /// # Errors
    /// If the request cannot be encoded.
    pub fn delete(
        self,
        key: &Key,
        preconditions: DeletePreconditions,
        propagation: DeletePropagation,
    ) -> Result<Write, WriteError> {
        self.delete_with(key, preconditions, propagation, None)
    }

    fn delete_with(
        self,
        key: &Key,
        preconditions: DeletePreconditions,
        propagation: DeletePropagation,
        grace_period_seconds: Option<u32>,
    ) -> Result<Write, WriteError> {
        let policy = match propagation {
            DeletePropagation::Background => PropagationPolicy::Background,
            DeletePropagation::Foreground => PropagationPolicy::Foreground,
        };
        let params = DeleteParams {
            grace_period_seconds,
            propagation_policy: Some(policy),
            preconditions: Some(Preconditions {
                uid: preconditions.uid,
                resource_version: preconditions.resource_version,
            }),
            ..DeleteParams::default()
        };
        let request = self.requests(key).delete(&key.name, &params);
        let rule = NotFoundRule::Change(self.named(key));
        self.write(key, request.map_err(request_error), rule).map(as_json)
    }

    /// Deletes the object at once: its pods get no time to end.
    ///
    /// # Errors
    /// If the request cannot be encoded.
    pub fn delete_now(
        self,
        key: &Key,
        preconditions: DeletePreconditions,
    ) -> Result<Write, WriteError> {
        self.delete_with(key, preconditions, DeletePropagation::Background, Some(0))
    }

    /// Deletes the object. Its pods get so many seconds to end, whatever they ask for.
    ///
    /// # Errors
    /// If the request cannot be encoded.
    pub fn delete_within(
        self,
        key: &Key,
        preconditions: DeletePreconditions,
        seconds: u32,
    ) -> Result<Write, WriteError> {
        self.delete_with(key, preconditions, DeletePropagation::Background, Some(seconds))
    }

    fn create_encoded(
        self,
        key: &Key,
        object: Result<Value, Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<Write, WriteError> {
        let params =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let request = object.and_then(|object| {
            // Types encode neither field, and the API server needs both.
            let body = serde_json::to_vec(&typed(object, self.resource))?;
            self.requests(key).create(&params, body).map_err(request_error)
        });
        self.write(key, request, NotFoundRule::Create)
    }

    fn patch(
        self,
        key: &Key,
        subresource: Option<&str>,
        params: &PatchParams,
        patch: &Patch<&Value>,
    ) -> Result<Write, WriteError> {
        let requests = self.requests(key);
        let request = match subresource {
            Some(subresource) => requests.patch_subresource(subresource, &key.name, params, patch),
            None => requests.patch(&key.name, params, patch),
        };
        let rule = NotFoundRule::Change(self.named(key));
        self.write(key, request.map_err(request_error), rule)
    }

    /// Builds requests in the namespace of an object.
    fn requests(self, key: &Key) -> Requests {
        Requests::new(DynamicObject::url_path(self.resource, key.namespace.as_deref()))
    }

    fn named(self, key: &Key) -> NamedObject {
        NamedObject::new(self.resource, key)
    }

    fn write(
        self,
        key: &Key,
        request: RequestResult,
        not_found: NotFoundRule,
    ) -> Result<Write, WriteError> {
        let Self { purpose, resource } = self;
        let object = format!("{} {key}", resource.kind);
        match request {
            Ok(request) => Ok(Write { purpose, object, request, not_found }),
            Err(source) => Err(WriteError { purpose, object, source }),
        }
    }
}

fn resource_of<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

fn request_error(error: request::Error) -> Box<dyn std::error::Error + Send + Sync> {
    Box::new(error)
}

fn as_json(mut write: Write) -> Write {
    write.request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    write
}

/// An object with its `apiVersion` and `kind`, which not all types carry.
fn typed(mut object: Value, resource: &ApiResource) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.insert("apiVersion".to_owned(), resource.api_version.as_str().into());
        fields.insert("kind".to_owned(), resource.kind.as_str().into());
    }
    object
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_read_lists_one_name_without_a_version() {
        let key = Key { namespace: Some("ns".into()), name: "a".into() };
        let write = Write::of("settle", &resource_of::<ConfigMap>()).list_one(&key, "l=v");
        let request = write.expect("a request").request;
        assert_eq!(request.method(), http::Method::GET);
        let uri = request.uri().to_string();
        assert!(uri.starts_with("/api/v1/namespaces/ns/configmaps?"), "{uri}");
        assert!(uri.contains("fieldSelector=metadata.name%3Da"), "{uri}");
        assert!(uri.contains("labelSelector=l%3Dv") && !uri.contains("resourceVersion"), "{uri}");
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

    #[test]
    fn a_resource_that_is_known_at_run_time_is_written_like_a_typed_one() {
        let resource = ApiResource::erase::<ConfigMap>(&());
        let key = Key { namespace: Some("ns".into()), name: "m".into() };
        let object = json!({"metadata": {"namespace": "ns", "name": "m"}, "data": {"a": "1"}});
        let map: ConfigMap = serde_json::from_value(object.clone()).expect("decodes");
        let fields = json!({"data": {"a": "2"}});
        let only = DeletePreconditions { uid: Some("u".to_owned()), resource_version: None };
        let (status, background) = (Some("status"), DeletePropagation::Background);
        let dynamic = Write::of("test", &resource);
        for (typed, dynamic) in [
            (Write::create("test", &map), dynamic.create(object)),
            (
                Write::merge::<ConfigMap>("test", &key, None, &fields),
                dynamic.merge(&key, None, &fields),
            ),
            (
                Write::apply::<ConfigMap>("test", &key, status, "m", &fields),
                dynamic.apply(&key, status, "m", &fields),
            ),
            (
                Write::delete::<ConfigMap>("test", &key, only.clone(), background),
                dynamic.delete(&key, only, background),
            ),
        ] {
            let (typed, dynamic) = (typed.expect("a write"), dynamic.expect("a write"));
            assert_eq!((typed.purpose, &typed.object), (dynamic.purpose, &dynamic.object));
            assert_eq!(typed.request.uri(), dynamic.request.uri());
            assert_eq!(typed.request.method(), dynamic.request.method());
            let body = |write: &Write| serde_json::from_slice::<Value>(write.request.body());
            assert_eq!(body(&typed).expect("JSON"), body(&dynamic).expect("JSON"));
        }
    }
}
