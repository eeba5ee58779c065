//! One occurrence, as the input of an Event.

use kube::Resource;

use crate::watch::Key;

/// The `type` of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// Normal operation.
    Normal,
    /// A problem that may need the attention of an administrator.
    Warning,
}

/// The object of an event, its `regarding` field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Regarding {
    /// Group and version, as in a manifest.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Namespace and name.
    pub key: Key,
    /// The uid; empty if unknown.
    pub uid: String,
}

impl Regarding {
    /// Refers to an object from the API server.
    #[must_use]
    pub fn of<K: Resource<DynamicType = ()>>(object: &K) -> Self {
        Self {
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            key: Key::of(object),
            uid: object.meta().uid.clone().unwrap_or_default(),
        }
    }
}

/// One occurrence. Equal records may become one Event with a count. The API server refuses an empty action or reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventRecord {
    /// The object.
    pub regarding: Regarding,
    /// Whether this is a problem.
    pub event_type: EventType,
    /// The action that was taken, one word in UpperCamelCase.
    pub action: String,
    /// The reason of the action, one word in UpperCamelCase.
    pub reason: String,
    /// The message, in plain text.
    pub note: String,
}

impl EventType {
    /// The value of `type` in the API.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}
