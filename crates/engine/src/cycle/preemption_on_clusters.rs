//! Preemption for an entry that needs a worker cluster as well as quota.
//!
//! The targets of the nomination free quota, but perhaps on several clusters. They are preempted only if some cluster has
//! capacity for the entry after them. Otherwise targets are searched among the Workloads of one cluster after the other,
//! and the cheapest set counts: the fewest targets, then those of the lowest priority, then those that were admitted last.
//! Source: docs/reference/dispatch.md §1.

use std::cmp::Reverse;

use crate::cycle::entry::{CycleEntry, CycleOutcome};
use crate::cycle::nominate::{EvaluationLimits, assign_topology, evaluate};
use crate::cycle::process::{all_targets, fits_without, nominated_flavors, overlaps};
use crate::flavors::assignment::FlavorAssignmentMode;
use crate::ids::WorkloadId;
use crate::placer::Placer;
use crate::preemption::simulation::simulate_removal;
use crate::state::State;
use crate::time::Time;

/// Cost of a set of targets: their number, their highest priority, the earliest reservation among them.
type PreemptionCost = (usize, i64, Reverse<Time>);

/// The outcome of an entry with targets. `earlier` are the targets of entries processed before.
pub(super) fn preempt(
    state: &mut State,
    entry: &mut CycleEntry,
    earlier: &[WorkloadId],
    placer: &mut dyn Placer,
) -> CycleOutcome {
    let gone = all_targets(entry, earlier);
    if placer.fits_after(entry, &gone) {
        return CycleOutcome::Preempting;
    }
    let mut best: Option<(PreemptionCost, CycleEntry)> = None;
    for candidates in placer.preemptible(entry) {
        let Some(found) = targets_among(state, entry, earlier, &candidates) else {
            continue;
        };
        let cost = cost(state, &found);
        let is_cheapest = best.as_ref().is_none_or(|(least, _)| cost < *least);
        if is_cheapest && placer.fits_after(&found, &all_targets(&found, earlier)) {
            best = Some((cost, found));
        }
    }
    let Some((_, found)) = best else {
        // An eviction that gives the entry no cluster helps nothing.
        entry.targets.clear();
        return CycleOutcome::NoClusterCapacity(placer.refuse_after(entry, &gone));
    };
    *entry = found;
    CycleOutcome::Preempting
}

/// The entry with targets among `candidates` only; `None` if these do not suffice.
fn targets_among(
    state: &mut State,
    entry: &CycleEntry,
    earlier: &[WorkloadId],
    candidates: &[WorkloadId],
) -> Option<CycleEntry> {
    let mut found = entry.clone();
    let nominated = nominated_flavors(entry);
    let limits =
        EvaluationLimits { tried: &[], nominated: Some(&nominated), candidates: Some(candidates) };
    simulate_removal(state, earlier, |state| {
        evaluate(state, &mut found, limits);
        assign_topology(state, &mut found);
    });
    let preempts = found.assignment.mode() == FlavorAssignmentMode::Preempt;
    let is_usable = preempts && !found.targets.is_empty() && !overlaps(&found, earlier);
    (is_usable && fits_without(state, &found, earlier)).then_some(found)
}

fn cost(state: &State, entry: &CycleEntry) -> PreemptionCost {
    let targets = || entry.targets.iter().map(|target| target.workload);
    let priority = targets().map(|id| state.workloads.at(id).priority).max().unwrap_or(0);
    let reserved = |id| state.workloads.admission(id).map(|one| one.reserved_at);
    let since = targets().filter_map(reserved).min().unwrap_or(Time(0));
    (entry.targets.len(), priority, Reverse(since))
}
