//! A Workload is over. Source: docs/reference/kueue.md §2.1.

use crds::names::conditions;
use crds::v1beta2::WorkloadStatus;

use super::{StatusStamp, condition};

/// For whom an old slice makes place: the new slice's uid and that of its job.
#[must_use]
pub fn replacement_message(uid: &str, job_uid: &str) -> String {
    format!(
        "Replaced to accommodate a workload (UID: {uid}, JobUID: {job_uid}) due to workload slice aggregation"
    )
}

/// The status of a Workload that is over. Over is over: a second reason changes nothing.
#[must_use]
pub fn finished(
    mut status: WorkloadStatus,
    reason: &str,
    message: &str,
    at: StatusStamp,
) -> WorkloadStatus {
    if !crds::meta::is_true(&status.conditions, conditions::FINISHED) {
        condition::set(&mut status.conditions, conditions::FINISHED, true, reason, message, at);
    }
    status
}
