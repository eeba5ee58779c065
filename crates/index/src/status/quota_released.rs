//! Quota is given back: after an eviction, or because no cluster takes the Workload.
//!
//! Source: docs/reference/kueue.md §2.2, §2.4 (last column: who may queue again at once).

use crds::names::{conditions, reasons};
use crds::v1beta2::WorkloadStatus;

use super::pending::give_up;
use super::{StatusStamp, check_states, condition};

/// The pods of an evicted Workload are gone. What the eviction said stays the reason to wait; victims of preemption and
/// of failed nodes queue again at once, others when they are told.
#[must_use]
pub fn quota_released(mut status: WorkloadStatus, at: StatusStamp) -> WorkloadStatus {
    let evicted = condition::find(&status.conditions, conditions::EVICTED).cloned();
    let (reason, message) = evicted.map(|one| (one.reason, one.message)).unwrap_or_default();
    if !reason.is_empty() {
        let at_once = matches!(reason.as_str(), reasons::PREEMPTED | reasons::NODE_FAILURES);
        let all = &mut status.conditions;
        condition::set(all, conditions::REQUEUED, at_once, &reason, &message, at);
    }
    // A check may have asked to start over while the pods were stopping.
    check_states::reset(&mut status, at);
    give_up(&mut status, reasons::PENDING_EVALUATION, &message, at);
    forget_clusters(&mut status);
    if reason.ends_with(reasons::MAXIMUM_EXECUTION_TIME_EXCEEDED) {
        // Whoever switches it on again gives it all of its time anew.
        status.accumulated_past_execution_time_seconds = None;
    }
    status
}

/// No cluster takes the Workload after all: it drops its reservation and queues again. Nothing of it runs anywhere, so
/// this is no eviction.
#[must_use]
pub fn nomination_cancelled(
    mut status: WorkloadStatus,
    message: &str,
    at: StatusStamp,
) -> WorkloadStatus {
    check_states::reset(&mut status, at);
    give_up(&mut status, reasons::WAITING_FOR_QUOTA, message, at);
    forget_clusters(&mut status);
    status
}

fn forget_clusters(status: &mut WorkloadStatus) {
    status.cluster_name = None;
    status.nominated_cluster_names = Vec::new();
}
