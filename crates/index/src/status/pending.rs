//! A pending Workload: the condition QuotaReserved=False. Source: docs/reference/kueue.md §2.1.

use crds::names::{conditions, reasons};
use crds::v1beta2::{PodSetRequest, WorkloadStatus};

use super::status_stamp::StatusStamp;
use super::{admitted, condition};

/// Sets QuotaReserved to false with a reason. `requests` becomes `status.resourceRequests`.
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

/// The same for a Workload whose preemption gate is closed: also sets BlockedOnPreemptionGates until quota is
/// reserved or the Workload is evicted.
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

/// Sets QuotaReserved to false and removes the admission.
pub(super) fn give_up(status: &mut WorkloadStatus, reason: &str, message: &str, at: StatusStamp) {
    let all = &mut status.conditions;
    condition::set(all, conditions::QUOTA_RESERVED, false, reason, message, at);
    status.admission = None;
    admitted::sync(status, at);
}
