//! Release of quota: after an eviction, or after a cancelled nomination.
//!
//! Source: docs/reference/kueue.md §2.2, §2.4 (last column: which Workloads are requeued at once).

use crds::names::{conditions, reasons};
use crds::v1beta2::WorkloadStatus;

use super::condition::NewCondition;
use super::pending::give_up;
use super::status_stamp::StatusStamp;
use super::{check_states, condition};

/// Releases the quota of an evicted Workload whose pods are gone. QuotaReserved keeps the message of the eviction.
/// Preemption targets and Workloads of failed nodes are requeued at once, others after a later transition.
#[must_use]
pub fn quota_released(status: WorkloadStatus, at: StatusStamp) -> WorkloadStatus {
    release(status, |reason| matches!(reason, reasons::PREEMPTED | reasons::NODE_FAILURES), at)
}

/// The same of the Workload of a single pod. The pod was deleted, so that nothing would run with quota that the Workload gets
/// again before it goes, too (docs/reference/kueue.md §7.3 row 6).
#[must_use]
pub fn quota_released_without_requeue(status: WorkloadStatus, at: StatusStamp) -> WorkloadStatus {
    release(status, |_| false, at)
}

fn release(
    mut status: WorkloadStatus,
    requeues: impl FnOnce(&str) -> bool,
    at: StatusStamp,
) -> WorkloadStatus {
    // A Workload on hold gives its quota back without an eviction; that of an earlier reservation is over.
    let evicted = condition::find_true(&status.conditions, conditions::EVICTED).cloned();
    let (reason, message) = evicted.map(|one| (one.reason, one.message)).unwrap_or_default();
    if !reason.is_empty() {
        let at_once = requeues(&reason);
        let all = &mut status.conditions;
        condition::set(
            all,
            NewCondition {
                kind: conditions::REQUEUED,
                status: at_once,
                reason: &reason,
                message: &message,
            },
            at,
        );
    }
    // A check can be set to Retry while the pods stop.
    check_states::reset(&mut status, at);
    give_up(&mut status, reasons::PENDING_EVALUATION, &message, at);
    forget_clusters(&mut status);
    status
}

/// Cancels the nomination: drops the reservation and requeues the Workload. Nothing of it ran, so this is not an
/// eviction.
#[must_use]
pub fn nomination_cancelled(
    mut status: WorkloadStatus,
    message: &str,
    at: StatusStamp,
) -> WorkloadStatus {
    check_states::reset(&mut status, at);
    reservation_dropped(status, message, at)
}

/// Drops a reservation without an eviction. The states of checks stay.
#[must_use]
pub fn reservation_dropped(
    mut status: WorkloadStatus,
    message: &str,
    at: StatusStamp,
) -> WorkloadStatus {
    give_up(&mut status, reasons::WAITING_FOR_QUOTA, message, at);
    forget_clusters(&mut status);
    status
}

fn forget_clusters(status: &mut WorkloadStatus) {
    status.cluster_name = None;
    status.nominated_cluster_names = Vec::new();
}
