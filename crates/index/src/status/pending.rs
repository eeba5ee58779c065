//! A Workload waits, and says what for. Source: docs/reference/kueue.md §2.1.

use crds::names::{conditions, reasons};
use crds::v1beta2::{PodSetRequest, WorkloadStatus};

use super::{StatusStamp, admitted, condition};

/// The status of a Workload without quota. `requests` is what it asks for.
#[must_use]
pub fn pending(
    mut status: WorkloadStatus,
    reason: &str,
    message: &str,
    requests: Vec<PodSetRequest>,
    at: StatusStamp,
) -> WorkloadStatus {
    give_up(&mut status, reason, message, at);
    status.resource_requests = requests;
    status
}

/// The status of a Workload that would have to preempt and must not. It says so until it gets quota or is evicted.
#[must_use]
pub fn gated(
    status: WorkloadStatus,
    reason: &str,
    message: &str,
    requests: Vec<PodSetRequest>,
    at: StatusStamp,
) -> WorkloadStatus {
    let mut status = pending(status, reason, message, requests, at);
    let (r#type, gated) = (conditions::BLOCKED_ON_PREEMPTION_GATES, reasons::PREEMPTION_GATED);
    condition::set(&mut status.conditions, r#type, true, gated, message, at);
    status
}

/// Drops the reservation, if there is one, and with it the admission.
pub(super) fn give_up(status: &mut WorkloadStatus, reason: &str, message: &str, at: StatusStamp) {
    let all = &mut status.conditions;
    condition::set(all, conditions::QUOTA_RESERVED, false, reason, message, at);
    status.admission = None;
    admitted::sync(status, at);
}
