//! What a decision asks for, and the answers.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    head::{HeadAnswer, HeadRequest},
    service::ServiceMemory,
};

/// One step of a decision. The caller takes the steps in order and stops at the first that is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum RayStep {
    /// Creates an object. The answer is the object as stored.
    Create(Value),
    /// Writes an object that secures a cluster by server-side apply, with the field manager `names::SECURITY_MANAGER`. The answer
    /// is the object as stored.
    Apply(Value),
    /// Creates a Secret with a new CA. The answer is the object as stored.
    CreateAuthority(Value),
    /// Applies a JSON merge patch. The answer is the object as stored.
    Patch {
        /// The object.
        target: ObjectTarget,
        /// The patch.
        patch: Value,
    },
    /// Deletes an object in the background. An object that is not there counts as deleted.
    Delete(ObjectTarget),
    /// Asks the Ray head of a cluster. The answer is what came of it.
    Ask(HeadRequest),
    /// Replaces the status of the parent. The write carries the version of the parent that the pass last saw.
    ReplaceStatus(Value),
    /// Publishes an event about the parent.
    Event(RayEvent),
    /// Keeps what the next decision about the parent is given. It may be lost.
    Remember(ServiceMemory),
    /// Decides again after this time, if nothing changes before. The shortest of several counts.
    RequeueAfter(Duration),
}

/// An object by its kind and name: one that a pass reads, changes or deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectTarget {
    /// The `apiVersion`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The uid; empty if it is not known. A patch and a deletion are refused for a successor of the object.
    pub uid: String,
}

/// An event about the parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RayEvent {
    /// Whether it is of type Warning, not Normal.
    pub warning: bool,
    /// For programs.
    pub reason: &'static str,
    /// The human-readable message.
    pub message: String,
}

/// The answer to an order.
#[derive(Clone, Debug, PartialEq)]
pub enum RayAnswer {
    /// The object as stored; null after a deletion.
    Done(Arc<Value>),
    /// The API server refused.
    Refused(RayRefusal),
    /// What came of a request to a Ray head.
    Head(HeadAnswer),
}

/// Why the API server refused a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RayRefusal {
    /// The HTTP code.
    pub code: u16,
    /// The human-readable message.
    pub message: String,
}

impl RayRefusal {
    /// Whether the object is there already.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code == 409
    }

    /// Whether the object is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }
}

impl RayStep {
    /// Whether the step writes or asks, so that its answer belongs to the next call.
    #[must_use]
    pub fn is_order(&self) -> bool {
        match self {
            Self::Create(_)
            | Self::Apply(_)
            | Self::CreateAuthority(_)
            | Self::Patch { .. }
            | Self::Delete(_)
            | Self::Ask(_) => true,
            Self::ReplaceStatus(_) | Self::Event(_) | Self::Remember(_) | Self::RequeueAfter(_) => {
                false
            }
        }
    }
}

impl ObjectTarget {
    /// An object that is not known by its uid.
    #[must_use]
    pub fn named(api_version: &str, kind: &str, name: impl Into<String>) -> Self {
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        Self { api_version, kind, name: name.into(), uid: String::new() }
    }

    /// The object as the target of a write.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            name: text(&object["metadata"]["name"]),
            uid: text(&object["metadata"]["uid"]),
        }
    }
}
