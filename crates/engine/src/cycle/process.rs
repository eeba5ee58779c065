//! Processes one entry against the usage of the entries before it.
//!
//! Source: docs/reference/kueue.md §4.8.

use smallvec::SmallVec;

use crate::cycle::entry::{CycleEntry, CycleOutcome};
use crate::cycle::nominate::{EvaluationLimits, evaluate};
use crate::cycle::other_flavors::retry_other_flavors;
use crate::cycle::preempted_workloads::PreemptedWorkloads;
use crate::cycle::preemption_on_clusters;
use crate::flavors::assignment::FlavorAssignmentMode;
use crate::flavors::attempt::NominatedFlavor;
use crate::ids::WorkloadId;
use crate::placer::Placer;
use crate::preemption::simulation::simulate_removal;
use crate::preemption::target::WorkloadIds;
use crate::queues::layer::QueueLayer;
use crate::quota::available::available;
use crate::quota::layer::QuotaLayer;
use crate::spec::PreemptionPolicy;
use crate::state::State;
use crate::variants::Migration;
use crate::workloads::usage::SlotUsage;
use crate::{topology, variants};

/// Decides about one entry. `preempted` are the targets of entries processed before.
pub(super) fn process(
    state: &mut State,
    entry: &mut CycleEntry,
    preempted: &mut PreemptedWorkloads,
    placer: &mut dyn Placer,
) {
    // One variant of a job is admitted at a time, and that one has a better flavor (§4.8 step 1).
    if has_better_variant(state, entry) {
        entry.outcome = CycleOutcome::BetterVariantAdmitted;
        entry.targets.clear();
        return;
    }
    let earlier = preempted.relevant_to(&state.quota, &state.topology, &state.queues, entry);
    recompute_assignment(state, entry, &earlier);
    let mode = entry.assignment.mode();
    if let Some(outcome) = refusal(state, entry, mode) {
        return refuse(state, entry, outcome);
    }
    // A target releases its quota once, and an earlier entry has claimed it (§4.8 step 7).
    let taken = overlaps(entry, &earlier) || preempted.include_replaced_slice(entry);
    // Pods that are to leave take room still.
    let fits = entry.assignment.awaits_leaving_pods || fits_without(state, entry, &earlier);
    if taken || !fits {
        entry.outcome = CycleOutcome::Skipped;
        entry.targets_taken = taken;
        entry.targets.clear();
        return;
    }
    entry.outcome = match mode {
        FlavorAssignmentMode::Preempt => {
            preemption_on_clusters::preempt(state, entry, &earlier, placer)
        }
        // It fits once the targets of earlier entries are evicted, or pods have left their nodes; until then it gets
        // no reservation.
        FlavorAssignmentMode::DeferredFit => CycleOutcome::Deferred,
        FlavorAssignmentMode::Fit | FlavorAssignmentMode::NoFit => grant(state, entry, placer),
    };
    if let CycleOutcome::NoClusterCapacity(key) = entry.outcome {
        entry.outcome = retry_other_flavors(state, entry, &earlier, key, placer);
    }
    // Without a worker cluster the entry gets no quota, and later entries may use it.
    if !matches!(entry.outcome, CycleOutcome::NoClusterCapacity(_)) {
        preempted.add(&state.quota, &state.workloads, &state.queues, entry);
        charge_assumed(state, entry);
    }
}

fn has_better_variant(state: &State, entry: &CycleEntry) -> bool {
    is_variant(entry) && variants::better_variant(state, entry.workload, entry.queue).is_some()
}

fn is_variant(entry: &CycleEntry) -> bool {
    entry.class.allowed.is_some()
}

/// The outcome of an entry that neither fits nor may preempt.
fn refusal(state: &State, entry: &CycleEntry, mode: FlavorAssignmentMode) -> Option<CycleOutcome> {
    match mode {
        FlavorAssignmentMode::NoFit => Some(CycleOutcome::NoFit),
        FlavorAssignmentMode::Preempt if entry.targets.is_empty() => {
            Some(CycleOutcome::NoCandidates)
        }
        FlavorAssignmentMode::Preempt if state.is_preemption_gated(entry.workload) => {
            Some(CycleOutcome::PreemptionGated)
        }
        FlavorAssignmentMode::Preempt
        | FlavorAssignmentMode::DeferredFit
        | FlavorAssignmentMode::Fit => None,
    }
}

fn refuse(state: &mut State, entry: &mut CycleEntry, outcome: CycleOutcome) {
    entry.outcome = outcome;
    if outcome == CycleOutcome::NoCandidates {
        reserve_quota(state, entry);
    }
    // A gated entry claims no targets and reserves no quota against later entries.
    if outcome == CycleOutcome::PreemptionGated {
        entry.targets.clear();
    }
}

/// The outcome of an entry that fits.
fn grant(state: &State, entry: &CycleEntry, placer: &mut dyn Placer) -> CycleOutcome {
    let migration = if is_variant(entry) {
        variants::migration(state, entry.workload, entry.queue)
    } else {
        None
    };
    match migration {
        Some(Migration::From(from)) => CycleOutcome::Migrating { from },
        Some(Migration::Refused) => CycleOutcome::MigrationRefused,
        None => place(entry, placer),
    }
}

fn place(entry: &CycleEntry, placer: &mut dyn Placer) -> CycleOutcome {
    match placer.place(entry) {
        Ok(cluster) => CycleOutcome::Reserved { cluster },
        Err(key) => CycleOutcome::NoClusterCapacity(key),
    }
}

/// Whether a target of the entry is among these Workloads.
fn overlaps(entry: &CycleEntry, preempted: &[WorkloadId]) -> bool {
    entry.targets.iter().any(|target| preempted.contains(&target.workload))
}

