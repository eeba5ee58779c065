//! Whether a request fits during a preemption search, and restoring targets that are not needed. Kueue: `workloadFits`,
//! `fillBackWorkloads`.

use crate::ids::{Slot, WorkloadId};
use crate::preemption::request::PreemptionRequest;
use crate::preemption::simulation::{hide, show};
use crate::preemption::target::PreemptionTarget;
use crate::quota::available::available;
use crate::state::State;
use crate::topology;

/// Whether the request fits now; without `borrowing`, within the ClusterQueue's own quota.
pub(super) fn fits(state: &mut State, need: &PreemptionRequest<'_>, borrowing: bool) -> bool {
    let node = state.queue(need.attempt.queue).node;
    let quota = need.usage.iter().all(|&(slot, amount)| {
        (borrowing || !state.tree.at(node, slot).borrowing_with(amount))
            // Clipped, so that a request of zero fits even if usage exceeds quota.
            && amount <= available(&state.tree, node, slot).clip()
    });
    // The topology search is expensive and runs only if quota suffices.
    quota && need.assignment.is_none_or(|one| topology::fits(state, need.attempt, one))
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
        show(state, target.workload);
        if still_fits(state) {
            // As in Kueue, the last target takes the position of the restored one.
            targets.swap_remove(index);
        } else {
            hide(state, target.workload);
        }
    }
}

/// Whether a Workload uses one of the contested slots.
pub(super) fn uses(state: &State, id: WorkloadId, contested: &[Slot]) -> bool {
    let admission = state.workloads.at(id).admission.as_deref();
    admission.is_some_and(|one| one.usage.iter().any(|(slot, _)| contested.contains(slot)))
}
