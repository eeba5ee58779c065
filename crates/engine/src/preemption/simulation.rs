//! Simulated removal of Workloads and of pods that are to leave: their usage is taken away, something is evaluated, and the usage is
//! put back.
//!
//! Only usage of quota and topologies changes. A removed Workload is no preemption candidate. Callers
//! restore it; a search that leaves one removed is a bug.

use crate::ids::{QueueId, WorkloadId};
use crate::state::State;
use crate::workloads::layer::WorkloadLayer;

/// The ClusterQueue of a Workload's reservation.
pub(crate) fn queue_of(workloads: &WorkloadLayer, id: WorkloadId) -> QueueId {
    let admission = workloads.admission(id);
    admission
        .map(|admission| admission.queue)
        .expect("invariant: preemption targets have a reservation")
}

/// Removes a Workload's usage within a simulation.
pub(crate) fn remove_workload(state: &mut State, id: WorkloadId) {
    change(state, id, true);
}

/// Restores what [`remove_workload`] removed.
pub(crate) fn restore_workload(state: &mut State, id: WorkloadId) {
    change(state, id, false);
}

/// Calls `evaluate` while the Workloads are removed. Kueue: `SimulateWorkloadRemoval`.
pub(crate) fn simulate_removal<T>(
    state: &mut State,
    removed_workloads: &[WorkloadId],
    evaluate: impl FnOnce(&mut State) -> T,
) -> T {
    for &id in removed_workloads {
        remove_workload(state, id);
    }
    let result = evaluate(state);
    for &id in removed_workloads {
        restore_workload(state, id);
    }
    result
}

/// Calls `evaluate` while pods that are to leave their nodes have left them.
pub(crate) fn simulate_leaving<T>(state: &mut State, evaluate: impl FnOnce(&mut State) -> T) -> T {
    state.topology.release_leaving();
    let result = evaluate(state);
    state.topology.retain_leaving();
    result
}

/// Whether Workloads are evicted already, so that nothing more is preempted for a head that waits for them.
pub(crate) fn are_evicted(workloads: &WorkloadLayer, ids: &[WorkloadId]) -> bool {
    ids.iter().all(|&id| workloads.admission(id).is_some_and(|one| one.evicted))
}

fn change(state: &mut State, id: WorkloadId, removed: bool) {
    // Lists of targets may contain a Workload twice; its usage is removed once.
    if !state.workloads.set_removed(id, removed) {
        return;
    }
    let Some(admission) = state.workloads.admission(id) else {
        return;
    };
    let node = state.queues.at(admission.queue).node;
    let class = state.workloads.class(id);
    if removed {
        state.quota.uncharge(node, &admission.usage);
        state.topology.release_admission(admission, class);
    } else {
        state.quota.charge(node, &admission.usage);
        state.topology.charge_admission(admission, class);
    }
}