/// Evaluates an entry again with the flavors of its nomination: if its targets overlap those of an earlier entry, as if these
/// were gone; if only its topology domains were taken, against the present usage.
fn recompute_assignment(state: &mut State, entry: &mut CycleEntry, preempted: &[WorkloadId]) {
    // An old slice that is a target hands over no quota, so charging the difference is not enough.
    let replaced = || entry.replaced_slice.is_some_and(|old| preempted.contains(&old));
    let overlap =
        state.settings.recompute_upon_target_overlap && (overlaps(entry, preempted) || replaced());
    // The domains of an entry that waits for pods are taken until these have left.
    let moves = state.settings.tas_recompute_within_cycle && !entry.assignment.awaits_leaving_pods;
    if !(overlap || moves && lost_topology_domains(state, entry, preempted)) {
        return;
    }
    let removed = if overlap { preempted } else { &[] };
    simulate_removal(state, removed, |state| {
        let nominated = nominated_flavors(entry);
        let nominated = Some(nominated.as_slice());
        evaluate(state, entry, EvaluationLimits { nominated, ..EvaluationLimits::default() });
    });
    entry.targets_recomputed |= overlap;
    // It fits without the targets of earlier entries, but these still run (§4.8 step 2).
    if overlap && entry.assignment.mode() == FlavorAssignmentMode::Fit {
        entry.assignment.deferred = true;
    }
}

/// Whether quota suffices once all targets are gone, but the topology domains are taken.
fn lost_topology_domains(state: &mut State, entry: &CycleEntry, preempted: &[WorkloadId]) -> bool {
    if !state.topology.any() {
        return false;
    }
    let all = all_targets(entry, preempted);
    simulate_removal(state, &all, |state| {
        quota_suffices(&state.quota, &state.queues, entry) && !topology::still_fits(state, entry)
    })
}

/// The targets of the cycle and of the entry.
pub(super) fn all_targets(entry: &CycleEntry, preempted: &[WorkloadId]) -> WorkloadIds {
    let own = entry.targets.iter().map(|target| target.workload);
    preempted.iter().copied().chain(own).collect()
}

fn quota_suffices(quota: &QuotaLayer, queues: &QueueLayer, entry: &CycleEntry) -> bool {
    let node = queues.at(entry.queue).node;
    let mut usage = entry.assignment.usage.iter();
    usage.all(|&(slot, amount)| amount <= available(quota.tree(), node, slot).clip())
}

/// The flavors of the entry's assignment.
pub(super) fn nominated_flavors(entry: &CycleEntry) -> SmallVec<[NominatedFlavor; 4]> {
    let mut nominated = SmallVec::new();
    for one in &entry.assignment.pod_sets {
        let pod_set = u16::try_from(one.pod_set).unwrap_or(u16::MAX);
        nominated.extend(one.flavor_assignments.iter().map(|choice| NominatedFlavor {
            pod_set,
            resource: choice.resource,
            flavor: choice.flavor,
        }));
    }
    nominated
}

/// Whether the entry needs preemption, and fits without targets that it may preempt.
pub(super) fn has_usable_targets(
    state: &mut State,
    entry: &CycleEntry,
    preempted: &[WorkloadId],
) -> bool {
    let may = entry.assignment.mode() == FlavorAssignmentMode::Preempt
        && !entry.targets.is_empty()
        && !state.is_preemption_gated(entry.workload)
        && !overlaps(entry, preempted);
    may && fits_without(state, entry, preempted)
}

/// Whether the entry fits once the targets of the cycle and its own are gone.
fn fits_without(state: &mut State, entry: &CycleEntry, preempted: &[WorkloadId]) -> bool {
    let all = all_targets(entry, preempted);
    simulate_removal(state, &all, |state| {
        quota_suffices(&state.quota, &state.queues, entry) && topology::still_fits(state, entry)
    })
}

/// The usage that an entry counts for during the cycle: all of it, or, for an entry without targets that needs
/// preemption, what it may reserve.
pub(super) fn assumed_usage(
    quota: &QuotaLayer,
    queues: &QueueLayer,
    entry: &CycleEntry,
) -> SlotUsage {
    if entry.assignment.mode() != FlavorAssignmentMode::Preempt || !entry.targets.is_empty() {
        return entry.assignment.usage.clone();
    }
    let node = queues.at(entry.queue).node;
    let wanted = entry.assignment.usage.iter();
    wanted
        .map(|&(slot, amount)| {
            let cell = quota.tree().at(node, slot);
            // The bounds of §4.8 step 5; as in Kueue, only the bound without borrowing is clipped
            // at zero.
            let bound = match (entry.assignment.borrow > 0, cell.borrowing_limit) {
                (true, None) => return (slot, amount),
                (true, Some(limit)) => cell.nominal + limit - cell.usage,
                (false, _) => (cell.nominal - cell.usage).clip(),
            };
            (slot, amount.min(bound))
        })
        .collect()
}

/// Reserves quota for an entry that needs preemption but has no targets, so that later entries cannot take it. A
/// ClusterQueue that may reclaim from any Workload needs no reservation.
fn reserve_quota(state: &mut State, entry: &mut CycleEntry) {
    if state.queues.at(entry.queue).preemption.reclaim == PreemptionPolicy::Any {
        return;
    }
    let node = state.queues.at(entry.queue).node;
    let usage = assumed_usage(&state.quota, &state.queues, entry);
    state.quota.charge(node, &usage);
    topology::reserve(&state.settings, &state.workloads, &mut state.topology, entry);
}

fn charge_assumed(state: &mut State, entry: &CycleEntry) {
    let node = state.queues.at(entry.queue).node;
    state.quota.charge(node, &entry.assignment.usage);
    topology::assume(&state.settings, &state.workloads, &mut state.topology, entry);
}
