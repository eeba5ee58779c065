//! What keeps a Workload pending before any cycle: reason and message of QuotaReserved for its admission gates and for an
//! inactive queue.
//!
//! Source: docs/reference/kueue.md §2.1, §4.2; the texts are Kueue's.

use crds::names::reasons;
use crds::v1beta2::Workload;

use crate::active_condition::QueueActiveCondition;
use crate::config::IndexConfig;
use crate::indexed_objects::IndexedLocalQueue;
use crate::workload::admission_gates;

/// How the message begins that names admission gates.
pub const GATED_BY: &str = "Admission is gated by: ";

/// The message that names the admission gates of a Workload; `None` without gates, and in agent mode.
pub(crate) fn gate_message(config: &IndexConfig, workload: &Workload) -> Option<String> {
    let gates = admission_gates(config, workload);
    let gates = gates.filter(|_| !config.has_internal_queue())?;
    Some(format!("{GATED_BY}{gates}"))
}

/// Reason and message of a missing or inactive queue; `None` if both queues are active. `cluster_queue` has the condition of one.
pub(crate) fn inactive_queue(
    name: &str,
    queue: Option<&IndexedLocalQueue>,
    cluster_queue: impl FnOnce(&str) -> Option<QueueActiveCondition>,
) -> Option<(&'static str, String)> {
    let Some(queue) = queue else {
        return Some((reasons::MISCONFIGURED, format!("LocalQueue {name} doesn't exist")));
    };
    if queue.stopped {
        return Some((reasons::SUSPENDED, format!("LocalQueue {name} is inactive")));
    }
    let target = &queue.cluster_queue;
    match cluster_queue(target) {
        None => Some((reasons::MISCONFIGURED, format!("ClusterQueue {target} doesn't exist"))),
        Some(one) if !one.active => {
            Some((reasons::SUSPENDED, format!("ClusterQueue {target} is inactive")))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use engine::Names;
    use serde_json::{Value, json};

    use super::*;
    use crate::index::Index;

    fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).expect("an object")
    }

    #[test]
    fn admission_gates_come_before_the_queue() {
        let index = Index::new(IndexConfig { admission_gated_by: true, ..IndexConfig::default() });
        let gated = |gates: &str| {
            let annotations = json!({"kueue.x-k8s.io/admission-gated-by": gates});
            let metadata = json!({"namespace": "ns", "annotations": annotations});
            let workload: Workload =
                from(json!({"metadata": metadata, "spec": {"queueName": "lq"}}));
            index.blocker(&workload).map(|(reason, message)| format!("{reason}: {message}"))
        };
        assert_eq!(
            gated("a.b/c,a.b/d").as_deref(),
            Some("AdmissionGated: Admission is gated by: a.b/c,a.b/d")
        );
        assert_eq!(gated("").as_deref(), Some("Misconfigured: LocalQueue lq doesn't exist"));
    }

    #[test]
    fn the_first_inactive_queue_gives_the_reason() {
        let (mut names, mut index) = (Names::default(), Index::new(IndexConfig::default()));
        let workload: Workload =
            from(json!({"metadata": {"namespace": "ns"}, "spec": {"queueName": "lq"}}));
        let said = |index: &Index| {
            index.blocker(&workload).map(|(reason, message)| format!("{reason}: {message}"))
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
