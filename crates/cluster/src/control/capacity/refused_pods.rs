//! Pods that the API server refuses to the controller of a job: ResourceQuota, LimitRange, Pod Security, a webhook
//! (docs/reference/dispatch.md §4).
//!
//! The controller reports them by an Event of its job and tries again. Pods of a clone are *refused* from such an Event on,
//! until all of its pods exist.

use std::time::Duration;

use crds::names::reasons::PODS_REFUSED;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::core::v1::Event, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use runtime::watch::Key;

use super::{node::PodInfo, refused_owners::ObjectName};
use crate::control::{
    key_map::KeyMap, key_set::KeySet, observed::Reduced, outbox::after, pod_failure::PodFailure,
    time::moved,
};

/// How long pods may be refused before their clone is evicted. The controller of Jobs has tried five times by then.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// Selects the Events about refused pods.
pub const REFUSED_PODS_FIELDS: &str = "reason=FailedCreate,type=Warning";

/// An Event about pods that could not be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedPodsEvent {
    /// The object that its controller creates pods for.
    pub(crate) object: ObjectName,
    pub(crate) uid: String,
    pub(crate) message: String,
}

impl Reduced for RefusedPodsEvent {
    type Kind = Event;
    type Object = Event;

    fn metadata(event: &Event) -> &ObjectMeta {
        &event.metadata
    }

    fn of(event: &Event) -> Self {
        let about = &event.involved_object;
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        Self {
            object: ObjectName {
                api_version: text(&about.api_version).into(),
                kind: text(&about.kind).into(),
                key: Key {
                    namespace: about.namespace.as_deref().map(Into::into),
                    name: text(&about.name).into(),
                },
            },
            uid: text(&about.uid),
            message: text(&event.message),
        }
    }
}

/// Pods of clones, and clones with refused pods.
#[derive(Debug, Default)]
pub(super) struct RefusedPods {
    clones: KeyMap<Key, Key>,
    pods: KeyMap<Key, KeySet<Key>>,
    refused: KeyMap<Key, (Timestamp, String)>,
}

impl RefusedPods {
    /// Records a pod; `None` if it is gone. Returns the clones that have another number of pods now.
    pub(super) fn observe(&mut self, key: &Key, pod: Option<&PodInfo>) -> Vec<Key> {
        let clone = pod.and_then(|pod| pod.lives_for.clone());
        if self.clones.get(key) == clone.as_ref() {
            return Vec::new();
        }
        let before = match &clone {
            Some(clone) => self.clones.insert(key.clone(), clone.clone()),
            None => self.clones.remove(key),
        };
        if let Some(before) = &before {
            self.pods.remove_member(before, key);
        }
        if let Some(clone) = &clone {
            self.pods.entry(clone.clone()).or_default().insert(key.clone());
        }
        before.into_iter().chain(clone).collect()
    }

    /// The controller of a clone's job reports that it cannot create a pod.
    pub(super) fn refuse(&mut self, clone: Key, message: &str, now: Timestamp) {
        // The first Event counts: the controller repeats it with each attempt, and each would start the time again.
        let (_, last) = self.refused.entry(clone).or_insert((now, String::new()));
        message.clone_into(last);
    }

    /// The clock jumped: pods are refused for as long as before.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        self.refused.for_each_mut(|_, (since, _)| *since = moved(*since, by));
    }

    /// Compares the pods of a clone with the number that it should have; `None` if it should have none.
    pub(super) fn compare(&mut self, clone: &Key, wanted: Option<i64>) {
        let pods = self.pods.get(clone).map_or(0, KeySet::len);
        let is_short = wanted.is_some_and(|wanted| i64::try_from(pods).is_ok_and(|n| n < wanted));
        if !is_short {
            self.refused.remove(clone);
        }
    }

    /// The refused pods of a clone.
    pub(super) fn of(&self, clone: &Key) -> Option<PodFailure> {
        let (since, cause) = self.refused.get(clone)?;
        let seconds = TIMEOUT.as_secs();
        let message = format!("pods were refused for {seconds}s: {cause}");
        Some(PodFailure { at: after(*since, TIMEOUT), reason: PODS_REFUSED, message })
    }
}
