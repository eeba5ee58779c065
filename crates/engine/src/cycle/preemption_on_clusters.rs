//! Preemption for an entry that needs a worker cluster as well as quota.
//!
//! An entry without room on any cluster may preempt although its quota is free. One with targets for quota preempts them only if
//! that gives it a cluster: the targets of the nomination free quota, but perhaps on several clusters. They are preempted only if
//! some cluster has capacity for the entry after them. Otherwise targets are searched among the Workloads of one cluster after
//! the other, and the cheapest set counts: the fewest targets, then those of the lowest priority, then those that were admitted
//! last. Source: docs/reference/dispatch.md §1.

use std::cmp::Reverse;

use crate::cycle::entry::{CycleEntry, CycleOutcome};
use crate::cycle::nominate::{EvaluationLimits, evaluate};
use crate::cycle::preemption_for_room::{add_targets, may_preempt};
use crate::cycle::process::{all_targets, has_usable_targets, nominated_flavors};
use crate::ids::{RequeueKey, WorkloadId};
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
    let on_cluster = |state: &mut State, placer: &mut dyn Placer, candidates: &[WorkloadId]| {
        let mut found = targets_among(state, entry, earlier, candidates)?;
        let has_room = placer.fits_after(&found, &all_targets(&found, earlier))
            || add_targets(state, &mut found, earlier, candidates, placer);
        has_room.then_some(found)
    };
    let Some(found) = cheapest(state, entry, placer, on_cluster) else {
        // An eviction that gives the entry no cluster helps nothing.
        entry.targets.clear();
        return CycleOutcome::NoClusterCapacity(placer.refuse_after(entry, &gone));
    };
    *entry = found;
    CycleOutcome::Preempting
}

/// The outcome of an entry whose quota is free, and that no cluster takes. It waits under `key`, or preempts.
pub(super) fn preempt_for_room(
    state: &mut State,
    entry: &mut CycleEntry,
    earlier: &[WorkloadId],
    key: RequeueKey,
    placer: &mut dyn Placer,
) -> CycleOutcome {
    if !may_preempt(state, entry) {
        return CycleOutcome::NoClusterCapacity(key);
    }
    let on_cluster = |state: &mut State, placer: &mut dyn Placer, candidates: &[WorkloadId]| {
        let mut found = entry.clone();
        add_targets(state, &mut found, earlier, candidates, placer).then_some(found)
    };
    let Some(found) = cheapest(state, entry, placer, on_cluster) else {
        return CycleOutcome::NoClusterCapacity(placer.refuse_after(entry, &[]));
    };
    *entry = found;
    CycleOutcome::Preempting
}

/// The entry with the cheapest targets of those that `on_cluster` finds on one cluster each.
fn cheapest(
    state: &mut State,
    entry: &CycleEntry,
    placer: &mut dyn Placer,
    on_cluster: impl Fn(&mut State, &mut dyn Placer, &[WorkloadId]) -> Option<CycleEntry>,
) -> Option<CycleEntry> {
    let mut best: Option<(PreemptionCost, CycleEntry)> = None;
    for candidates in placer.preemptible(entry) {
        let Some(found) = on_cluster(state, placer, &candidates) else {
            continue;
        };
        let cost = cost(state, &found);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, found));
        }
    }
    best.map(|(_, found)| found)
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
    let limits = EvaluationLimits {
        nominated: Some(&nominated),
        candidates: Some(candidates),
        ..EvaluationLimits::default()
    };
    simulate_removal(state, earlier, |state| evaluate(state, &mut found, limits));
    has_usable_targets(state, &found, earlier).then_some(found)
}

fn cost(state: &State, entry: &CycleEntry) -> PreemptionCost {
    let targets = || entry.targets.iter().map(|target| target.workload);
    let priority = targets().map(|id| state.workloads.at(id).priority).max().unwrap_or(0);
    let reserved = |id| state.workloads.admission(id).map(|one| one.reserved_at);
    let since = targets().filter_map(reserved).min().unwrap_or(Time(0));
    (entry.targets.len(), priority, Reverse(since))
}
