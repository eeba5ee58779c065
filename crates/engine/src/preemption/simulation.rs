//! Simulated removal of Workloads: their usage is taken away, something is evaluated, and the usage is put back.
//!
//! Only usage of quota and topologies changes. A removed Workload is hidden, so that it is no preemption candidate. Callers
//! restore it; a search that leaves one hidden is a bug.

use crate::ids::{QueueId, WorkloadId};
use crate::state::State;

/// The ClusterQueue of a Workload's reservation.
pub(crate) fn queue_of(state: &State, id: WorkloadId) -> QueueId {
    let admission = state.workloads.at(id).admission.as_deref();
    admission
        .map(|admission| admission.queue)
        .expect("invariant: preemption targets have a reservation")
}

/// Removes a Workload's usage within a simulation.
pub(crate) fn hide(state: &mut State, id: WorkloadId) {
    change(state, id, true);
}

/// Restores what [`hide`] removed.
pub(crate) fn show(state: &mut State, id: WorkloadId) {
    change(state, id, false);
}

/// Evaluates `look` while the Workloads `gone` are hidden.
pub(crate) fn without<T>(
    state: &mut State,
    gone: &[WorkloadId],
    look: impl FnOnce(&mut State) -> T,
) -> T {
    for &id in gone {
        hide(state, id);
    }
    let seen = look(state);
    for &id in gone {
        show(state, id);
    }
    seen
}

fn change(state: &mut State, id: WorkloadId, hidden: bool) {
    let workload = state.workloads.at_mut(id);
    // Lists of targets may contain a Workload twice; its usage is removed once.
    if workload.hidden == hidden {
        return;
    }
    workload.hidden = hidden;
    let class = workload.class;
    let Some(admission) = workload.admission.take() else {
        return;
    };
    let node = state.queue(admission.queue).node;
    if hidden {
        state.tree.uncharge(node, &admission.usage);
        state.topologies.release_admission(&admission, &class, &state.classes);
    } else {
        state.tree.charge(node, &admission.usage);
        state.topologies.charge_admission(&admission, &class, &state.classes);
    }
    state.workloads.at_mut(id).admission = Some(admission);
}
