//! An object of a watched kind as it was last observed.
//!
//! What a write is answered with counts as observed, so nothing waits for the watch to repeat it. Observations are ordered
//! by resourceVersion: an older one never replaces a newer one, unless the uid differs or the connection has ended since.

use std::{sync::Arc, time::Duration};

use ::jobs::{JobObject, Kind};
use crds::decode::Decode;
use jiff::{SignedDuration, Timestamp};
use kube::Resource;
use runtime::{api_object::ApiObject, writer::WriteOutcome};

use super::writes::Stamp;
use crate::control::key_map::KeyMap;

/// The last observation of one object. Clones of the object are cheap.
#[derive(Debug)]
pub(crate) struct Tracked<K> {
    object: Arc<K>,
    version: u64,
    /// It is of an earlier connection.
    is_former: bool,
}

impl<K: Resource> From<Arc<K>> for Tracked<K> {
    fn from(object: Arc<K>) -> Self {
        Self::new(object)
    }
}

impl<K> AsMut<Self> for Tracked<K> {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl<K> Tracked<K> {
    /// The object as it was last observed.
    pub(crate) fn object(&self) -> &Arc<K> {
        &self.object
    }

    /// resourceVersion of the last observation; 0 if it is not a number.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The connection has ended: the next observation counts, whatever its version is. After a restore of its etcd the versions of a
    /// cluster begin lower.
    pub(crate) fn connection_ended(&mut self) {
        self.is_former = true;
    }
}

impl<K: Resource> Tracked<K> {
    /// Tracks an object that was observed for the first time.
    pub(crate) fn new(object: impl Into<Arc<K>>) -> Self {
        let object = object.into();
        Self { version: version(&*object), object, is_former: false }
    }

    /// Records an observation. Returns whether it is newer than the last one, of another uid, or of a further connection.
    pub(crate) fn observe(&mut self, object: impl Into<Arc<K>>) -> bool {
        let object = object.into();
        let version = version(&*object);
        let replaced = object.meta().uid != self.object.meta().uid;
        // A new uid is another object, whatever its version: after a restore from a backup versions begin lower.
        if version <= self.version && !replaced && !self.is_former {
            return false;
        }
        *self = Self { object, version, is_former: false };
        true
    }

    /// What a write of this object is based on.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { version: self.version, uid: self.object.meta().uid.as_deref().map(Into::into) }
    }
}

impl<K: Resource> Tracked<K> {
    /// Records the object that a write was answered with, if any. An object of another uid is ignored. Returns whether it is
    /// newer than the last observation.
    pub(crate) fn observe_decoded(&mut self, answer: Option<K>) -> bool {
        match answer {
            // Another uid is a successor of the name. The watch introduces it, and with it the end of this object.
            Some(object) if object.meta().uid == self.object.meta().uid => self.observe(object),
            _ => false,
        }
    }
}

impl<K: Resource + Decode> Tracked<K> {
    /// Takes over an answer that is not decoded yet. The answer to a deletion is a status and is ignored.
    pub(crate) fn observe_answer(&mut self, answer: &ApiObject) -> bool {
        self.observe_decoded(decode::<K>(answer))
    }
}

/// The object of an answer.
pub(crate) fn decode<K: Decode>(answer: &ApiObject) -> Option<K> {
    K::decode_text(answer.text()).ok()
}

/// The job of an answer.
pub(crate) fn decode_job(kind: &Kind, answer: &ApiObject) -> Option<JobObject> {
    kind.decode_text(answer.text()).ok()
}

/// Records an object in the map of its kind; `None` removes it.
pub(crate) fn upsert<I, V, K>(objects: &mut KeyMap<I, V>, id: I, object: Option<Arc<K>>)
where
    I: Ord,
    V: From<Arc<K>> + AsMut<Tracked<K>>,
    K: Resource,
{
    match (objects.get_mut(&id), object) {
        (Some(known), Some(object)) => {
            known.as_mut().observe(object);
        }
        (None, Some(object)) => {
            objects.insert(id, object.into());
        }
        (_, None) => {
            objects.remove(&id);
        }
    }
}

/// Records the only object of its kind; `None` removes it.
pub(crate) fn upsert_single<K: Resource>(known: &mut Option<Tracked<K>>, object: Option<Arc<K>>) {
    match (known, object) {
        (Some(tracked), Some(object)) => {
            tracked.observe(object);
        }
        (known, object) => *known = object.map(Tracked::new),
    }
}

/// Records the answer to a write of the only object of its kind, or to its create.
pub(crate) fn answer_single<K: Resource + Decode>(
    known: &mut Option<Tracked<K>>,
    is_create: bool,
    answer: WriteOutcome,
) {
    match (&mut *known, answer) {
        (Some(tracked), WriteOutcome::Done(value)) => {
            tracked.observe_answer(&value);
        }
        // The watch has shown the deletion before the answer to an earlier write: the object in it does not exist any more.
        (None, WriteOutcome::Done(value)) if is_create => {
            *known = decode::<K>(&value).map(Tracked::new);
        }
        (_, WriteOutcome::Gone) => *known = None,
        _ => {}
    }
}

/// `now` plus `pause`; the latest time that exists if that is out of range.
pub(crate) fn after(now: Timestamp, pause: Duration) -> Timestamp {
    let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
    now.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// The resourceVersion as a number: those of one API server grow. 0 if it is not a number.
pub(crate) fn version(object: &impl Resource) -> u64 {
    let text = object.meta().resource_version.as_deref();
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn value(version: &str) -> serde_json::Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "a", "uid": "u", "resourceVersion": version, "managedFields": [] },
        })
    }

    fn object(version: &str) -> ConfigMap {
        serde_json::from_value(value(version)).expect("decodes")
    }

    #[test]
    fn an_older_observation_does_not_replace_a_newer_one() {
        let mut tracked = Tracked::new(object("5"));
        assert!(tracked.observe_answer(&value("9").into()));
        assert!(!tracked.observe(object("7")));
        assert!(!tracked.observe(object("9")), "the watch repeats the answer");
        assert!(tracked.observe(object("10")));
        assert!(tracked.object().metadata.managed_fields.is_some(), "watches strip it themselves");
    }

    #[test]
    fn an_answer_about_another_uid_is_ignored() {
        let mut tracked = Tracked::new(object("5"));
        let mut other = value("9");
        other["metadata"]["uid"] = json!("another");
        assert!(!tracked.observe_answer(&other.clone().into()));
        assert!(!tracked.observe_answer(&json!({"kind": "Status"}).into()));
        assert!(tracked.observe(serde_json::from_value::<ConfigMap>(other).expect("decodes")));
    }
}
