//! An object as it was last seen, and how writing it goes.
//!
//! At most one write is under way. What the server answers counts as seen, so that nothing waits for the watch to repeat
//! it; what the watch brings late is older and ignored. After a conflict, nothing is written until something newer was
//! seen. After a failure, nothing is written for a while.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kube::Resource;
use runtime::writer::WriteOutcome;
use serde::de::DeserializeOwned;

/// The pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// After a refusal, things must change before it makes sense to try again; they may do so unseen.
const AFTER_REFUSAL: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub(crate) struct Held<K> {
    /// As it was last seen. Cheap to keep a copy of.
    pub(crate) object: Arc<K>,
    version: u64,
    writing: Writing,
    n_failures: u32,
}

#[derive(Debug, PartialEq, Eq)]
enum Writing {
    /// It may be written.
    Idle,
    /// A write is under way that was decided on at this version.
    Sent(u64),
    /// Something newer than this version must be seen first; or so much time must pass that a watch would have told.
    Stale(u64, Timestamp),
    /// Not before this time.
    Later(Timestamp),
}

/// Takes note of an object among its kind: as it is now, or that it is gone.
pub(crate) fn keep<I, V, K>(objects: &mut BTreeMap<I, V>, id: I, object: Option<K>)
where
    I: Ord,
    V: From<K> + AsMut<Held<K>>,
    K: Resource,
{
    match (objects.get_mut(&id), object) {
        (Some(known), Some(object)) => {
            known.as_mut().see(object);
        }
        (None, Some(object)) => {
            objects.insert(id, object.into());
        }
        (_, None) => {
            objects.remove(&id);
        }
    }
}

impl<K: Resource> From<K> for Held<K> {
    fn from(object: K) -> Self {
        Self::new(object)
    }
}

impl<K> AsMut<Self> for Held<K> {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl<K: Resource> Held<K> {
    pub(crate) fn new(object: K) -> Self {
        let version = version(&object);
        Self { object: Arc::new(object), version, writing: Writing::Idle, n_failures: 0 }
    }

    /// Takes note of the object; whether that was news.
    pub(crate) fn see(&mut self, object: K) -> bool {
        let version = version(&object);
        let another = object.meta().uid != self.object.meta().uid;
        if version <= self.version && !another {
            return false;
        }
        if matches!(self.writing, Writing::Stale(before, _) if version > before) || another {
            self.writing = Writing::Idle;
        }
        self.object = Arc::new(object);
        self.version = version;
        true
    }

    /// Whether it may be written now.
    pub(crate) fn is_free(&self, now: Timestamp) -> bool {
        match self.writing {
            Writing::Idle => true,
            Writing::Later(at) | Writing::Stale(_, at) => at <= now,
            Writing::Sent(_) => false,
        }
    }

    /// A write of it is under way.
    pub(crate) fn sent(&mut self) {
        self.writing = Writing::Sent(self.version);
    }

    /// Whether a write is under way, and nothing was seen since it was sent.
    pub(crate) fn is_as_sent(&self) -> bool {
        self.writing == Writing::Sent(self.version)
    }

    /// When it may be written again, if it has to wait for a time.
    pub(crate) fn later(&self) -> Option<Timestamp> {
        match self.writing {
            Writing::Later(at) | Writing::Stale(_, at) => Some(at),
            Writing::Idle | Writing::Sent(_) => None,
        }
    }

    /// resourceVersion of what was last seen.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

impl<K: Resource + DeserializeOwned> Held<K> {
    /// Takes note of what came of the write.
    pub(crate) fn answered(&mut self, answer: WriteOutcome, now: Timestamp) {
        match answer {
            WriteOutcome::Done(value) => {
                self.writing = Writing::Idle;
                self.n_failures = 0;
                // The status of a deletion is no object.
                if let Ok(object) = serde_json::from_value::<K>(value)
                    && object.meta().uid == self.object.meta().uid
                {
                    self.see(stripped(object));
                }
            }
            // Of an object that is gone, the removal is on its way.
            WriteOutcome::Exists | WriteOutcome::Stale | WriteOutcome::Gone => {
                self.writing = self.outdated(now)
            }
            WriteOutcome::Refused { .. } => self.pause(AFTER_REFUSAL, now),
            WriteOutcome::Unknown(_) => {
                let pause = FIRST_PAUSE.saturating_mul(1 << self.n_failures.min(10));
                self.pause(pause.min(LONGEST_PAUSE), now);
            }
        }
    }

    /// A write that met something else than it was decided on. What was seen meanwhile may be just that.
    fn outdated(&self, now: Timestamp) -> Writing {
        match self.writing {
            Writing::Sent(base) if self.version == base => {
                Writing::Stale(base, after(now, LONGEST_PAUSE))
            }
            _ => Writing::Idle,
        }
    }

    fn pause(&mut self, pause: Duration, now: Timestamp) {
        self.n_failures += 1;
        self.writing = Writing::Later(after(now, pause));
    }
}

/// So much later.
pub(crate) fn after(now: Timestamp, pause: Duration) -> Timestamp {
    let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
    now.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// An object without the record of who set which field.
fn stripped<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

/// resourceVersions of one server are numbers that grow.
pub(crate) fn version(object: &impl Resource) -> u64 {
    let text = object.meta().resource_version.as_deref();
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{Value, json};

    use super::*;

    fn value(version: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "a", "uid": "u", "resourceVersion": version },
        })
    }

    fn object(version: &str) -> ConfigMap {
        serde_json::from_value(value(version)).expect("decodes")
    }

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn what_the_watch_brings_late_is_ignored() {
        let mut held = Held::new(object("5"));
        held.sent();
        assert!(!held.is_free(NOW));
        held.answered(WriteOutcome::Done(value("9")), NOW);
        assert!(held.is_free(NOW));
        assert!(!held.see(object("7")));
        assert!(!held.see(object("9")), "the echo of the write is no news");
        assert!(held.see(object("10")));
    }

    #[test]
    fn after_a_conflict_something_newer_must_be_seen() {
        let mut held = Held::new(object("5"));
        held.sent();
        held.answered(WriteOutcome::Stale, NOW);
        assert!(!held.is_free(NOW));
        assert!(held.see(object("6")));
        assert!(held.is_free(NOW));
        held.sent();
        assert!(held.see(object("8")), "it came before the answer");
        held.answered(WriteOutcome::Stale, NOW);
        assert!(held.is_free(NOW), "8 may be what the write met, and nothing newer may come");
    }

    #[test]
    fn pauses_grow_with_failures_and_end_with_success() {
        let mut held = Held::new(object("5"));
        let mut pauses = Vec::new();
        for _ in 0..9 {
            held.sent();
            held.answered(WriteOutcome::Unknown("down".to_owned()), NOW);
            pauses.push(held.later().map_or(0, |at| at.as_millisecond()));
        }
        assert_eq!(pauses, [200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000]);
        held.answered(WriteOutcome::Done(value("6")), NOW);
        assert!(held.is_free(NOW));
        held.answered(WriteOutcome::Unknown("down".to_owned()), NOW);
        assert_eq!(held.later().map(|at| at.as_millisecond()), Some(200));
    }
}
