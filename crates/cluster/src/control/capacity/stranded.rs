//! Pods of clones that no node takes although there seemed to be room (docs/reference/dispatch.md §4).

use std::{collections::BTreeMap, time::Duration};

use crds::names::reasons::UNSCHEDULABLE;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use runtime::watch::Key;

use crate::control::held::after;

/// How long a pod may wait for a node.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A clone with a pod that no node takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stranded {
    /// When it has waited long enough.
    pub(crate) at: Timestamp,
    /// What is said then.
    pub(crate) why: String,
}

/// See the module. Few pods are in it.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pods: BTreeMap<Key, (Key, Stranded)>,
}

impl Waiting {
    /// A pod as it is now; none if it is gone. The clones that it is news for.
    pub(super) fn see(&mut self, key: &Key, pod: Option<&Pod>) -> Vec<Key> {
        let now = pod.and_then(|pod| Some((super::workload_of(pod)?, stranded(key, pod)?)));
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

    /// The pod of a clone that has waited longest.
    pub(super) fn of(&self, clone: &Key) -> Option<Stranded> {
        let own = self.pods.values().filter(|(one, _)| one == clone);
        own.map(|(_, stranded)| stranded).min_by_key(|one| one.at).cloned()
    }
}

/// What the scheduler says of a pod that it finds no node for.
fn stranded(key: &Key, pod: &Pod) -> Option<Stranded> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let said = conditions.iter().find(|one| one.type_ == "PodScheduled")?;
    let waits = said.status == "False" && said.reason.as_deref() == Some(UNSCHEDULABLE);
    let since = said.last_transition_time.as_ref().filter(|_| waits)?;
    let (name, seconds) = (&key.name, PATIENCE.as_secs());
    let message = said.message.as_deref().unwrap_or_default();
    let why = format!("no node took pod {name} for {seconds}s: {message}");
    Some(Stranded { at: after(since.0, PATIENCE), why })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: &str, reason: &str, second: u8) -> Pod {
        object(&json!({"conditions": [{
            "type": "PodScheduled", "status": status, "reason": reason, "message": "0/1 nodes",
            "lastTransitionTime": format!("2026-01-01T00:00:{second:02}Z"),
        }]}))
    }

    fn object(status: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "namespace": "ns",
                "labels": {"kueue.x-k8s.io/multikueue-worker-workload-pod": "true"},
                "annotations": {"kueue.x-k8s.io/workload": "clone"},
            },
            "status": status,
        }))
        .expect("a pod")
    }

    fn key(name: &str) -> Key {
        Key { namespace: Some("ns".into()), name: name.into() }
    }

    #[test]
    fn the_pod_that_has_waited_longest_counts_until_it_has_a_node() {
        let (clone, mut waiting) = (key("clone"), Waiting::default());
        let news = [key("clone")];
        let late = pod("False", "Unschedulable", 9);
        assert_eq!(waiting.see(&key("b"), Some(&late)), news);
        assert_eq!(waiting.see(&key("b"), Some(&late)), [], "no news");
        waiting.see(&key("a"), Some(&pod("False", "Unschedulable", 5)));
        waiting.see(&key("c"), Some(&pod("False", "SchedulingGated", 1)));
        let told = waiting.of(&clone).expect("one waits");
        assert_eq!(told.at.to_string(), "2026-01-01T00:01:05Z");
        assert_eq!(told.why, "no node took pod a for 60s: 0/1 nodes");
        assert_eq!(waiting.see(&key("a"), Some(&pod("True", "", 30))), news);
        assert_eq!(
            waiting.of(&clone).map(|one| one.at.to_string()).as_deref(),
            Some("2026-01-01T00:01:09Z")
        );
        waiting.see(&key("b"), None);
        assert_eq!(waiting.of(&clone), None);
    }
}
