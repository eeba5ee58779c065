//! Deactivation: the condition DeactivationTarget, then `spec.active` is set to false by another write, then the
//! eviction.
//!
//! Source: docs/reference/kueue.md §2.2, §2.4.

use crds::names::{conditions, reasons};
use crds::v1beta2::WorkloadStatus;

use super::condition::NewCondition;
use super::evicted::{Eviction, evicted};
use super::status_stamp::StatusStamp;
use super::{condition, pending};

const MESSAGE: &str = "The workload is deactivated";

/// Sets DeactivationTarget with its reason.
#[must_use]
pub fn deactivation_target(
    mut status: WorkloadStatus,
    reason: &str,
    message: &str,
    at: StatusStamp,
) -> WorkloadStatus {
    let all = &mut status.conditions;
    condition::set(
        all,
        NewCondition { kind: conditions::DEACTIVATION_TARGET, status: true, reason, message },
        at,
    );
    // Of the time that was too long only the last run counts from now on.
    if reason == reasons::MAXIMUM_EXECUTION_TIME_EXCEEDED {
        status.accumulated_past_execution_time_seconds = None;
    }
    status
}

/// The status of a deactivated Workload without quota: the reason to be pending, and no requeue backoff.
#[must_use]
pub fn deactivated_without_quota(mut status: WorkloadStatus, at: StatusStamp) -> WorkloadStatus {
    // After a reactivation the backoff starts again from the first step (§2.4).
    status.requeue_state = None;
    pending::give_up(&mut status, reasons::DEACTIVATED, MESSAGE, at);
    status
}

/// Evicts a deactivated Workload and removes the requeue backoff. DeactivationTarget stays after the maximum execution time, as
/// upstream leaves it; [`reactivated`] removes it.
#[must_use]
pub fn deactivated(mut status: WorkloadStatus, at: StatusStamp) -> WorkloadStatus {
    let (cause, message) = take_cause(&mut status);
    // After a reactivation the backoff starts again from the first step (§2.4).
    status.requeue_state = None;
    let eviction = Eviction { reason: reasons::DEACTIVATED, cause: &cause, message: &message };
    evicted(status, eviction, at)
}

/// Names the deactivation as the reason of an eviction that began before it: the Workload does not return from it by itself. It is
/// the same eviction, which was counted and has reset what it resets.
#[must_use]
pub fn with_cause_of_deactivation(mut status: WorkloadStatus, at: StatusStamp) -> WorkloadStatus {
    let (cause, message) = take_cause(&mut status);
    let eviction = Eviction { reason: reasons::DEACTIVATED, cause: &cause, message: &message };
    let reason = &eviction.condition_reason();
    condition::set(
        &mut status.conditions,
        NewCondition { kind: conditions::EVICTED, status: true, reason, message: &message },
        at,
    );
    status.requeue_state = None;
    status
}

/// Cause and message of a deactivation, from DeactivationTarget.
fn take_cause(status: &mut WorkloadStatus) -> (String, String) {
    let target = condition::find_true(&status.conditions, conditions::DEACTIVATION_TARGET).cloned();
    let (cause, message) = match target {
        Some(target) => (target.reason, format!("{MESSAGE} due to {}", target.message)),
        None => (String::new(), MESSAGE.to_owned()),
    };
    if cause != reasons::MAXIMUM_EXECUTION_TIME_EXCEEDED {
        remove_target(status);
    }
    (cause, message)
}

/// The status of a Workload that is active again and was evicted when it was deactivated. The whole maximum execution time is
/// available again: upstream deactivates such a Workload at once.
#[must_use]
pub fn reactivated(mut status: WorkloadStatus) -> WorkloadStatus {
    remove_target(&mut status);
    let evicted = condition::find(&status.conditions, conditions::EVICTED);
    if evicted.is_some_and(|one| one.reason.ends_with(reasons::MAXIMUM_EXECUTION_TIME_EXCEEDED)) {
        status.accumulated_past_execution_time_seconds = None;
    }
    status
}

/// Whether a deactivation evicted the Workload.
#[must_use]
pub fn was_deactivated(status: &WorkloadStatus) -> bool {
    condition::find(&status.conditions, conditions::EVICTED)
        .is_some_and(|one| one.status == "True" && one.reason.starts_with(reasons::DEACTIVATED))
}

fn remove_target(status: &mut WorkloadStatus) {
    status.conditions.retain(|one| one.r#type != conditions::DEACTIVATION_TARGET);
}
