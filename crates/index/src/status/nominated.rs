//! Nomination of a worker cluster. Source: docs/reference/multikueue.md §2.4.

use crds::v1beta2::WorkloadStatus;

use super::check_states::READY;

/// Nominates clusters for a Workload that holds quota. The API server refuses a nomination beside a cluster name.
#[must_use]
pub fn nominated(mut status: WorkloadStatus, clusters: &[Box<str>]) -> WorkloadStatus {
    if status.cluster_name.is_none() {
        status.nominated_cluster_names = clusters.iter().map(ToString::to_string).collect();
    }
    status
}

/// Whether an admission check other than this one is not Ready.
#[must_use]
pub fn awaits_other_checks(status: &WorkloadStatus, check: &str) -> bool {
    let mut others = status.admission_checks.iter().filter(|one| one.name != check);
    others.any(|one| one.state != READY)
}
