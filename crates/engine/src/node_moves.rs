//! Moves pods of a reserving Workload to other topology domains, and rolls such a move back if its write fails.

use crate::ids::WorkloadId;
use crate::node_failures::NodeReplacement;
use crate::state::State;
use crate::topology;

/// Rolls back a replacement whose write failed: pods are where they were, and the failure is open again. Returns
/// whether there was a replacement.
pub(crate) fn roll_back(state: &mut State, id: WorkloadId) -> bool {
    let Some(NodeReplacement { node, before }) = state.node_failures.take_replacement(id) else {
        return false;
    };
    let before = before.into_iter().map(|one| one.domains).enumerate().collect();
    move_pods(state, id, before);
    state.node_failures.set(id, [node].into_iter().collect());
    true
}

/// Replaces topology assignments and charges the difference.
pub(crate) fn move_pods(
    state: &mut State,
    id: WorkloadId,
    moved: topology::ReplacementAssignments,
) {
    let workload = state.workloads.at_mut(id);
    let class = workload.class;
    let Some(mut admission) = workload.admission.take() else {
        return;
    };
    state.topologies.release_admission(&admission, &class, &state.classes);
    for (pod_set, domains) in moved {
        if let Some(one) = admission.pod_sets.get_mut(pod_set) {
            one.domains = domains;
        }
    }
    state.topologies.charge_admission(&admission, &class, &state.classes);
    state.workloads.at_mut(id).admission = Some(admission);
}
