//! Contenders of the fair-sharing tournament, and which of two goes first. Source: docs/reference/kueue.md §4.6.

use std::cmp::Ordering;

use crate::amount::Amount;
use crate::cycle::entry::CycleEntry;
use crate::ids::NodeId;
use crate::queues::layer::QueueLayer;
use crate::quota::dominant_share::{DominantShare, share};
use crate::quota::layer::QuotaLayer;
use crate::settings::EngineSettings;
use crate::state::State;
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::usage::charged;

/// The best entry of a subtree, as it competes one level up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TournamentContender {
    pub(super) entry: usize,
    share: DominantShare,
    borrows: bool,
}

/// Measures the share of `node` with the entry's usage charged. Usage is the same afterwards.
pub(crate) fn weigh(
    state: &mut State,
    entries: &[CycleEntry],
    node: NodeId,
    index: usize,
) -> TournamentContender {
    let leaf = state.queues.at(entries[index].queue).node;
    let mark = state.quota.begin_simulation();
    state.quota.charge(leaf, &entries[index].assignment.usage);
    let contender = measure(&state.quota, entries, node, index);
    state.quota.end_simulation(mark);
    contender
}

/// Measures the share of `node`; the entry must be charged.
pub(super) fn measure(
    quota: &QuotaLayer,
    entries: &[CycleEntry],
    node: NodeId,
    index: usize,
) -> TournamentContender {
    let usage = &entries[index].assignment.usage;
    // Only pairs that the entry requests make it a borrower (§4.6).
    let borrows = usage
        .iter()
        .any(|&(slot, _)| charged(usage, slot) > Amount::ZERO && quota.tree().borrows(node, slot));
    TournamentContender { entry: index, share: share(quota.tree(), node), borrows }
}

pub(super) fn wins(
    state: &State,
    entries: &[CycleEntry],
    left: TournamentContender,
    right: TournamentContender,
) -> bool {
    let (a, b) = (&entries[left.entry], &entries[right.entry]);
    let borrowing = if state.settings.fair_sharing_prioritize_non_borrowing {
        left.borrows.cmp(&right.borrows)
    } else {
        Ordering::Equal
    };
    preemptor_first(&state.settings, &state.queues, a, b)
        .then(borrowing)
        .then_with(|| left.share.cmp(&right.share))
        .then_with(|| by_age(&state.settings, &state.workloads, a, b))
        // Entries are in the order of the names of their ClusterQueues, which breaks the last tie.
        .then_with(|| left.entry.cmp(&right.entry))
        .is_lt()
}

/// Whether the head still waits for the preemption targets of its present request. Its queue position is kept even if
/// the request changed; precedence over other ClusterQueues is not.
pub(crate) fn is_preemptor(queues: &QueueLayer, entry: &CycleEntry) -> bool {
    queues.at(entry.queue).pending.is_unaltered_preemptor(entry.workload)
}

/// Under the gate PrioritizePreemptorWorkloads, heads with pending preemption go first.
pub(super) fn preemptor_first(
    settings: &EngineSettings,
    queues: &QueueLayer,
    left: &CycleEntry,
    right: &CycleEntry,
) -> Ordering {
    if !settings.prioritize_preemptor_workloads {
        return Ordering::Equal;
    }
    is_preemptor(queues, right).cmp(&is_preemptor(queues, left))
}

/// Higher priority first (gate PrioritySortingWithinCohort), then older.
pub(super) fn by_age(
    settings: &EngineSettings,
    workloads: &WorkloadLayer,
    left: &CycleEntry,
    right: &CycleEntry,
) -> Ordering {
    let (a, b) = (workloads.at(left.workload), workloads.at(right.workload));
    let by_time = a.queued_at.cmp(&b.queued_at);
    if settings.priority_sorting_within_cohort {
        b.priority.cmp(&a.priority).then(by_time)
    } else {
        by_time
    }
}
