//! States of admission checks: Pending, Ready, Retry, Rejected. Source: docs/reference/kueue.md §2.3,
//! docs/reference/multikueue.md §1.5.

use crds::v1beta2::{AdmissionCheckState, WorkloadStatus};

use super::admitted;
use super::message::for_condition;
use super::status_stamp::StatusStamp;
use crate::time::to_seconds;

pub(super) const PENDING: &str = "Pending";
pub(super) const READY: &str = "Ready";
pub(super) const RETRY: &str = "Retry";
const REJECTED: &str = "Rejected";

/// Updates the list of check states to the required checks: adds new ones as Pending, removes obsolete ones.
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

/// Sets a check to Retry: the Workload has to be evicted and its checks repeated.
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

/// Sets a check to Rejected: the Workload has to be deactivated.
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

/// Sets the state of a check, if the Workload has it.
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

/// Resets the check states after an eviction: removes pod set updates, and counts a Retry.
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
