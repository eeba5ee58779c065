//! Processes one entry against the usage of the entries before it.
//!
//! Source: docs/reference/kueue.md §4.8.

use smallvec::SmallVec;

use crate::cycle::entry::{CycleEntry, CycleOutcome};
use crate::cycle::nominate::{assign_topology, evaluate};
use crate::cycle::preempted_workloads::PreemptedWorkloads;
use crate::flavors::assignment::FlavorAssignmentMode;
use crate::ids::{FlavorId, ResourceId, WorkloadId};
use crate::placer::Placer;
use crate::preemption::simulation::without;
use crate::preemption::target::WorkloadIds;
use crate::quota::available::available;
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
    let is_variant = entry.class.allowed.is_some();
    // One variant of a job is admitted at a time, and that one has a better flavor (§4.8 step 1).
    if is_variant && variants::better_variant(state, entry.workload, entry.queue).is_some() {
        entry.outcome = CycleOutcome::BetterVariantAdmitted;
        entry.targets.clear();
        return;
    }
    let gone = preempted.relevant_to(state, entry);
    evaluate_again(state, entry, &gone);
    let mode = entry.assignment.mode();
    if mode == FlavorAssignmentMode::NoFit {
        entry.outcome = CycleOutcome::NoFit;
        return;
    }
    if mode == FlavorAssignmentMode::Preempt && entry.targets.is_empty() {
        entry.outcome = CycleOutcome::NoCandidates;
        reserve_quota(state, entry);
        return;
    }
    if mode == FlavorAssignmentMode::Preempt && state.is_preemption_gated(entry.workload) {
        // A gated entry claims no targets and reserves no quota against later entries.
        entry.outcome = CycleOutcome::PreemptionGated;
        entry.targets.clear();
        return;
    }
    // A target releases its quota once, and an earlier entry has claimed it (§4.8 step 7).
    let taken = overlaps(entry, &gone) || preempted.include_replaced_slice(entry);
    if taken || !fits_without(state, entry, &gone) {
        entry.outcome = CycleOutcome::Skipped;
        entry.targets.clear();
        return;
    }
    entry.outcome = match mode {
        FlavorAssignmentMode::Preempt => CycleOutcome::Preempting,
        // It fits once the targets of earlier entries are evicted; until then it gets no
        // reservation.
        FlavorAssignmentMode::DeferredFit => CycleOutcome::Deferred,
        FlavorAssignmentMode::Fit | FlavorAssignmentMode::NoFit if is_variant => {
            grant_variant(state, entry, placer)
        }
        FlavorAssignmentMode::Fit | FlavorAssignmentMode::NoFit => grant(entry, placer),
    };
    // Without a worker cluster the entry gets no quota, and later entries may use it.
    if !matches!(entry.outcome, CycleOutcome::NoClusterCapacity(_)) {
        preempted.add(state, entry);
        charge_assumed(state, entry);
    }
}

/// The outcome of a variant that fits.
fn grant_variant(state: &State, entry: &CycleEntry, placer: &mut dyn Placer) -> CycleOutcome {
    match variants::migration(state, entry.workload, entry.queue) {
        Some(Migration::From(from)) => CycleOutcome::Migrating { from },
        Some(Migration::Refused) => CycleOutcome::MigrationRefused,
        None => grant(entry, placer),
    }
}

fn grant(entry: &CycleEntry, placer: &mut dyn Placer) -> CycleOutcome {
    match placer.place(entry) {
        Ok(cluster) => CycleOutcome::Reserved { cluster },
        Err(key) => CycleOutcome::NoClusterCapacity(key),
    }
}

fn overlaps(entry: &CycleEntry, preempted: &[WorkloadId]) -> bool {
    entry.targets.iter().any(|target| preempted.contains(&target.workload))
}

/// Evaluates an entry again with its flavors pinned: if its targets overlap those of an earlier entry, as if these
/// were gone; if only its topology domains were taken, against the present usage.
fn evaluate_again(state: &mut State, entry: &mut CycleEntry, preempted: &[WorkloadId]) {
    // An old slice that is a target hands over no quota, so charging the difference is not enough.
    let overlap = overlaps(entry, preempted)
        || entry.replaced_slice.is_some_and(|old| preempted.contains(&old));
    if !overlap && !lost_topology_domains(state, entry, preempted) {
        return;
    }
    let gone = if overlap { preempted } else { &[] };
    without(state, gone, |state| {
        let pins = pins(entry);
        evaluate(state, entry, &[], Some(&pins));
        assign_topology(state, entry);
    });
    // It fits without the targets of earlier entries, but these still run (§4.8 step 2).
    if overlap && entry.assignment.mode() == FlavorAssignmentMode::Fit {
        entry.assignment.deferred = true;
    }
}

/// Whether quota suffices once all targets are gone, but the topology domains are taken.
fn lost_topology_domains(state: &mut State, entry: &CycleEntry, preempted: &[WorkloadId]) -> bool {
    if !state.topologies.any() {
        return false;
    }
    let all = all_targets(entry, preempted);
    without(state, &all, |state| {
        quota_suffices(state, entry) && !topology::still_fits(state, entry)
    })
}

/// The targets of the cycle and of the entry.
fn all_targets(entry: &CycleEntry, preempted: &[WorkloadId]) -> WorkloadIds {
    let own = entry.targets.iter().map(|target| target.workload);
    preempted.iter().copied().chain(own).collect()
}

fn quota_suffices(state: &State, entry: &CycleEntry) -> bool {
    let node = state.queue(entry.queue).node;
    let mut usage = entry.assignment.usage.iter();
    usage.all(|&(slot, amount)| amount <= available(&state.tree, node, slot).clip())
}

fn pins(entry: &CycleEntry) -> SmallVec<[(u16, ResourceId, FlavorId); 4]> {
    let mut pins = SmallVec::new();
    for (index, one) in entry.assignment.pod_sets.iter().enumerate() {
        let index = u16::try_from(index).unwrap_or(u16::MAX);
        pins.extend(
            one.flavor_assignments.iter().map(|choice| (index, choice.resource, choice.flavor)),
        );
    }
    pins
}

/// Whether the entry fits once the targets of the cycle and its own are gone.
fn fits_without(state: &mut State, entry: &CycleEntry, preempted: &[WorkloadId]) -> bool {
    let all = all_targets(entry, preempted);
    without(state, &all, |state| quota_suffices(state, entry) && topology::still_fits(state, entry))
}

/// The usage that an entry counts for during the cycle: all of it, or, for an entry without targets that needs
/// preemption, what it may reserve.
pub(super) fn assumed_usage(state: &State, entry: &CycleEntry) -> SlotUsage {
    if entry.assignment.mode() != FlavorAssignmentMode::Preempt || !entry.targets.is_empty() {
        return entry.assignment.usage.clone();
    }
    let node = state.queue(entry.queue).node;
    let wanted = entry.assignment.usage.iter();
    wanted
        .map(|&(slot, amount)| {
            let cell = state.tree.at(node, slot);
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
    if state.queue(entry.queue).preemption.reclaim == PreemptionPolicy::Any {
        return;
    }
    let node = state.queue(entry.queue).node;
    let usage = assumed_usage(state, entry);
    state.tree.charge(node, &usage);
    topology::reserve(state, entry);
}

fn charge_assumed(state: &mut State, entry: &CycleEntry) {
    let node = state.queue(entry.queue).node;
    state.tree.charge(node, &entry.assignment.usage);
    topology::assume(state, entry);
}
