//! Pods of clones that cannot start, in the words of the kubelet or of kube-scheduler (docs/reference/dispatch.md §4).

use std::time::Duration;

use ::jobs::Pod;
use crds::names::reasons::UNSCHEDULABLE;
use jiff::{SignedDuration, Timestamp};
use runtime::watch::Key;
use serde_json::Value;

use super::{node::PodInfo, unschedulable::UnschedulableSince};
use crate::control::{
    key_map::KeyMap,
    outbox::after,
    start_failure::{PodStarts, StartFailure},
    time::moved,
};

/// How long a pod may fail to start before its clone shows it. A pod often waits this long for the end of others, or for a
/// registry that answers the second time.
pub(super) const SHOWN_AFTER: Duration = Duration::from_secs(10);

/// Failing pods of clones, by pod. Few pods are in it.
#[derive(Debug, Default)]
pub(super) struct FailingPods {
    pods: KeyMap<Key, FailingPod>,
}

#[derive(Debug, Clone, PartialEq)]
struct FailingPod {
    clone: Key,
    /// When it was first seen to fail.
    since: Timestamp,
    failure: StartFailure,
}

impl FailingPods {
    /// Records a pod; `None` if it is gone. Returns the clones that are concerned.
    pub(super) fn observe(&mut self, key: &Key, pod: Option<&PodInfo>, now: Timestamp) -> Vec<Key> {
        let known = self.pods.get(key);
        let fails = pod.and_then(|pod| pod.failing.as_deref());
        let fails = fails.map(|(clone, symptom)| FailingPod {
            since: known.map_or(now, |one| one.since),
            ..symptom.of_pod(key, clone, now)
        });
        if known == fails.as_ref() {
            return Vec::new();
        }
        let clone = fails.as_ref().map(|one| one.clone.clone());
        let before = match fails {
            Some(fails) => self.pods.insert(key.clone(), fails),
            None => self.pods.remove(key),
        };
        let before = before.map(|one| one.clone).filter(|one| Some(one) != clone.as_ref());
        before.into_iter().chain(clone).collect()
    }

    /// The clock jumped: a pod fails for as long as before.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        self.pods.for_each_mut(|_, pod| pod.since = moved(pod.since, by));
    }

    /// What a clone shows about its pods, and when that changes by itself. The pod that fails for the longest time counts.
    pub(super) fn of(&self, clone: &Key, now: Timestamp) -> (PodStarts, Option<Timestamp>) {
        let own = self.pods.values().filter(|pod| pod.clone == *clone);
        let Some(first) = own.min_by_key(|pod| pod.since) else {
            return (PodStarts::NotFailing, None);
        };
        match after(first.since, SHOWN_AFTER) {
            due if due > now => (PodStarts::Unknown, Some(due)),
            _ => (PodStarts::Failing(first.failure.clone()), None),
        }
    }
}

/// What a pod says about why it cannot start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodSymptom {
    /// The container, if the pod has a node.
    container: Option<Box<str>>,
    failure: StartFailure,
}

impl PodSymptom {
    /// `None` for a pod that starts, or may start at any time.
    pub(super) fn of(pod: &Pod) -> Option<Self> {
        let unscheduled = UnschedulableSince::of(pod).and_then(|since| {
            let failure = StartFailure::of(UNSCHEDULABLE, since.cause())?;
            Some(Self { container: None, failure })
        });
        let statuses = ["initContainerStatuses", "containerStatuses"].into_iter();
        let statuses = statuses.filter_map(|field| pod.status.rest.get(field)?.as_array());
        unscheduled.or_else(|| statuses.flatten().find_map(Self::of_container))
    }

    fn of_container(status: &Value) -> Option<Self> {
        let text = |pointer: &str| status.pointer(pointer).and_then(Value::as_str);
        let message = text("/state/waiting/message").unwrap_or_default();
        let failure = StartFailure::of(text("/state/waiting/reason")?, message)?;
        Some(Self { container: text("/name").map(Into::into), failure })
    }

    fn of_pod(&self, pod: &Key, clone: &Key, now: Timestamp) -> FailingPod {
        let Self { container, failure } = self;
        let container = container.iter().map(|name| format!(", container {name}"));
        let subject = format!("pod {}{}", pod.name, container.collect::<String>());
        // The kubelet leaves out what the reason says.
        let message = match failure.message.as_str() {
            "" => subject,
            said => format!("{subject}: {said}"),
        };
        let failure = StartFailure { message, ..failure.clone() };
        FailingPod { clone: clone.clone(), since: now, failure }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::node::pod_of_clone as pod, *};

    fn waiting(reason: &str, message: &str) -> PodInfo {
        let state = json!({"waiting": {"reason": reason, "message": message}});
        let running = json!({"name": "other", "state": {"running": {}}});
        pod(&json!({"containerStatuses": [running, {"name": "main", "state": state}]}))
    }

    fn key(name: &str) -> Key {
        Key { namespace: Some("ns".into()), name: name.into() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn a_failing_container_is_shown_after_ten_seconds_in_the_newest_words_of_the_kubelet() {
        let (clone, mut pods) = (key("clone"), FailingPods::default());
        let pulls = waiting("ErrImagePull", "not found");
        assert_eq!(pods.observe(&key("a"), Some(&pulls), at(0)), [key("clone")]);
        assert_eq!(pods.observe(&key("a"), Some(&pulls), at(3)), [], "unchanged");
        pods.observe(&key("a"), Some(&waiting("ImagePullBackOff", "Back-off")), at(4));
        pods.observe(&key("b"), Some(&waiting("InvalidImageName", "")), at(5));
        assert_eq!(pods.of(&clone, at(9)), (PodStarts::Unknown, Some(at(10))));
        let (shown, due) = pods.of(&clone, at(10));
        let PodStarts::Failing(failure) = shown else { panic!("not {shown:?}") };
        assert_eq!((failure.reason, due), ("ImagePullBackOff", None));
        assert_eq!(failure.message, "pod a, container main: Back-off");

        pods.observe(&key("a"), Some(&pod(&json!({"phase": "Running"}))), at(20));
        let (shown, _) = pods.of(&clone, at(20));
        let PodStarts::Failing(failure) = shown else { panic!("not {shown:?}") };
        assert_eq!(failure.message, "pod b, container main");
        assert_eq!(pods.observe(&key("b"), None, at(21)), [key("clone")]);
        assert_eq!(pods.of(&clone, at(21)), (PodStarts::NotFailing, None));
    }

    #[test]
    fn a_pod_without_a_node_is_shown_in_the_words_of_the_scheduler() {
        let mut pods = FailingPods::default();
        let status = json!({"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/1 nodes are available", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]});
        pods.observe(&key("a"), Some(&pod(&status)), at(0));
        let (shown, _) = pods.of(&key("clone"), at(10));
        let message = "pod a: 0/1 nodes are available".to_owned();
        let failure = StartFailure { reason: "Unschedulable", message };
        assert_eq!(shown, PodStarts::Failing(failure));
    }

    #[test]
    fn pods_that_start_or_run_do_not_fail() {
        let mut pods = FailingPods::default();
        for (name, reason) in
            [("a", "ContainerCreating"), ("b", "PodInitializing"), ("c", "CrashLoopBackOff")]
        {
            assert_eq!(pods.observe(&key(name), Some(&waiting(reason, "")), at(0)), []);
        }
        assert_eq!(pods.of(&key("clone"), at(99)), (PodStarts::NotFailing, None));
    }
}
