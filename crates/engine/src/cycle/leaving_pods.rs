//! Heads that fit as soon as pods have left their nodes: they wait, and preempt nothing.
//!
//! A Workload may lose its reservation before its pods have ended, e.g. when it is preempted. Until then its pods take their room, so
//! that the head that preempted it still does not fit, and would preempt further Workloads in each cycle. A head waits if no
//! Workload is to be preempted for it but those that are evicted already. Source: docs/reference/kueue.md §4.11.

use crate::flavors::assignment::{Assignment, FlavorAssignmentMode};
use crate::flavors::attempt::AssignmentAttempt;
use crate::preemption::target::ids;
use crate::preemption::{search, simulation};
use crate::state::State;
use crate::topology;

/// The assignment that a head gets when pods have left, made of one without domains; `None` if it must preempt more than that.
pub(super) fn awaited_assignment(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    mut assignment: Assignment,
) -> Option<Assignment> {
    let fits = simulation::simulate_leaving(state, |state| fits(state, attempt, &mut assignment));
    let has_domains = assignment.pod_sets.iter().any(|one| !one.domains.is_empty());
    (fits && has_domains).then(|| {
        assignment.await_leaving_pods();
        assignment
    })
}

fn fits(state: &mut State, attempt: &AssignmentAttempt<'_>, assignment: &mut Assignment) -> bool {
    topology::assign(state, attempt, assignment);
    match assignment.mode() {
        FlavorAssignmentMode::Fit => true,
        FlavorAssignmentMode::Preempt => fits_without_evicted(state, attempt, assignment),
        FlavorAssignmentMode::DeferredFit | FlavorAssignmentMode::NoFit => false,
    }
}

/// Whether the only targets are Workloads that are evicted already: several targets release their quota at different times.
fn fits_without_evicted(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &mut Assignment,
) -> bool {
    let mut targets = Vec::new();
    search::find_for(state, attempt, assignment, &mut targets);
    let removed = ids(&targets);
    if removed.is_empty() || !simulation::are_evicted(&state.workloads, &removed) {
        return false;
    }
    simulation::simulate_removal(state, &removed, |state| {
        topology::assign_assuming_preemption(state, attempt, assignment, false);
    });
    true
}
