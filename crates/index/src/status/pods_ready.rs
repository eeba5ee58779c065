//! The condition PodsReady. Source: docs/reference/kueue.md §7.6.

use crds::meta::is_true;
use crds::names::{conditions, reasons};
use crds::v1beta2::WorkloadStatus;

use super::condition::{self, NewCondition};
use super::status_stamp::StatusStamp;

const NOT_READY: &str = "Not all pods are ready or succeeded";
const FAILED: &str = "At least one pod has failed, waiting for recovery";
const READY: &str = "All pods reached readiness and the workload is running";

/// Sets PodsReady to the current readiness of the pods.
#[must_use]
pub fn pods_ready(mut status: WorkloadStatus, ready: bool, at: StatusStamp) -> WorkloadStatus {
    let admitted = is_true(&status.conditions, conditions::ADMITTED);
    let old = condition::find(&status.conditions, conditions::PODS_READY);
    let was = old.is_some_and(|one| one.status == "True");
    let recovers = old.is_some_and(|one| one.reason == reasons::WAIT_FOR_RECOVERY);
    let recovered = old.is_some_and(|one| one.reason == reasons::RECOVERED);
    let (reason, message) = match (admitted, ready) {
        (true, true) if recovers || recovered => (reasons::RECOVERED, READY),
        (true, true) => (reasons::STARTED, READY),
        (true, false) if was || recovers => (reasons::WAIT_FOR_RECOVERY, FAILED),
        (_, _) => (reasons::WAIT_FOR_START, NOT_READY),
    };
    // Ready pods do not count before the admission (docs/reference/kueue.md §7.6).
    let status_is = admitted && ready;
    condition::set(
        &mut status.conditions,
        NewCondition { kind: conditions::PODS_READY, status: status_is, reason, message },
        at,
    );
    status
}
