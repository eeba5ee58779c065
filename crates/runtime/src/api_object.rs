//! An object as an API server sends it, before it is decoded into the type of its kind.
//!
//! Streams, lists and answers to writes carry this type whatever the kind, so that the watcher and the client are compiled once. It
//! keeps the text of the object: the decoder of a kind reads it directly, and an object of a known version is not decoded at all.
//!
//! `managedFields` are removed: nothing reads them, and they may be larger than the rest of an object.

mod raw_text;
mod tree;

use std::{borrow::Cow, fmt, ops::Range};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    core::{ApiResource, DynamicResourceScope, TypeMeta},
};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Error, Value, value::RawValue};

pub use tree::{deserialize as deserialize_tree, parse as parse_tree};

/// An object as the API server sent it, without `managedFields`. Every JSON value decodes.
#[derive(Clone, PartialEq)]
pub struct ApiObject {
    /// Name, namespace and resourceVersion only.
    metadata: Box<ObjectMeta>,
    text: String,
}

/// The fields of an object before its spec that are read here.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadMetadata<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    resource_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

impl ApiObject {
    /// Reads the text of an object.
    ///
    /// # Errors
    /// If the text is no JSON.
    pub fn parse(text: String) -> Result<Self, Error> {
        serde_json::from_str::<IgnoredAny>(&text)?;
        Ok(Self::of_text(text))
    }

    /// The whole object, as JSON.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is the status of a request, as the answer to a deletion that is done, and no object.
    #[must_use]
    pub fn is_status(&self) -> bool {
        // Every object has a name, so that few texts are read for this.
        self.metadata.name.is_none()
            && serde_json::from_str::<TypeMeta>(&self.text)
                .is_ok_and(|types| types.kind == "Status")
    }

    /// The whole object as a tree, for those that read a few fields of any kind.
    #[must_use]
    pub fn tree(&self) -> Value {
        parse_tree(&self.text).unwrap_or_default()
    }

    /// `text` is JSON.
    fn of_text(mut text: String) -> Self {
        match read_metadata(&text) {
            Some((metadata, managed_fields)) => {
                if let Some(range) = managed_fields {
                    text.replace_range(range, "null");
                }
                Self { metadata: Box::new(metadata), text }
            }
            None => Self::of_tree(&parse_tree(&text).unwrap_or_default()),
        }
    }

    /// Metadata of another shape is read field by field: one such object would fail a whole list.
    fn of_tree(value: &Value) -> Self {
        let field = |field: &str| {
            let value = value.get("metadata").and_then(|metadata| metadata.get(field));
            value.and_then(Value::as_str).map(str::to_owned)
        };
        let metadata = ObjectMeta {
            name: field("name"),
            namespace: field("namespace"),
            resource_version: field("resourceVersion"),
            ..ObjectMeta::default()
        };
        Self { metadata: Box::new(metadata), text: value.to_string() }
    }
}

/// The metadata, and where the value of `managedFields` is in the text. `None` if they have another shape.
fn read_metadata(text: &str) -> Option<(ObjectMeta, Option<Range<usize>>)> {
    let mut found = None;
    // Fails after the metadata: the API server sends them before the rest, which is left to the decoder of the kind.
    let _ = serde_json::Deserializer::from_str(text).deserialize_map(MetadataVisitor(&mut found));
    let ReadMetadata { name, namespace, resource_version, managed_fields } = found?;
    let metadata = ObjectMeta {
        name: name.map(Cow::into_owned),
        namespace: namespace.map(Cow::into_owned),
        resource_version: resource_version.map(Cow::into_owned),
        ..ObjectMeta::default()
    };
    let range = managed_fields.map(|fields| {
        let start = fields.get().as_ptr().addr() - text.as_ptr().addr();
        start..start + fields.get().len()
    });
    Some((metadata, range))
}

/// Reads an object up to its metadata.
struct MetadataVisitor<'a, 'de>(&'a mut Option<ReadMetadata<'de>>);

