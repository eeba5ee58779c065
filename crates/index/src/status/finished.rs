//! The condition Finished. Source: docs/reference/kueue.md §2.1.

use crds::names::conditions;
use crds::v1beta2::WorkloadStatus;

use super::condition::{self, NewCondition};
use super::status_stamp::StatusStamp;

/// Message of a workload slice that is replaced by the slice with this uid, of the job with `job_uid`.
#[must_use]
pub fn replacement_message(uid: &str, job_uid: &str) -> String {
    format!(
        "Replaced to accommodate a workload (UID: {uid}, JobUID: {job_uid}) due to workload slice aggregation"
    )
}

/// Sets Finished. A Workload that is finished already keeps its reason.
#[must_use]
pub fn finished(
    mut status: WorkloadStatus,
    reason: &str,
    message: &str,
    at: StatusStamp,
) -> WorkloadStatus {
    // Finished is final: a later result of the job does not replace the first.
    if !crds::meta::is_true(&status.conditions, conditions::FINISHED) {
        condition::set(
            &mut status.conditions,
            NewCondition { kind: conditions::FINISHED, status: true, reason, message },
            at,
        );
    }
    status
}
