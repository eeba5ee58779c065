//! A pending Workload: the condition QuotaReserved=False. Source: docs/reference/kueue.md §2.1.

use crds::names::{conditions, reasons};
use crds::v1beta2::{PodSetRequest, WorkloadStatus};

use super::condition::NewCondition;
use super::status_stamp::StatusStamp;
use super::{admitted, condition};

/// Why a Workload is pending.
#[derive(Debug, Clone, Default)]
pub struct PendingCause<'a> {
    /// Reason of QuotaReserved=False.
    pub reason: &'a str,
    /// Its message.
    pub message: &'a str,
    /// What becomes `status.resourceRequests`.
    pub requests: Vec<PodSetRequest>,
}

impl<'a> PendingCause<'a> {
    /// Without requests: no cycle counts them.
    #[must_use]
    pub fn new(reason: &'a str, message: &'a str) -> Self {
        Self { reason, message, requests: Vec::new() }
    }
}

/// Sets QuotaReserved to false with a reason.
#[must_use]
pub fn pending(
    mut status: WorkloadStatus,
    cause: PendingCause<'_>,
    at: StatusStamp,
) -> WorkloadStatus {
    give_up(&mut status, cause.reason, cause.message, at);
    status.resource_requests = cause.requests;
    status
}

/// The same for a Workload whose preemption gate is closed: also sets BlockedOnPreemptionGates until quota is
/// reserved or the Workload is evicted.
#[must_use]
pub fn gated(status: WorkloadStatus, cause: PendingCause<'_>, at: StatusStamp) -> WorkloadStatus {
    let blocked = NewCondition {
        kind: conditions::BLOCKED_ON_PREEMPTION_GATES,
        status: true,
        reason: reasons::PREEMPTION_GATED,
        message: cause.message,
    };
    let mut status = pending(status, cause, at);
    condition::set(&mut status.conditions, blocked, at);
    status
}

/// Sets QuotaReserved to false and removes the admission.
pub(super) fn give_up(status: &mut WorkloadStatus, reason: &str, message: &str, at: StatusStamp) {
    let all = &mut status.conditions;
    condition::set(
        all,
        NewCondition { kind: conditions::QUOTA_RESERVED, status: false, reason, message },
        at,
    );
    status.admission = None;
    admitted::sync(status, at);
}