impl<'de> Visitor<'de> for MetadataVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            if name == "metadata" {
                *self.0 = Some(fields.next_value()?);
                return Ok(());
            }
            fields.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for ApiObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = raw_text::deserialize(deserializer)?;
        Ok(Self::of_text(Box::<str>::from(text).into()))
    }
}

/// An object that is made here.
impl From<Value> for ApiObject {
    fn from(value: Value) -> Self {
        Self::of_text(value.to_string())
    }
}

/// Without the content, which may be that of a Secret.
impl fmt::Debug for ApiObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiObject").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

impl Resource for ApiObject {
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
    use kube::core::WatchEvent;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> ApiObject {
        serde_json::from_str(text).expect("every value decodes")
    }

    #[test]
    fn an_object_keeps_everything_but_managed_fields() {
        let mut expected = json!({
            "kind": "Secret",
            "metadata": {"name": "a", "namespace": "here", "resourceVersion": "7", "uid": "u"},
            "data": {"secret": "hush"},
        });
        // Before other fields of the metadata, after them, and after the rest of the object.
        let managed = r#""managedFields": [{"manager": "x", "fieldsV1": {"f:a": {}}}]"#;
        let identity = r#""name": "a", "namespace": "here", "resourceVersion": "7", "uid": "u""#;
        let rest = r#""kind": "Secret", "data": {"secret": "hush"}"#;
        for text in [
            format!("{{{rest}, \"metadata\": {{{managed}, {identity}}}}}"),
            format!("{{\"metadata\": {{{identity}, {managed}}}, {rest}}}"),
            format!("{{\"metadata\": {{{identity}}}, {rest}}}"),
        ] {
            let object = read(&text);
            let meta = object.meta();
            assert_eq!(meta.name.as_deref(), Some("a"));
            assert_eq!(meta.namespace.as_deref(), Some("here"));
            assert_eq!(meta.resource_version.as_deref(), Some("7"));
            assert!(!format!("{object:?}").contains("hush"));
            assert!(!object.text().contains("manager"), "{}", object.text());
            assert_eq!(object.tree(), expected);
        }
        expected["metadata"]["managedFields"] = json!([{"manager": "x"}]);
        let of_value: ApiObject = serde_json::from_value(expected).expect("decodes");
        assert!(!of_value.text().contains("manager"), "a decoded value is read in the same way");
    }

    #[test]
    fn the_answer_to_a_deletion_is_a_status_and_no_object() {
        for (text, is_status) in [
            (
                r#"{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}"#,
                true,
            ),
            (r#"{"metadata": {}, "kind": "Status", "apiVersion": "v1"}"#, true),
            (r#"{"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "a"}}"#, false),
            (
                r#"{"kind": "JobList", "apiVersion": "batch/v1", "metadata": {}, "items": []}"#,
                false,
            ),
            ("1", false),
        ] {
            assert_eq!(read(text).is_status(), is_status, "{text}");
        }
    }

    #[test]
    fn a_malformed_object_has_the_fields_of_its_metadata_that_are_text() {
        for text in ["{}", r#"{"metadata": 3}"#, r#"{"metadata": {"name": 3}}"#, "1", "[{}]"] {
            assert_eq!(read(text).meta().name, None, "{text}");
            assert_eq!(read(text).tree(), serde_json::from_str::<Value>(text).expect("JSON"));
        }
        let object = read(r#"{"metadata": {"name": "a", "namespace": 3, "managedFields": [1]}}"#);
        assert_eq!((object.meta().name.as_deref(), &object.meta().namespace), (Some("a"), &None));
        assert_eq!(object.tree(), json!({"metadata": {"name": "a", "namespace": 3}}));
    }

    #[test]
    fn an_event_carries_the_text_of_its_object() {
        let object = r#"{"metadata":{"name":"a"},"n":1}"#;
        for text in [
            format!(r#"{{"type":"MODIFIED","object":{object}}}"#),
            format!(r#"{{"object":{object},"type":"MODIFIED"}}"#),
        ] {
            let event: WatchEvent<ApiObject> = serde_json::from_str(&text).expect("an event");
            let WatchEvent::Modified(watched) = event else { panic!("{event:?}") };
            assert_eq!(watched.text(), object);
        }
    }
}
