//! Contenders of the fair-sharing tournament, and which of two goes first. Source: docs/reference/kueue.md §4.6.

use std::cmp::Ordering;

use crate::amount::Amount;

use crate::cycle::entry::CycleEntry;
use crate::ids::NodeId;
use crate::quota::dominant_share::{DominantShare, share};
use crate::state::State;
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
    let leaf = state.queue(entries[index].queue).node;
    let mark = state.tree.journal.mark();
    state.tree.charge(leaf, &entries[index].assignment.usage);
    let candidate = measure(state, entries, node, index);
    state.tree.rewind(mark);
    state.tree.journal.close();
    candidate
}

/// Measures the share of `node`; the entry must be charged.
pub(super) fn measure(
    state: &State,
    entries: &[CycleEntry],
    node: NodeId,
    index: usize,
) -> TournamentContender {
    let usage = &entries[index].assignment.usage;
    let borrows = usage
        .iter()
        .any(|&(slot, _)| charged(usage, slot) > Amount::ZERO && state.tree.borrows(node, slot));
    TournamentContender { entry: index, share: share(&state.tree, node), borrows }
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
    preemptor_first(state, a, b)
        .then(borrowing)
        .then_with(|| left.share.cmp(&right.share))
        .then_with(|| by_age(state, a, b))
        .then_with(|| left.entry.cmp(&right.entry))
        .is_lt()
}

/// Whether the head still waits for the preemption targets of its present request. Its queue position is kept even if
/// the request changed; precedence over other ClusterQueues is not.
pub(crate) fn waits(state: &State, entry: &CycleEntry) -> bool {
    state.queue(entry.queue).pending.is_unaltered_preemptor(entry.workload)
}

/// Under the gate PrioritizePreemptorWorkloads, heads with pending preemption go first.
pub(super) fn preemptor_first(state: &State, left: &CycleEntry, right: &CycleEntry) -> Ordering {
    if !state.settings.prioritize_preemptor_workloads {
        return Ordering::Equal;
    }
    waits(state, right).cmp(&waits(state, left))
}

/// Higher priority first (gate PrioritySortingWithinCohort), then older.
pub(super) fn by_age(state: &State, left: &CycleEntry, right: &CycleEntry) -> Ordering {
    let (a, b) = (state.workloads.at(left.workload), state.workloads.at(right.workload));
    let by_time = a.queued_at.cmp(&b.queued_at);
    if state.settings.priority_sorting_within_cohort {
        b.priority.cmp(&a.priority).then(by_time)
    } else {
        by_time
    }
}
