//! The states of admission checks. Source: docs/reference/kueue.md §2.3, docs/reference/multikueue.md §1.5.

use crds::v1beta2::{AdmissionCheckState, WorkloadStatus};

use super::message::for_condition;
use super::{StatusStamp, admitted};
use crate::time::to_seconds;

pub(super) const PENDING: &str = "Pending";
pub(super) const READY: &str = "Ready";
pub(super) const RETRY: &str = "Retry";
const REJECTED: &str = "Rejected";

/// Keeps the list of checks in line with what the queue requires: new ones are pending, obsolete ones go.
#[must_use]
pub fn with_checks(
    mut status: WorkloadStatus,
    required: &[String],
    at: StatusStamp,
) -> WorkloadStatus {
    require(&mut status, required, at);
    if status.admission.is_some() {
        admitted::sync(&mut status, at);
    }
    status
}

/// A check asks to start over: the Workload is to be evicted and its checks done again.
#[must_use]
pub fn check_retry(
    mut status: WorkloadStatus,
    check: &str,
    message: &str,
    at: StatusStamp,
) -> WorkloadStatus {
    set(&mut status, check, RETRY, message, at);
    status
}

/// A check cannot be passed: the Workload is to be deactivated.
#[must_use]
pub fn check_rejected(
    mut status: WorkloadStatus,
    check: &str,
    message: &str,
    at: StatusStamp,
) -> WorkloadStatus {
    set(&mut status, check, REJECTED, message, at);
    status
}

pub(super) fn require(status: &mut WorkloadStatus, required: &[String], at: StatusStamp) {
    let checks = &mut status.admission_checks;
    checks.retain(|one| required.contains(&one.name));
    for name in required {
        if !checks.iter().any(|one| one.name == *name) {
            checks.push(AdmissionCheckState {
                name: name.clone(),
                state: PENDING.to_owned(),
                last_transition_time: Some(to_seconds(at.now)),
                ..AdmissionCheckState::default()
            });
        }
    }
}

/// Sets the state of a check that the Workload has.
pub(super) fn set(
    status: &mut WorkloadStatus,
    check: &str,
    state: &str,
    message: &str,
    at: StatusStamp,
) {
    let Some(one) = status.admission_checks.iter_mut().find(|one| one.name == check) else {
        return;
    };
    if one.state != state {
        state.clone_into(&mut one.state);
        one.last_transition_time = Some(to_seconds(at.now));
    }
    one.message = for_condition(message).into_owned();
}

/// Checks begin anew after an eviction. What they had to say about pods is void; a check that asked to start over
/// counts it.
pub(super) fn reset(status: &mut WorkloadStatus, at: StatusStamp) {
    for one in status.admission_checks.iter_mut().filter(|one| one.state != PENDING) {
        let retries = one.retry_count.unwrap_or(0).saturating_add(1);
        *one = AdmissionCheckState {
            last_transition_time: Some(to_seconds(at.now)),
            message: format!("Reset to Pending after eviction. Previously: {}", one.state),
            name: std::mem::take(&mut one.name),
            requeue_after_seconds: one.requeue_after_seconds,
            retry_count: (one.state == RETRY).then_some(retries),
            state: PENDING.to_owned(),
            pod_set_updates: Vec::new(),
        };
    }
}
