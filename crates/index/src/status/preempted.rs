//! Preemption: an eviction with its preemptor. Source: docs/reference/kueue.md §2.1, §4.8.

use crds::names::{conditions, reasons};
use crds::v1beta2::WorkloadStatus;
use engine::PreemptionReason;

use super::condition::{self, NewCondition};
use super::evicted::{Eviction, evicted};
use super::status_stamp::StatusStamp;

/// Evicts a preemption target.
#[must_use]
pub fn preempted(
    status: WorkloadStatus,
    reason: PreemptionReason,
    message: &str,
    at: StatusStamp,
) -> WorkloadStatus {
    let eviction = Eviction { reason: reasons::PREEMPTED, cause: "", message };
    let mut status = evicted(status, eviction, at);
    let all = &mut status.conditions;
    condition::set(
        all,
        NewCondition { kind: conditions::PREEMPTED, status: true, reason: reason.name(), message },
        at,
    );
    status
}

/// Message of a preemption: uids of the preemptor and its job, and the cohort paths of preemptor and target.
#[must_use]
pub fn preemption_message(
    (uid, job_uid): (&str, &str),
    reason: PreemptionReason,
    (preemptor_path, victim_path): (&str, &str),
) -> String {
    let or_unknown = |text| if str::is_empty(text) { "UNKNOWN" } else { text };
    format!(
        "Preempted to accommodate a workload (UID: {}, JobUID: {}) due to {}; preemptor path: {}; preemptee path: {}",
        or_unknown(uid),
        or_unknown(job_uid),
        in_words(reason),
        or_unknown(preemptor_path),
        or_unknown(victim_path),
    )
}

fn in_words(reason: PreemptionReason) -> &'static str {
    match reason {
        PreemptionReason::InClusterQueue => "prioritization in the ClusterQueue",
        PreemptionReason::InCohortReclamation => "reclamation within the cohort",
        PreemptionReason::InCohortFairSharing => "Fair Sharing within the cohort",
        PreemptionReason::InCohortReclaimWhileBorrowing => {
            "reclamation within the cohort while borrowing"
        }
    }
}
