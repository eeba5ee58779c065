//! Objects that a watch reduces to what decides about room.
//!
//! A cluster has many more Nodes and Pods than anything else, and most of their fields never matter. They are reduced when they
//! are decoded, so that their stores stay small.

use std::{borrow::Cow, sync::Arc};

use crds::decode::Decode;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use runtime::writer::WriteOutcome;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Error, value::RawValue};

/// What is kept of an object.
///
/// A watch decodes each object as [`Object`](Self::Object), keeps what [`of`](Self::of) returns, and drops the rest. So `of` may read
/// nothing else, and two objects of which the same is kept are equal to every decision.
///
/// ```ignore
/// struct Cordoned(bool);
///
/// impl Reduced for Cordoned {
///     type Kind = Node;
///     type Object = Node;
///
///     fn metadata(node: &Node) -> &ObjectMeta {
///         &node.metadata
///     }
///
///     fn of(node: &Node) -> Self {
///         Self(node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default())
///     }
/// }
/// ```
pub trait Reduced: Sized {
    /// The kind of the object.
    type Kind: Resource<DynamicType = ()>;

    /// The fields that are decoded.
    type Object: Decode;

    /// The metadata of an object.
    fn metadata(object: &Self::Object) -> &ObjectMeta;

    /// Reduces an object.
    fn of(object: &Self::Object) -> Self;
}

/// An object of which only `T` is kept, and its name and version.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed<T> {
    metadata: ObjectMeta,
    content: T,
}

impl<T> Observed<T> {
    /// What is kept.
    pub(crate) fn content(&self) -> &T {
        &self.content
    }
}

/// What the answer to a write says about an object.
pub(crate) enum AnsweredObject<T> {
    /// It is like this; `None` if it is gone.
    Known(Option<Arc<Observed<T>>>),
    /// The write had no effect.
    Unchanged,
    /// The write may have had its effect.
    Unknown,
}

impl<T: Reduced> AnsweredObject<T> {
    /// Of this answer.
    pub(crate) fn of(answer: WriteOutcome) -> Self {
        match answer {
            WriteOutcome::Done(object) => Observed::decode_text(object.text())
                .map_or(Self::Unknown, |object| Self::Known(Some(Arc::new(object)))),
            WriteOutcome::Gone => Self::Known(None),
            WriteOutcome::Stale | WriteOutcome::Exists | WriteOutcome::Refused { .. } => {
                Self::Unchanged
            }
            WriteOutcome::Unknown(_) | WriteOutcome::UnnamedNotFound(_) => Self::Unknown,
        }
    }
}

impl<'de, T: Reduced> Deserialize<'de> for Observed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Self::decode_text(text.get()).map_err(de::Error::custom)
    }
}

impl<T: Reduced> Decode for Observed<T> {
    fn decode_text(text: &str) -> Result<Self, Error> {
        T::Object::decode_text(text).map(|object| Self::reduced(&object))
    }
}

impl<T: Reduced> Observed<T> {
    fn reduced(object: &T::Object) -> Self {
        let meta = T::metadata(object);
        let metadata = ObjectMeta {
            name: meta.name.clone(),
            namespace: meta.namespace.clone(),
            resource_version: meta.resource_version.clone(),
            ..ObjectMeta::default()
        };
        Self { metadata, content: T::of(object) }
    }
}

impl<T: Reduced> Resource for Observed<T> {
    type DynamicType = ();
    type Scope = <T::Kind as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        T::Kind::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        T::Kind::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        T::Kind::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        T::Kind::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
