//! The condition `sluice.dev/PodsFailing`: pods cannot start (docs/reference/dispatch.md §4).

use crds::meta::is_true;
use crds::names::{conditions::PODS_FAILING, reasons};
use crds::v1beta2::WorkloadStatus;

use super::condition::{self, NewCondition};
use super::status_stamp::StatusStamp;

/// Shows why pods cannot start. The kubelet alternates between reasons of one cause and rewords its message with each
/// attempt; a cause that is shown already stays as it is.
#[must_use]
pub fn pods_failing(
    mut status: WorkloadStatus,
    reason: &str,
    message: &str,
    at: StatusStamp,
) -> WorkloadStatus {
    let shown = condition::find(&status.conditions, PODS_FAILING);
    let known = shown.is_some_and(|one| one.status == "True" && is_same_cause(&one.reason, reason));
    if !known {
        condition::set(
            &mut status.conditions,
            NewCondition { kind: PODS_FAILING, status: true, reason, message },
            at,
        );
    }
    status
}

/// Sets the condition to false, where it is true. Reason and message stay: they say what failed last.
#[must_use]
pub fn pods_not_failing(mut status: WorkloadStatus, at: StatusStamp) -> WorkloadStatus {
    let shown = condition::find(&status.conditions, PODS_FAILING).cloned();
    if let Some(shown) = shown.filter(|_| is_true(&status.conditions, PODS_FAILING)) {
        let (reason, message) = (&shown.reason, &shown.message);
        condition::set(
            &mut status.conditions,
            NewCondition { kind: PODS_FAILING, status: false, reason, message },
            at,
        );
    }
    status
}

fn is_same_cause(one: &str, other: &str) -> bool {
    let pulls = |reason| matches!(reason, reasons::ERR_IMAGE_PULL | reasons::IMAGE_PULL_BACK_OFF);
    one == other || (pulls(one) && pulls(other))
}
