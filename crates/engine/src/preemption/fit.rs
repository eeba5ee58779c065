//! Whether a request fits during a preemption search, and restoring targets that are not needed. Kueue: `workloadFits`,
//! `fillBackWorkloads`.

use crate::ids::{Slot, WorkloadId};
use crate::preemption::request::PreemptionRequest;
use crate::preemption::simulation::{remove_workload, restore_workload};
use crate::preemption::target::PreemptionTarget;
use crate::quota::available::available;
use crate::state::State;
use crate::topology;
use crate::workloads::layer::WorkloadLayer;

/// Whether the request fits now; without `borrowing`, within the ClusterQueue's own quota.
pub(super) fn fits(state: &mut State, request: &PreemptionRequest<'_>, borrowing: bool) -> bool {
    let node = state.queues.at(request.attempt.queue).node;
    let quota = request.usage.iter().all(|&(slot, amount)| {
        (borrowing || !state.quota.tree().at(node, slot).borrows_with(amount))
            // Clipped, so that a request of zero fits even if usage exceeds quota.
            && amount <= available(state.quota.tree(), node, slot).clip()
    });
    // The topology search is expensive and runs only if quota suffices.
    quota && request.assignment.is_none_or(|one| topology::fits(state, request.attempt, one))
}

/// Restores targets that are not needed, latest first. The last one removed made the request fit and stays.
pub(super) fn fill_back(
    state: &mut State,
    targets: &mut Vec<PreemptionTarget>,
    mut still_fits: impl FnMut(&mut State) -> bool,
) {
    let mut index = targets.len().saturating_sub(1);
    while index > 0 {
        index -= 1;
        let target = targets[index];
        restore_workload(state, target.workload);
        // Targets that were removed after it may have freed enough (docs/reference/kueue.md §4.9).
        if still_fits(state) {
            // As in Kueue, the last target takes the position of the restored one.
            targets.swap_remove(index);
        } else {
            remove_workload(state, target.workload);
        }
    }
}

/// Whether a Workload uses one of the contested slots.
pub(super) fn uses(workloads: &WorkloadLayer, id: WorkloadId, contested: &[Slot]) -> bool {
    let admission = workloads.admission(id);
    admission.is_some_and(|one| one.usage.iter().any(|(slot, _)| contested.contains(slot)))
}
