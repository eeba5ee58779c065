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

/// How long it may be unschedulable while the autoscaler can still add nodes for it: as long as cluster-autoscaler waits for a
/// node unless configured.
pub(super) const SCALE_UP_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Unschedulable pods of clones, by pod. Few pods are in it.
#[derive(Debug, Default)]
pub(super) struct UnschedulablePods {
    pods: KeyMap<Key, (Key, UnschedulableSince)>,
}

impl UnschedulablePods {
    /// Records a pod; `None` if it is gone. Returns the clones that are concerned.
    pub(super) fn observe(&mut self, key: &Key, pod: Option<&PodInfo>) -> Vec<Key> {
        let now = pod.and_then(|pod| pod.unschedulable.as_ref());
        let now = now.cloned();
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

    /// The pod of a clone that is unschedulable for the longest time. `waiting` says how long the clone may wait for new nodes.
    pub(super) fn of(&self, clone: &Key, waiting: Option<NewNodeWait>) -> Option<PodFailure> {
        let own = self.pods.iter().filter(|(_, (one, _))| one == clone);
        let own = own.map(|(pod, (_, since))| (since.since, pod, since));
        let (_, pod, since) = own.min_by_key(|(at, pod, _)| (*at, *pod))?;
        Some(since.of_pod(&pod.name, waiting))
    }

    /// Clones, or chains of them, with an unschedulable pod.
    pub(super) fn clones(&self) -> impl Iterator<Item = &Key> {
        self.pods.values().map(|(clone, _)| clone)
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

    fn of_pod(&self, name: &str, waiting: Option<NewNodeWait>) -> PodFailure {
        let at = match waiting {
            None => after(self.since, TIMEOUT),
            Some(NewNodeWait { until: Some(end) }) => after(self.since.max(end), TIMEOUT),
            Some(NewNodeWait { until: None }) => after(self.since, SCALE_UP_TIMEOUT),
        };
        let seconds = at.duration_since(self.since).as_secs();
        let message = format!("no node took pod {name} for {seconds}s: {}", self.cause);
        PodFailure { at, reason: UNSCHEDULABLE, message }
    }
}

/// A clone waits, or did, for nodes that its cluster's autoscaler can still add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NewNodeWait {
    /// When they had come, or it was certain that they do not; `None` while it waits.
    pub(super) until: Option<Timestamp>,
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
        let longest = pods.of(&clone, None).expect("one is unschedulable");
        assert_eq!(longest.at.to_string(), "2026-01-01T00:01:05Z");
        assert_eq!(longest.message, "no node took pod a for 60s: 0/1 nodes");
        assert_eq!(pods.observe(&key("a"), Some(&pod("True", "", 30))), concerned);
        assert_eq!(
            pods.of(&clone, None).map(|one| one.at.to_string()).as_deref(),
            Some("2026-01-01T00:01:09Z")
        );
        let waits =
            pods.of(&clone, Some(NewNodeWait { until: None })).expect("one is unschedulable");
        assert_eq!(waits.at.to_string(), "2026-01-01T00:15:09Z");
        let end = "2026-01-01T00:03:00Z".parse().expect("a time");
        let came =
            pods.of(&clone, Some(NewNodeWait { until: Some(end) })).expect("one is unschedulable");
        assert_eq!(came.message, "no node took pod b for 231s: 0/1 nodes");
        pods.observe(&key("b"), None);
        assert_eq!(pods.of(&clone, None), None);
    }
}
