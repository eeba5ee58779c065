//! The inactive queue that keeps a Workload pending: reason and message of QuotaReserved before a cycle.
//!
//! Source: docs/reference/kueue.md §2.1, §4.2; the texts are Kueue's.

use crds::names::reasons;
use crds::v1beta2::Workload;

use crate::index::Index;

impl Index {
    /// Reason and message of a missing or inactive queue; `None` if both queues are active, and in agent mode.
    #[must_use]
    pub fn inactive_queue(&self, workload: &Workload) -> Option<(&'static str, String)> {
        if self.config.agent_mode {
            return None;
        }
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        let name = &workload.spec.queue_name;
        let Some(queue) = self.local_queues.get(&format!("{namespace}/{name}")) else {
            return Some((reasons::MISCONFIGURED, format!("LocalQueue {name} doesn't exist")));
        };
        if queue.stopped {
            return Some((reasons::SUSPENDED, format!("LocalQueue {name} is inactive")));
        }
        let target = &queue.cluster_queue;
        match self.active_condition(target) {
            None => Some((reasons::MISCONFIGURED, format!("ClusterQueue {target} doesn't exist"))),
            Some(one) if !one.active => {
                Some((reasons::SUSPENDED, format!("ClusterQueue {target} is inactive")))
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::Names;
    use serde_json::{Value, json};

    use super::*;
    use crate::config::IndexConfig;

    fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).expect("an object")
    }

    #[test]
    fn the_first_inactive_queue_gives_the_reason() {
        let (mut names, mut index) = (Names::default(), Index::new(IndexConfig::default()));
        let workload: Workload =
            from(json!({"metadata": {"namespace": "ns"}, "spec": {"queueName": "lq"}}));
        let said = |index: &Index| {
            index.inactive_queue(&workload).map(|(reason, message)| format!("{reason}: {message}"))
        };
        assert_eq!(said(&index).as_deref(), Some("Misconfigured: LocalQueue lq doesn't exist"));
        for (stop, words) in [
            ("Hold", "Suspended: LocalQueue lq is inactive"),
            ("None", "Misconfigured: ClusterQueue q doesn't exist"),
        ] {
            let queue = from(json!({"spec": {"clusterQueue": "q", "stopPolicy": stop}}));
            index.local_queue(&mut names, "ns", "lq", Some(&queue));
            assert_eq!(said(&index).as_deref(), Some(words));
        }
        for (stop, words) in
            [("Hold", Some("Suspended: ClusterQueue q is inactive")), ("None", None)]
        {
            let queue = from(json!({"spec": {"stopPolicy": stop}}));
            index.cluster_queue(&mut names, "q", Some(&queue));
            assert_eq!(said(&index).as_deref(), words);
        }
    }
}
