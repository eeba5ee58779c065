//! Which Workloads need a second pass.
//!
//! A Workload needs one if it holds quota, all its admission checks are ready, and the topology assignment of a pod set is
//! delayed to this cluster. Source: docs/reference/kueue.md §3.7.

use crate::checks;
use crate::ids::{QueueId, WorkloadId};
use crate::queues::layer::QueueLayer;
use crate::spec::{CheckState, PodSetAdmission, TopologyTiming};
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::record::WorkloadRecord;

/// Starts or ends the second pass of a Workload that changed.
pub(crate) fn update(workloads: &mut WorkloadLayer, queues: &QueueLayer, id: WorkloadId) {
    let needed = workloads.get(id).is_some_and(|workload| is_needed(queues, workload));
    workloads.second_passes_mut().update(id, needed);
}

fn is_needed(queues: &QueueLayer, workload: &WorkloadRecord) -> bool {
    let Some(admission) = workload.admission.as_deref().filter(|one| !one.evicted) else {
        return false;
    };
    // A check that the status does not list is pending, and only a check delays a topology
    // assignment.
    let ready = !workload.checks.is_empty()
        && workload.checks.iter().all(|&(_, state)| state == CheckState::Ready);
    ready && admission.pod_sets.iter().any(|one| is_delayed_here(queues, admission.queue, one))
}

/// Whether a pod set waits for a topology assignment that this engine makes.
pub(crate) fn is_delayed_here(
    queues: &QueueLayer,
    queue: QueueId,
    pod_set: &PodSetAdmission,
) -> bool {
    // With a MultiKueue check the worker assigns the topology, never this cluster.
    let on_worker =
        |flavor| checks::topology_timing(queues, queue, flavor) == TopologyTiming::OnWorker;
    pod_set.delayed_topology && !pod_set.flavors().any(on_worker)
}
