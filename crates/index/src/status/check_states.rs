//! States of admission checks: Pending, Ready, Retry, Rejected. Source: docs/reference/kueue.md §2.3,
//! docs/reference/multikueue.md §1.5.

use crds::meta::is_true;
use crds::names::conditions;
use crds::v1beta2::{AdmissionCheckState, WorkloadStatus};

use jiff::{SignedDuration, Timestamp};

use super::admitted;
use super::message::for_condition;
use super::status_stamp::StatusStamp;
use crate::time::to_seconds;

pub(super) use crds::names::check_states::{PENDING, READY};
pub use crds::names::check_states::{REJECTED, RETRY};

/// Updates the list of check states to the required checks: adds new ones as Pending, removes obsolete ones. An admitted
/// Workload stays admitted beside a new check (§2.5 row 9).
#[must_use]
pub fn with_checks(
    mut status: WorkloadStatus,
    required: &[String],
    at: StatusStamp,
) -> WorkloadStatus {
    let before = status.admission_checks.clone();
    sync_required(&mut status, required, at);
    if status.admission_checks == before {
        return status;
    }
    // Without quota the checks do not decide about Admitted.
    if status.admission.is_some() && !is_true(&status.conditions, conditions::ADMITTED) {
        admitted::sync(&mut status, at);
    }
    status
}

/// Whether a status lists the required checks and no others.
#[must_use]
pub fn lists_checks(status: &WorkloadStatus, required: &[String]) -> bool {
    let listed = |name: &String| status.admission_checks.iter().any(|one| one.name == *name);
    status.admission_checks.len() == required.len() && required.iter().all(listed)
}

/// Sets the state of a check, its message and what it adds to the pods. Retries that were counted stay.
#[must_use]
pub fn with_check_state(
    mut status: WorkloadStatus,
    next: AdmissionCheckState,
    at: StatusStamp,
) -> WorkloadStatus {
    set(&mut status, &next.name, &next.state, &next.message, at);
    if let Some(one) = status.admission_checks.iter_mut().find(|one| one.name == next.name) {
        one.pod_set_updates = next.pod_set_updates;
        one.requeue_after_seconds = next.requeue_after_seconds;
    }
    status
}

/// Sets a check to Retry: the Workload has to be evicted and its checks repeated.
#[must_use]
pub fn with_check_retry(
    mut status: WorkloadStatus,
    check: &str,
    message: &str,
    at: StatusStamp,
) -> WorkloadStatus {
    set(&mut status, check, RETRY, message, at);
    status
}

/// Sets the message of a check that is Ready, and nothing else.
#[must_use]
pub fn with_ready_message(status: WorkloadStatus, check: &str, message: &str) -> WorkloadStatus {
    with_message(status, (check, READY), message)
}

/// Sets the message of a check that is Pending, and nothing else.
#[must_use]
pub fn with_pending_message(status: WorkloadStatus, check: &str, message: &str) -> WorkloadStatus {
    with_message(status, (check, PENDING), message)
}

fn with_message(
    mut status: WorkloadStatus,
    (check, state): (&str, &str),
    message: &str,
) -> WorkloadStatus {
    let mut checks = status.admission_checks.iter_mut();
    if let Some(one) = checks.find(|one| one.name == check && one.state == state) {
        one.message = for_condition(message).into_owned();
    }
    status
}

/// Sets a check to Rejected: the Workload has to be deactivated.
#[must_use]
pub fn with_check_rejected(
    mut status: WorkloadStatus,
    check: &str,
    message: &str,
    at: StatusStamp,
) -> WorkloadStatus {
    set(&mut status, check, REJECTED, message, at);
    status
}

/// When the checks in Retry let the Workload queue again: the latest of their transitions plus `requeueAfterSeconds`.
#[must_use]
pub fn retry_at(status: &WorkloadStatus) -> Option<Timestamp> {
    let retries = status.admission_checks.iter().filter(|one| one.state == RETRY);
    let ends = retries.filter_map(|one| {
        let since = one.last_transition_time.as_ref()?;
        let seconds = one.requeue_after_seconds?;
        // A time beyond the last one that exists is no time to wait for.
        since.0.checked_add(SignedDuration::from_secs(seconds.into())).ok()
    });
    ends.max()
}

/// The checks in a state by name, with the messages that they have, as conditions and Events name them; `None` if no check is
/// in it.
#[must_use]
pub fn checks_in_state(status: &WorkloadStatus, state: &str) -> Option<String> {
    let checks = status.admission_checks.iter().filter(|one| one.state == state);
    let mut checks: Vec<&AdmissionCheckState> = checks.collect();
    checks.sort_by(|one, other| one.name.cmp(&other.name));
    let named = checks.iter().map(|one| match &*one.message {
        "" => format!("{:?}", one.name),
        message => format!("{:?} ({message})", one.name),
    });
    let named: Vec<String> = named.collect();
    let noun = if named.len() == 1 { "AdmissionCheck" } else { "AdmissionChecks" };
    (!named.is_empty()).then(|| format!("{noun} in {state} state: {}", named.join("; ")))
}

pub(super) fn sync_required(status: &mut WorkloadStatus, required: &[String], at: StatusStamp) {
    let checks = &mut status.admission_checks;
    // Assigned flavors may need fewer checks than were required before (§2.3).
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
    // The transition time is that of the state; a new message alone keeps it.
    if one.state != state {
        state.clone_into(&mut one.state);
        one.last_transition_time = Some(to_seconds(at.now));
    }
    one.message = for_condition(message).into_owned();
}

/// Resets the checks in Retry of a Workload that nothing evicts: it has no quota, and its delay is over.
#[must_use]
pub fn with_retries_reset(mut status: WorkloadStatus, at: StatusStamp) -> WorkloadStatus {
    let retries = status.admission_checks.iter_mut().filter(|one| one.state == RETRY);
    retries.for_each(|one| reset_one(one, "its delay", at));
    status
}

/// Resets the check states after an eviction: removes pod set updates, and counts a Retry.
pub(super) fn reset(status: &mut WorkloadStatus, at: StatusStamp) {
    let decided = status.admission_checks.iter_mut().filter(|one| one.state != PENDING);
    decided.for_each(|one| reset_one(one, "eviction", at));
}

fn reset_one(one: &mut AdmissionCheckState, cause: &str, at: StatusStamp) {
    // Only a Retry counts as an attempt. After a Rejected check the attempts that were counted stay, as the field manager of
    // a check keeps them at upstream; a Ready one starts again from none.
    let retry_count = match one.state.as_str() {
        RETRY => Some(one.retry_count.unwrap_or(0).saturating_add(1)),
        REJECTED => one.retry_count,
        _ => None,
    };
    *one = AdmissionCheckState {
        last_transition_time: Some(to_seconds(at.now)),
        message: format!("Reset to Pending after {cause}. Previously: {}", one.state),
        name: std::mem::take(&mut one.name),
        requeue_after_seconds: one.requeue_after_seconds,
        retry_count,
        state: PENDING.to_owned(),
        pod_set_updates: Vec::new(),
    };
}
