//! Nomination: the assignment of each head if it were alone in the cycle.
//!
//! Source: docs/reference/kueue.md §4.2.

use std::sync::Arc;

use crate::cycle::entry::{CycleEntry, CycleOutcome};
use crate::cycle::leaving_pods::awaited_assignment;
use crate::flavors::assign::assign;
use crate::flavors::assignment::{Assignment, FlavorAssignmentMode};
use crate::flavors::attempt::{AssignmentAttempt, NominatedFlavor};
use crate::flavors::{podset_reducer, topology_timing};
use crate::ids::{FlavorId, QueueId, WorkloadId};
use crate::preemption::target::PreemptionTarget;
use crate::preemption::{search, simulation, target};
use crate::queues::layer::QueueLayer;
use crate::settings::EngineSettings;
use crate::slices::SliceClaims;
use crate::state::State;
use crate::topology::layer::TopologyLayer;
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::record::{LastAssignment, TriedFlavor, TriedFlavors, WorkloadRecord};
use crate::{checks, topology};

/// Takes a head out of its pending queue and computes its assignment and preemption targets.
pub(super) fn nominate(state: &mut State, entry: &mut CycleEntry) {
    crate::pending::dequeue(&mut state.queues, &mut state.workloads, entry.workload);
    entry.outcome = rejection(&state.workloads, &state.queues, entry.queue, entry.workload);
    if entry.outcome == CycleOutcome::Nominated {
        let tried = last_tried_flavors(
            &state.settings,
            &state.workloads,
            &state.queues,
            entry.queue,
            entry.workload,
        );
        evaluate(state, entry, EvaluationLimits { tried: &tried, ..EvaluationLimits::default() });
        entry.nominated_borrow = entry.assignment.borrow;
    }
}

/// Whether nothing rejects the Workload before evaluation.
pub(super) fn is_valid(queues: &QueueLayer, queue: QueueId, workload: &WorkloadRecord) -> bool {
    workload.invalid.is_none()
        && checks::failed(workload).is_none()
        && queues.matches_namespace(queue, workload)
}

fn rejection(
    workloads: &WorkloadLayer,
    queues: &QueueLayer,
    queue: QueueId,
    id: WorkloadId,
) -> CycleOutcome {
    let workload = workloads.at(id);
    // The order of §4.2. Inactive ClusterQueues hand out no heads, so activity is not checked.
    if checks::failed(workload).is_some() {
        CycleOutcome::FailedCheck
    } else if !queues.matches_namespace(queue, workload) {
        CycleOutcome::NamespaceMismatch
    } else if workload.invalid.is_some() {
        CycleOutcome::Invalid
    } else {
        CycleOutcome::Nominated
    }
}

/// Where the last flavor scan stopped. It is used if the ClusterQueue's generation is unchanged or, under the gate
/// FlavorFungibilityPreserveScanProgress, if the last attempt was in the cycle before.
fn last_tried_flavors(
    settings: &EngineSettings,
    workloads: &WorkloadLayer,
    queues: &QueueLayer,
    queue: QueueId,
    id: WorkloadId,
) -> TriedFlavors {
    let workload = workloads.at(id);
    let valid = |last: &&LastAssignment| {
        let fresh =
            settings.flavor_fungibility_preserve_scan_progress && last.cycle + 1 == queues.cycle();
        fresh || last.generation >= queues.at(queue).generation
    };
    workload
        .last_assignment
        .as_deref()
        .filter(valid)
        .map(|last| last.tried.clone())
        .unwrap_or_default()
}

/// Assigns topology domains to a head that needs preemption, as if its targets were gone. It takes them for this cycle, so that
/// later heads do not.
fn assign_topology(state: &mut State, entry: &mut CycleEntry) {
    if entry.assignment.mode() != FlavorAssignmentMode::Preempt || !state.topology.any() {
        return;
    }
    let class = Arc::clone(&entry.class);
    let (workload, queue) = (entry.workload, entry.queue);
    let replaced_slice = entry.replaced_slice;
    let attempt =
        AssignmentAttempt { replaced_slice, ..AssignmentAttempt::new(workload, queue, &class) };
    let (removed, assignment) = (target::ids(&entry.targets), &mut entry.assignment);
    simulation::simulate_removal(state, &removed, |state| {
        topology::assign_assuming_preemption(state, &attempt, assignment, removed.is_empty());
    });
}

