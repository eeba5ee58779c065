//! What happened to an object, in words.

use kube::Resource;

use crate::watch::Key;

/// Whether something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// Things go as they should.
    Normal,
    /// Somebody may have to do something.
    Warning,
}

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Regarding {
    /// Group and version, as in a manifest.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Namespace and name.
    pub key: Key,
    /// The uid; empty if it is not known.
    pub uid: String,
}

impl Regarding {
    /// An object, as it was seen.
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

/// One thing that happened. Two that are equal may become one Event that counts. The server refuses what has no action or no
/// reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventRecord {
    /// To which object.
    pub regarding: Regarding,
    /// Whether something is wrong.
    pub event_type: EventType,
    /// What was being done, in one word for programs.
    pub action: String,
    /// Why this is told, in one word for programs.
    pub reason: String,
    /// The same for people.
    pub note: String,
}

impl EventType {
    /// The word on the wire.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}
