//! A Workload is over. Source: spec/kueue-core.md §2.1.

use crds::names::conditions;
use crds::v1beta2::WorkloadStatus;

use super::{At, condition};

/// The status of a Workload that is over. Over is over: a second reason changes nothing.
#[must_use]
pub fn finished(mut status: WorkloadStatus, reason: &str, message: &str, at: At) -> WorkloadStatus {
    if !crds::meta::is_true(&status.conditions, conditions::FINISHED) {
        condition::set(&mut status.conditions, conditions::FINISHED, true, reason, message, at);
    }
    status
}
