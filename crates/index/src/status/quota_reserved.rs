//! Quota reservation. Source: docs/reference/kueue.md §2.1, §2.3.

use crds::names::{conditions, reasons};
use crds::v1beta2::{Admission, WorkloadStatus};

use super::condition::NewCondition;
use super::status_stamp::StatusStamp;
use super::{admitted, check_states, condition};

/// Parts of a quota reservation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuotaReservation<'a> {
    /// The admission: queue, flavors, amounts.
    pub admission: Admission,
    /// Checks that these flavors need.
    pub checks: &'a [String],
    /// Nominated clusters.
    pub nominated: &'a [String],
}

/// Sets QuotaReserved, check states and nomination. Also sets Admitted if no check is pending.
#[must_use]
pub fn quota_reserved(
    mut status: WorkloadStatus,
    reservation: QuotaReservation<'_>,
    at: StatusStamp,
) -> WorkloadStatus {
    let message = format!("Quota reserved in ClusterQueue {}", reservation.admission.cluster_queue);
    let all = &mut status.conditions;
    condition::set(
        all,
        NewCondition {
            kind: conditions::QUOTA_RESERVED,
            status: true,
            reason: reasons::QUOTA_RESERVED,
            message: &message,
        },
        at,
    );
    let over =
        [conditions::EVICTED, conditions::PREEMPTED, conditions::BLOCKED_ON_PREEMPTION_GATES];
    for r#type in over {
        condition::reset(all, r#type, reasons::QUOTA_RESERVED, at);
    }
    status.admission = Some(reservation.admission);
    // Only a pending Workload shows its requests (docs/reference/kueue.md §1.2).
    status.resource_requests = Vec::new();
    if !reservation.nominated.is_empty() {
        // The API server refuses a nomination beside a cluster name.
        status.cluster_name = None;
        status.nominated_cluster_names = reservation.nominated.to_vec();
    }
    check_states::sync_required(&mut status, reservation.checks, at);
    admitted::sync(&mut status, at);
    status
}
