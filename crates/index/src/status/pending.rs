//! A Workload waits, and says what for. Source: spec/kueue-core.md §2.1.

use crds::names::conditions;
use crds::v1beta2::{PodSetRequest, WorkloadStatus};

use super::{At, admitted, condition};

/// The status of a Workload without quota. `requests` is what it asks for.
#[must_use]
pub fn pending(
    mut status: WorkloadStatus,
    reason: &str,
    message: &str,
    requests: Vec<PodSetRequest>,
    at: At,
) -> WorkloadStatus {
    give_up(&mut status, reason, message, at);
    status.resource_requests = requests;
    status
}

/// Drops the reservation, if there is one, and with it the admission.
pub(super) fn give_up(status: &mut WorkloadStatus, reason: &str, message: &str, at: At) {
    let all = &mut status.conditions;
    condition::set(all, conditions::QUOTA_RESERVED, false, reason, message, at);
    status.admission = None;
    admitted::sync(status, at);
}
