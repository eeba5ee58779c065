//! What the field manager `kueue-admission` owns of a status: the payload of a server-side apply.
//!
//! What others own must not be in it, or applying it would take it from them. Source: docs/reference/kueue.md §2.6.

use crds::names::conditions;
use crds::v1beta2::{RequeueState, WorkloadStatus};

/// The conditions that are owned.
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
];

/// The owned part of a status. What a Workload asks for is shown only while it holds nothing.
#[must_use]
pub fn owned_fields(mut status: WorkloadStatus) -> WorkloadStatus {
    status.conditions.retain(|one| CONDITIONS.contains(&one.r#type.as_str()));
    status.reclaimable_pods = Vec::new();
    if status.admission.is_some() {
        status.resource_requests = Vec::new();
    }
    status.requeue_state = status.requeue_state.filter(|one| *one != RequeueState::default());
    status
}
