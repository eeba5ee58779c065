//! One occurrence, as the input of an Event.

use kube::{Resource, core::ApiResource};

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
    /// The resource version, if all records of one reason about it are one Event whatever their notes; empty otherwise.
    pub version: String,
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
            version: String::new(),
        }
    }

    /// Refers to this version of an object from the API server.
    #[must_use]
    pub fn version_of<K: Resource<DynamicType = ()>>(object: &K) -> Self {
        let version = object.meta().resource_version.clone().unwrap_or_default();
        Self { version, ..Self::of(object) }
    }

    /// Refers to an object of a kind that is known at run time. `uid` is empty if unknown.
    #[must_use]
    pub fn dynamic(resource: &ApiResource, key: Key, uid: &str) -> Self {
        Self {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
            key,
            uid: uid.to_owned(),
            version: String::new(),
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
    /// The reporting controller; that of the recorder if unset.
    pub controller: Option<String>,
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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::Job;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_that_is_known_at_run_time_is_referred_to_like_a_typed_one() {
        let metadata = json!({"namespace": "ns", "name": "a", "uid": "u"});
        let job: Job = serde_json::from_value(json!({"metadata": metadata})).expect("a Job");
        let resource = ApiResource::erase::<Job>(&());
        let dynamic = Regarding::dynamic(&resource, Key::of(&job), "u");
        assert_eq!(dynamic, Regarding::of(&job));
        assert_eq!((&*dynamic.api_version, &*dynamic.kind), ("batch/v1", "Job"));
    }
}
