//! Finds preemption targets for an assignment, and simulates preemption for one (flavor, resource).
//!
//! Source: docs/reference/kueue.md §4.4 step 6, §4.9, §4.10.

use crate::amount::Amount;
use crate::flavors::assignment::Assignment;
use crate::flavors::attempt::AssignmentAttempt;
use crate::flavors::granular_mode::{GranularMode, PreemptionMode};
use crate::ids::{PODS, Slot};
use crate::preemption::classical;
use crate::preemption::fair;
use crate::preemption::request::PreemptionRequest;
use crate::preemption::simulation::{queue_of, simulate_removal};
use crate::preemption::target::{PreemptionTarget, ids};
use crate::quota::available::reach;
use crate::state::State;
use crate::workloads::usage::SlotUsage;

/// Finds preemption targets so that `request` fits; none if that is impossible.
pub(crate) fn find(
    state: &mut State,
    request: &PreemptionRequest<'_>,
    targets: &mut Vec<PreemptionTarget>,
) {
    targets.clear();
    // Fair sharing replaces the classical search as a whole (§4.10).
    if state.settings.fair_sharing.is_some() {
        fair::find(state, request, targets);
    } else {
        classical::find(state, request, targets);
    }
}

/// Finds preemption targets for a whole assignment.
pub(crate) fn find_for(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &Assignment,
    targets: &mut Vec<PreemptionTarget>,
) {
    let contested = assignment.contested();
    // Too few targets for the implicit resource `pods` show when the entry is processed, and the next cycle finds the same ones. A
    // slot with request zero does not count: it may be borrowed already.
    let pods = state.settings.count_pods_in_preemption;
    let counts = |&&(slot, amount): &&(Slot, Amount)| {
        amount != Amount::ZERO && (pods || state.quota.tree().flavor_and_resource(slot).1 != PODS)
    };
    let usage: SlotUsage = assignment.usage.iter().filter(counts).copied().collect();
    if let [asked] = *usage.as_slice()
        && contested.as_slice() == [asked.0]
        && state.scratch.found_for == Some(asked)
        && !state.topology.any()
        && state.quota.tree().is_countable()
    {
        // The only slot was simulated last, by this very search, and the search did not change usage.
        targets.clone_from(&state.scratch.targets);
        return;
    }
    let request = PreemptionRequest {
        attempt,
        usage: &usage,
        contested: &contested,
        assignment: Some(assignment),
    };
    find(state, &request, targets);
}

/// Simulates preemption for one slot.
pub(crate) fn simulate(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    slot: Slot,
    amount: Amount,
) -> GranularMode {
    let usage = [(slot, amount)];
    let request =
        PreemptionRequest { attempt, usage: &usage, contested: &[slot], assignment: None };
    let mut targets = std::mem::take(&mut state.scratch.targets);
    find(state, &request, &mut targets);
    let granular_mode = granular_mode_of(state, attempt, slot, amount, &targets);
    (state.scratch.targets, state.scratch.found_for) = (targets, Some((slot, amount)));
    granular_mode
}

fn granular_mode_of(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    slot: Slot,
    amount: Amount,
    targets: &[PreemptionTarget],
) -> GranularMode {
    let node = state.queues.at(attempt.queue).node;
    if targets.is_empty() {
        let borrow = reach(state.quota.tree(), node, slot, amount).height;
        return GranularMode { preemption_mode: PreemptionMode::NoCandidates, borrow };
    }
    let mark = state.quota.begin_simulation();
    let borrow =
        // The targets release their usage first, so a lower subtree may suffice (§4.4 step 4).
        simulate_removal(state, &ids(targets), |state| reach(state.quota.tree(), node, slot, amount).height);
    state.quota.settle_simulation(mark);
    // Reclaim ranks above Preempt and therefore needs all targets in other ClusterQueues.
    let own =
        targets.iter().any(|target| queue_of(&state.workloads, target.workload) == attempt.queue);
    GranularMode {
        preemption_mode: if own { PreemptionMode::Preempt } else { PreemptionMode::Reclaim },
        borrow,
    }
}
