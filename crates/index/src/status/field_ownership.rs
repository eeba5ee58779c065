//! Field ownership of the field manager `kueue-admission`: the payload of a server-side apply.
//!
//! Fields of other managers are left out; applying them would take the ownership. Source: docs/reference/kueue.md
//! §2.6.

use crds::names::conditions;
use crds::v1beta2::{RequeueState, WorkloadStatus};

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

/// The owned fields of a status. `resourceRequests` is owned only while no quota is reserved.
#[must_use]
pub fn owned_fields(mut status: WorkloadStatus) -> WorkloadStatus {
    status.conditions.retain(|one| CONDITIONS.contains(&one.r#type.as_str()));
    // Owned by `kueue-reclaimable-pods` (§2.6).
    status.reclaimable_pods = Vec::new();
    if status.admission.is_some() {
        status.resource_requests = Vec::new();
    }
    // An empty object would be applied as a field of its own.
    status.requeue_state = status.requeue_state.filter(|one| *one != RequeueState::default());
    status
}
