//! Field ownership of the field manager `kueue-admission`: the payload of a server-side apply.
//!
//! Fields of other managers are left out; applying them would take the ownership. Source: docs/reference/kueue.md
//! §2.6.

use crds::names::conditions;
use crds::v1beta2::{RequeueState, Workload, WorkloadStatus};
use serde_json::{Value, json};

/// Owned conditions.
const CONDITIONS: &[&str] = &[
    conditions::QUOTA_RESERVED,
    conditions::BLOCKED_ON_PREEMPTION_GATES,
    conditions::EVICTED,
    conditions::ADMITTED,
    conditions::PREEMPTED,
    conditions::REQUEUED,
    conditions::DEACTIVATION_TARGET,
    conditions::FINISHED,
    conditions::PODS_READY,
    conditions::WAITING_FOR_REPLACEMENT_PODS,
    // Our own: an agent and a manager write it together with the others.
    conditions::PODS_FAILING,
];

/// The fields that are applied for a status in place of that of the Workload.
#[must_use]
pub fn applied_fields(workload: &Workload, status: &WorkloadStatus) -> Value {
    // Fields of other managers stay out, e.g. reclaimablePods: this apply would take them over.
    let mut owned = json!(owned_fields(status.clone()));
    let nominated = |status: &WorkloadStatus| !status.nominated_cluster_names.is_empty();
    // A field that is left out stays if another field manager has applied it, as an external dispatcher does
    // (docs/reference/multikueue.md §1.10).
    if nominated(&workload.status) && !nominated(status) {
        owned["nominatedClusterNames"] = json!([]);
    }
    owned
}

/// An apply of status fields to the observed version of a Workload.
#[must_use]
pub fn status_apply(workload: &Workload, fields: &Value) -> Value {
    let metadata = &workload.metadata;
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        },
        "status": fields,
    })
}

/// The owned fields of a status. `resourceRequests` is owned only while no quota is reserved.
pub(super) fn owned_fields(mut status: WorkloadStatus) -> WorkloadStatus {
    status.conditions.retain(|one| CONDITIONS.contains(&one.r#type.as_str()));
    // Owned by `kueue-reclaimable-pods` (§2.6).
    status.reclaimable_pods = Vec::new();
    if status.admission.is_some() {
        status.resource_requests = Vec::new();
    }
    // An empty object would be applied as a field of its own.
    status.requeue_state = status.requeue_state.filter(|one| **one != RequeueState::default());
    status
}
