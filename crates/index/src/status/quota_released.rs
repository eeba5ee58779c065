//! Release of quota: after an eviction, or after a cancelled nomination.
//!
//! Source: docs/reference/kueue.md §2.2, §2.4 (last column: which Workloads are requeued at once).

use crds::names::{conditions, reasons};
use crds::v1beta2::WorkloadStatus;

use super::pending::give_up;
use super::status_stamp::StatusStamp;
use super::{check_states, condition};

/// Releases the quota of an evicted Workload whose pods are gone. QuotaReserved keeps the message of the eviction.
/// Preemption targets and Workloads of failed nodes are requeued at once, others after a later transition.
#[must_use]
pub fn quota_released(mut status: WorkloadStatus, at: StatusStamp) -> WorkloadStatus {
    let evicted = condition::find(&status.conditions, conditions::EVICTED).cloned();
    let (reason, message) = evicted.map(|one| (one.reason, one.message)).unwrap_or_default();
    if !reason.is_empty() {
        let at_once = matches!(reason.as_str(), reasons::PREEMPTED | reasons::NODE_FAILURES);
        let all = &mut status.conditions;
        condition::set(all, conditions::REQUEUED, at_once, &reason, &message, at);
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
    give_up(&mut status, reasons::WAITING_FOR_QUOTA, message, at);
    forget_clusters(&mut status);
    status
}

fn forget_clusters(status: &mut WorkloadStatus) {
    status.cluster_name = None;
    status.nominated_cluster_names = Vec::new();
}
