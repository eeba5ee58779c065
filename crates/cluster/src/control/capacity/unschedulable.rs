//! Pods of clones that no node takes although the report showed room (docs/reference/dispatch.md §4).

use std::time::Duration;

use ::jobs::Pod;
use crds::names::reasons::UNSCHEDULABLE;
use jiff::Timestamp;
use runtime::watch::Key;
use serde_json::Value;

use super::node::PodInfo;
use crate::control::{key_map::KeyMap, outbox::after, pod_failure::PodFailure};

/// How long a pod may be unschedulable before its clone is evicted.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// Unschedulable pods of clones, by pod. Few pods are in it.
#[derive(Debug, Default)]
pub(super) struct UnschedulablePods {
    pods: KeyMap<Key, (Key, PodFailure)>,
}

impl UnschedulablePods {
    /// Records a pod; `None` if it is gone. Returns the clones that are concerned.
    pub(super) fn observe(&mut self, key: &Key, pod: Option<&PodInfo>) -> Vec<Key> {
        let now = pod.and_then(|pod| pod.unschedulable.as_ref());
        let now = now.map(|(clone, since)| (clone.clone(), since.of_pod(&key.name)));
        if self.pods.get(key) == now.as_ref() {
            return Vec::new();
        }
        let clone = now.as_ref().map(|(clone, _)| clone.clone());
        let before = match now {
            Some(now) => self.pods.insert(key.clone(), now),
            None => self.pods.remove(key),
        };
        before.map(|(clone, _)| clone).into_iter().chain(clone).collect()
    }

    /// The pod of a clone that is unschedulable for the longest time.
    pub(super) fn of(&self, clone: &Key) -> Option<PodFailure> {
        let own = self.pods.values().filter(|(one, _)| one == clone);
        own.map(|(_, pod)| pod).min_by_key(|one| one.at).cloned()
    }
}

/// What kube-scheduler writes about a pod that fits on no node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnschedulableSince {
    since: Timestamp,
    cause: String,
}

impl UnschedulableSince {
    /// `None` for a pod that is bound, or not tried yet.
    pub(super) fn of(pod: &Pod) -> Option<Self> {
        let said = pod.status.conditions.iter().find(|one| one.r#type == "PodScheduled")?;
        let text = |field: &str| said.rest.get(field).and_then(Value::as_str);
        let unschedulable = said.status == "False" && text("reason") == Some(UNSCHEDULABLE);
        let since = said.last_transition_time.as_ref().filter(|_| unschedulable)?;
        Some(Self { since: since.0, cause: text("message").unwrap_or_default().to_owned() })
    }

    /// The words of kube-scheduler.
    pub(super) fn cause(&self) -> &str {
        &self.cause
    }

    fn of_pod(&self, name: &str) -> PodFailure {
        let seconds = TIMEOUT.as_secs();
        let message = format!("no node took pod {name} for {seconds}s: {}", self.cause);
        PodFailure { at: after(self.since, TIMEOUT), reason: UNSCHEDULABLE, message }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::node::pod_of_clone as object, *};

    fn pod(status: &str, reason: &str, second: u8) -> PodInfo {
        object(&json!({"conditions": [{
            "type": "PodScheduled", "status": status, "reason": reason, "message": "0/1 nodes",
            "lastTransitionTime": format!("2026-01-01T00:00:{second:02}Z"),
        }]}))
    }

    fn key(name: &str) -> Key {
        Key { namespace: Some("ns".into()), name: name.into() }
    }

    #[test]
    fn the_pod_that_is_unschedulable_longest_counts_until_it_is_bound() {
        let (clone, mut pods) = (key("clone"), UnschedulablePods::default());
        let concerned = [key("clone")];
        let late = pod("False", "Unschedulable", 9);
        assert_eq!(pods.observe(&key("b"), Some(&late)), concerned);
        assert_eq!(pods.observe(&key("b"), Some(&late)), [], "unchanged");
        pods.observe(&key("a"), Some(&pod("False", "Unschedulable", 5)));
        pods.observe(&key("c"), Some(&pod("False", "SchedulingGated", 1)));
        let longest = pods.of(&clone).expect("one is unschedulable");
        assert_eq!(longest.at.to_string(), "2026-01-01T00:01:05Z");
        assert_eq!(longest.message, "no node took pod a for 60s: 0/1 nodes");
        assert_eq!(pods.observe(&key("a"), Some(&pod("True", "", 30))), concerned);
        assert_eq!(
            pods.of(&clone).map(|one| one.at.to_string()).as_deref(),
            Some("2026-01-01T00:01:09Z")
        );
        pods.observe(&key("b"), None);
        assert_eq!(pods.of(&clone), None);
    }
}
