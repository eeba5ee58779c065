//! An object of a watch before it is decoded into the type of its kind.
//!
//! Streams and lists carry this type whatever the kind, so that the watcher and the client are compiled once.

use std::{borrow::Cow, fmt};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    core::{ApiResource, DynamicResourceScope},
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::api_object;

/// An object as the API server sent it, without `managedFields`. Every JSON value decodes.
#[derive(Clone)]
pub(super) struct WatchedObject {
    /// Name, namespace and resourceVersion only.
    metadata: ObjectMeta,
    value: Value,
}

impl WatchedObject {
    /// The whole object.
    pub(super) fn into_value(self) -> Value {
        self.value
    }
}

impl<'de> Deserialize<'de> for WatchedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = api_object::deserialize(deserializer)?;
        let text = |field: &str| {
            let value = value.get("metadata").and_then(|metadata| metadata.get(field));
            value.and_then(Value::as_str).map(str::to_owned)
        };
        // Field by field: one object with metadata of another shape would fail a whole list.
        let metadata = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        };
        Ok(Self { metadata, value })
    }
}

/// Without the content, which may be that of a Secret.
impl fmt::Debug for WatchedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedObject").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

impl Resource for WatchedObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> WatchedObject {
        serde_json::from_value(value.clone()).expect("every value decodes")
    }

    #[test]
    fn an_object_keeps_everything_but_managed_fields() {
        let mut value = json!({
            "metadata": {
                "name": "a", "namespace": "here", "resourceVersion": "7", "uid": "u",
                "managedFields": [{"manager": "x"}],
            },
            "data": {"secret": "hush"},
        });
        let object = read(&value);
        let meta = object.meta().clone();
        assert_eq!(meta.name.as_deref(), Some("a"));
        assert_eq!(meta.namespace.as_deref(), Some("here"));
        assert_eq!(meta.resource_version.as_deref(), Some("7"));
        assert!(!format!("{object:?}").contains("hush"));
        value["metadata"].as_object_mut().expect("metadata").remove("managedFields");
        assert_eq!(object.into_value(), value);
    }

    #[test]
    fn a_malformed_object_has_no_name() {
        for value in [json!({}), json!({"metadata": 3}), json!({"metadata": {"name": 3}}), json!(1)]
        {
            assert_eq!(read(&value).meta().name, None, "{value}");
        }
    }
}
