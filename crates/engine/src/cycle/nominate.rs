//! Nomination: the assignment of each head if it were alone in the cycle.
//!
//! Source: docs/reference/kueue.md §4.2.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::cycle::entry::{CycleEntry, CycleOutcome};
use crate::flavors::assign::assign;
use crate::flavors::assignment::{Assignment, FlavorAssignmentMode};
use crate::flavors::attempt::AssignmentAttempt;
use crate::flavors::{delayed_topology, podset_reducer};
use crate::ids::{FlavorId, QueueId, ResourceId, WorkloadId};
use crate::preemption::target::PreemptionTarget;
use crate::preemption::{search, simulation, target};
use crate::queues::cluster_queue::namespace_matches;
use crate::state::State;
use crate::workloads::record::{ScanMemory, WorkloadRecord};
use crate::{checks, slices, topology};

/// Takes a head out of its pending queue and computes its assignment and preemption targets.
pub(super) fn nominate(state: &mut State, entry: &mut CycleEntry) {
    crate::pending::dequeue(state, entry.workload);
    entry.outcome = rejection(state, entry.queue, entry.workload);
    if entry.outcome == CycleOutcome::Nominated {
        let tried = tried(state, entry.queue, entry.workload);
        evaluate(state, entry, &tried, None);
        assign_topology(state, entry);
        entry.nominated_borrow = entry.assignment.borrow;
    }
}

/// Whether nothing rejects the Workload before evaluation.
pub(super) fn is_valid(state: &State, queue: QueueId, workload: &WorkloadRecord) -> bool {
    workload.invalid.is_none()
        && checks::failed(workload).is_none()
        && namespace_matches(&state.queue(queue).namespaces, &state.namespaces, workload)
}

fn rejection(state: &State, queue: QueueId, id: WorkloadId) -> CycleOutcome {
    let workload = state.workloads.at(id);
    // The order of §4.2. Inactive ClusterQueues hand out no heads, so activity is not checked.
    if checks::failed(workload).is_some() {
        CycleOutcome::FailedCheck
    } else if !namespace_matches(&state.queue(queue).namespaces, &state.namespaces, workload) {
        CycleOutcome::NamespaceMismatch
    } else if workload.invalid.is_some() {
        CycleOutcome::Invalid
    } else {
        CycleOutcome::Nominated
    }
}

/// Where the last flavor scan stopped. It is used if the ClusterQueue's generation is unchanged or, under the gate
/// FlavorFungibilityPreserveScanProgress, if the last attempt was in the cycle before.
fn tried(state: &State, queue: QueueId, id: WorkloadId) -> TriedFlavors {
    let workload = state.workloads.at(id);
    let valid = |memory: &&ScanMemory| {
        let fresh = state.settings.flavor_fungibility_preserve_scan_progress
            && memory.cycle + 1 == state.cycle;
        fresh || memory.generation >= state.queue(queue).generation
    };
    workload.scan.as_deref().filter(valid).map(|memory| memory.tried.clone()).unwrap_or_default()
}

type TriedFlavors = SmallVec<[(u16, ResourceId, u16); 4]>;

/// Assigns topology domains to a head that needs preemption, as if its targets were gone.
pub(super) fn assign_topology(state: &mut State, entry: &mut CycleEntry) {
    if entry.assignment.mode() != FlavorAssignmentMode::Preempt || !state.topologies.any() {
        return;
    }
    let class = Arc::clone(&entry.class);
    let (workload, queue) = (entry.workload, entry.queue);
    let old = entry.replaced_slice;
    let attempt = AssignmentAttempt {
        workload,
        queue,
        class: &class,
        counts: None,
        tried: &[],
        old,
        pins: None,
    };
    let (gone, assignment) = (target::ids(&entry.targets), &mut entry.assignment);
    simulation::without(state, &gone, |state| {
        topology::assign_assuming_preemption(state, &attempt, assignment, gone.is_empty());
    });
}

/// Computes assignment, topology and targets. If the Workload does not fit, tries fewer pods (gate PartialAdmission).
pub(super) fn evaluate(
    state: &mut State,
    entry: &mut CycleEntry,
    tried: &[(u16, ResourceId, u16)],
    pins: Option<&[(u16, ResourceId, FlavorId)]>,
) {
    let class = Arc::clone(&entry.class);
    let (workload, queue) = (entry.workload, entry.queue);
    let old = slices::replaced(state, workload, queue);
    entry.replaced_slice = old;
    let attempt =
        AssignmentAttempt { workload, queue, class: &class, counts: None, tried, old, pins };
    attempt_with(state, &attempt, &mut entry.assignment, &mut entry.targets);
    if can_be_admitted(&entry.assignment, &entry.targets) || !state.settings.partial_admission {
        return;
    }
    let mut best = None;
    let found = podset_reducer::search(&class, |counts| {
        let attempt = AssignmentAttempt { counts: Some(counts), ..attempt };
        let (mut assignment, mut targets) = (Assignment::default(), Vec::new());
        attempt_with(state, &attempt, &mut assignment, &mut targets);
        let can_be_admitted = can_be_admitted(&assignment, &targets);
        if can_be_admitted {
            best = Some((assignment, targets));
        }
        can_be_admitted
    });
    if found && let Some((assignment, targets)) = best {
        (entry.assignment, entry.targets) = (assignment, targets);
    }
}

/// Whether an assignment can lead to admission: it fits, or has preemption targets.
fn can_be_admitted(assignment: &Assignment, targets: &[PreemptionTarget]) -> bool {
    match assignment.mode() {
        FlavorAssignmentMode::Fit | FlavorAssignmentMode::DeferredFit => true,
        FlavorAssignmentMode::Preempt => !targets.is_empty(),
        FlavorAssignmentMode::NoFit => false,
    }
}

fn attempt_with(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &mut Assignment,
    targets: &mut Vec<PreemptionTarget>,
) {
    targets.clear();
    state.scratch.invalidate();
    assign(state, attempt, assignment);
    // Marks delayed pod sets first, so that no domains are searched for them.
    delayed_topology::delay_topology(state, attempt.queue, assignment);
    topology::assign(state, attempt, assignment);
    if assignment.mode() == FlavorAssignmentMode::Preempt {
        search::find_for(state, attempt, assignment, targets);
    }
}
