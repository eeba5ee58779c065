//! Admission on a worker cluster. Source: docs/reference/multikueue.md §1.4, §1.5.

use crds::v1beta2::WorkloadStatus;

use super::status_stamp::StatusStamp;
use super::{admitted, check_states};

/// Records the cluster: sets its check to Ready, clears the nomination, and leaves delayed topologies to the worker.
/// Sets Admitted if no other check is pending.
#[must_use]
pub fn admitted_on_cluster(
    mut status: WorkloadStatus,
    cluster: &str,
    check: &str,
    at: StatusStamp,
) -> WorkloadStatus {
    status.cluster_name = Some(cluster.to_owned());
    status.nominated_cluster_names = Vec::new();
    check_states::set(&mut status, check, check_states::READY, &admitted_on(cluster), at);
    let assignments = status.admission.iter_mut().flat_map(|one| &mut one.pod_set_assignments);
    for assignment in assignments {
        // The worker assigns the topology, and its assignment is not copied
        // (docs/reference/multikueue.md §1.4).
        if let Some(request) = &mut assignment.delayed_topology_request {
            check_states::READY.clone_into(request);
        }
    }
    admitted::sync(&mut status, at);
    status
}

/// Message of the check of a Workload that this cluster has admitted.
#[must_use]
pub fn admitted_on(cluster: &str) -> String {
    format!("The workload was admitted on \"{cluster}\"")
}
