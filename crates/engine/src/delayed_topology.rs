//! Which Workloads need a second pass, and the rollback of its result.
//!
//! A Workload needs one if it holds quota, all its admission checks are ready, and the topology assignment of a pod set is
//! delayed to this cluster. Source: docs/reference/kueue.md §3.7.

use crate::checks;
use crate::ids::{QueueId, WorkloadId};
use crate::spec::{CheckState, PodSetAdmission, TopologyTiming};
use crate::state::State;
use crate::workloads::record::WorkloadRecord;

/// Starts or ends the second pass of a Workload that changed.
pub(crate) fn update(state: &mut State, id: WorkloadId) {
    let needed = state.workloads.get(id).is_some_and(|workload| is_needed(state, workload));
    state.second_passes.update(id, needed);
}

fn is_needed(state: &State, workload: &WorkloadRecord) -> bool {
    let Some(admission) = workload.admission.as_deref().filter(|one| !one.evicted) else {
        return false;
    };
    let ready = !workload.checks.is_empty()
        && workload.checks.iter().all(|&(_, state)| state == CheckState::Ready);
    ready && admission.pod_sets.iter().any(|one| is_delayed_here(state, admission.queue, one))
}

/// Whether a pod set waits for a topology assignment that this engine makes.
pub(crate) fn is_delayed_here(state: &State, queue: QueueId, pod_set: &PodSetAdmission) -> bool {
    let mut flavors = pod_set.resources.iter().map(|(_, flavor, _)| *flavor);
    pod_set.delayed_topology
        && !flavors
            .any(|flavor| checks::topology_timing(state, queue, flavor) == TopologyTiming::OnWorker)
}

/// Rolls back a topology assignment whose write failed; the second pass starts again. Returns whether there was one.
pub(crate) fn roll_back(state: &mut State, id: WorkloadId) -> bool {
    let Some(found) = state.second_passes.assigned(id).map(<[usize]>::to_vec) else {
        return false;
    };
    let Some(admission) = state.workloads.at(id).admission.as_deref() else {
        return false;
    };
    let (queue, mut pod_sets) = (admission.queue, admission.pod_sets.clone());
    for index in found {
        if let Some(one) = pod_sets.get_mut(index) {
            one.domains.clear();
            one.delayed_topology = true;
        }
    }
    set_pod_sets(state, id, pod_sets);
    state.requeue_cohort_tree(queue);
    state.second_passes.remove(id);
    update(state, id);
    true
}

/// Replaces the pod sets of an admission; the charged quota stays.
pub(crate) fn set_pod_sets(state: &mut State, id: WorkloadId, pod_sets: Vec<PodSetAdmission>) {
    let workload = state.workloads.at_mut(id);
    let class = workload.class;
    let Some(admission) = workload.admission.as_deref_mut() else {
        return;
    };
    state.topologies.release_admission(admission, &class, &state.classes);
    admission.pod_sets = pod_sets;
    state.topologies.charge_admission(admission, &class, &state.classes);
}
