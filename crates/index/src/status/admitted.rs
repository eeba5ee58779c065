//! The condition Admitted, which follows from quota, check states and delayed topology requests.
//!
//! Admitted time accumulates towards the maximum execution time. Source: docs/reference/kueue.md §2.1, §2.2.

use crds::meta::Condition;
use crds::names::{conditions, reasons};
use crds::v1beta2::{PodSetAssignment, WorkloadStatus};

use super::condition::{self, NewCondition};
use super::status_stamp::StatusStamp;

pub(super) const READY: &str = "Ready";
pub(super) const PENDING: &str = "Pending";

/// Sets Admitted to true if nothing is missing, and to false if a topology is all that is missing; otherwise returns the status
/// unchanged.
#[must_use]
pub fn admitted(mut status: WorkloadStatus, at: StatusStamp) -> WorkloadStatus {
    let topology = reasons::PENDING_DELAYED_TOPOLOGY_REQUESTS;
    if missing(&status).is_none_or(|(reason, _)| reason == topology) {
        sync(&mut status, at);
    }
    status
}

/// Updates Admitted to match the rest of the status.
pub(super) fn sync(status: &mut WorkloadStatus, at: StatusStamp) {
    let old = condition::find(&status.conditions, conditions::ADMITTED);
    let was = old.is_some_and(|one| one.status == "True");
    let Some((reason, message)) = missing(status) else {
        let message = "The workload is admitted";
        return condition::set(
            &mut status.conditions,
            NewCondition {
                kind: conditions::ADMITTED,
                status: true,
                reason: reasons::ADMITTED,
                message,
            },
            at,
        );
    };
    // Only admitted time counts towards the maximum execution time (§2.4).
    if was {
        accumulate(status, at);
    }
    condition::set(
        &mut status.conditions,
        NewCondition { kind: conditions::ADMITTED, status: false, reason, message },
        at,
    );
}

/// Reason and message of the first missing part.
fn missing(status: &WorkloadStatus) -> Option<(&'static str, &'static str)> {
    let reserved = condition::find(&status.conditions, conditions::QUOTA_RESERVED);
    if status.admission.is_none() || reserved.is_none_or(|one| one.status != "True") {
        Some((reasons::NO_RESERVATION, "The workload has no reservation"))
    } else if status.admission_checks.iter().any(|check| check.state != READY) {
        let message = "The workload has not all checks ready";
        Some((reasons::UNSATISFIED_ADMISSION_CHECKS, message))
    } else if assignments(status).any(awaits_topology) {
        let message = "There are pending delayed topology requests";
        Some((reasons::PENDING_DELAYED_TOPOLOGY_REQUESTS, message))
    } else {
        None
    }
}

fn assignments(status: &WorkloadStatus) -> impl Iterator<Item = &PodSetAssignment> {
    status.admission.iter().flat_map(|one| &one.pod_set_assignments)
}

/// Whether the topology of a pod set is still to be assigned.
pub(crate) fn awaits_topology(assignment: &PodSetAssignment) -> bool {
    // An assignment that is there already waits for nothing, whatever the request says.
    assignment.topology_assignment.is_none()
        && assignment.delayed_topology_request.as_deref() == Some(PENDING)
}

fn accumulate(status: &mut WorkloadStatus, at: StatusStamp) {
    let since = condition::find(&status.conditions, conditions::ADMITTED)
        .and_then(Condition::transitioned_at)
        .unwrap_or(at.now);
    let seconds = (at.now.as_second() - since.as_second()).max(0);
    let past = i64::from(status.accumulated_past_execution_time_seconds.unwrap_or(0));
    let sum = i32::try_from(past.saturating_add(seconds)).unwrap_or(i32::MAX);
    status.accumulated_past_execution_time_seconds = Some(sum);
}