/// Limits of an evaluation.
#[derive(Clone, Copy, Default)]
pub(super) struct EvaluationLimits<'a> {
    /// Where earlier scans stopped.
    pub(super) tried: &'a [TriedFlavor],
    /// Flavors that must not change.
    pub(super) nominated: Option<&'a [NominatedFlavor]>,
    /// Flavors that are left out.
    pub(super) refused: &'a [FlavorId],
    /// The only preemption candidates.
    pub(super) candidates: Option<&'a [WorkloadId]>,
}

/// Computes assignment, topology and targets, and the domains of a head that needs preemption.
pub(super) fn evaluate(state: &mut State, entry: &mut CycleEntry, limits: EvaluationLimits<'_>) {
    find_assignment(state, entry, limits);
    assign_topology(state, entry);
}

/// Computes assignment, topology and targets. If the Workload does not fit, tries fewer pods (gate PartialAdmission).
fn find_assignment(state: &mut State, entry: &mut CycleEntry, limits: EvaluationLimits<'_>) {
    let EvaluationLimits { tried, nominated, refused, candidates } = limits;
    let class = Arc::clone(&entry.class);
    let (workload, queue) = (entry.workload, entry.queue);
    let replaced_slice = SliceClaims::new(&state.names, &state.workloads).replaced(workload, queue);
    entry.replaced_slice = replaced_slice;
    let attempt = AssignmentAttempt {
        tried,
        replaced_slice,
        nominated,
        refused,
        candidates,
        ..AssignmentAttempt::new(workload, queue, &class)
    };
    attempt_with(state, &attempt, &mut entry.assignment, &mut entry.targets);
    // Fewer pods are tried only if the full count leads to no admission (§4.5), or to none before pods have left their nodes.
    let waits = entry.assignment.awaits_leaving_pods;
    let admitted = !waits && can_be_admitted(&entry.assignment, &entry.targets);
    if admitted || !state.settings.partial_admission {
        return;
    }
    let mut best = None;
    let found = podset_reducer::search(&class, |counts| {
        let attempt = AssignmentAttempt { counts: Some(counts), ..attempt };
        let (mut assignment, mut targets) = (Assignment::default(), Vec::new());
        attempt_with(state, &attempt, &mut assignment, &mut targets);
        let can_be_admitted = if waits {
            assignment.mode() == FlavorAssignmentMode::Fit
        } else {
            can_be_admitted(&assignment, &targets)
        };
        if can_be_admitted {
            // Of several counts that work, the bisection accepts the largest last.
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
    // Targets that were simulated for another attempt do not hold for this one.
    state.scratch.invalidate();
    assign(state, attempt, assignment);
    // Marks delayed pod sets first, so that no domains are searched for them.
    topology_timing::delay_topology(&state.topology, &state.queues, attempt.queue, assignment);
    let may_wait = may_wait_for_pods(&state.topology, assignment);
    let without_domains = may_wait.then(|| assignment.clone());
    topology::assign(state, attempt, assignment);
    if assignment.mode() != FlavorAssignmentMode::Fit
        && let Some(without_domains) = without_domains
        && let Some(awaited) = awaited_assignment(state, attempt, without_domains)
    {
        *assignment = awaited;
        return;
    }
    if assignment.mode() == FlavorAssignmentMode::Preempt {
        search::find_for(state, attempt, assignment, targets);
    }
}

/// Whether pods are to leave a node on which an assignment without domains may place pods. A head that no such node concerns is searched
/// once.
fn may_wait_for_pods(topology: &TopologyLayer, assignment: &Assignment) -> bool {
    if !topology.has_leaving() || assignment.mode() == FlavorAssignmentMode::NoFit {
        return false;
    }
    let placed = assignment.pod_sets.iter().filter(|one| one.count > 0 && !one.delayed_topology);
    let mut flavors = placed.flat_map(|one| &one.flavor_assignments).map(|choice| choice.flavor);
    flavors.any(|flavor| topology.has_leaving_in(flavor))
}
