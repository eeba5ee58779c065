//! The order in which the entries of a cycle are processed.
//!
//! Classical: less borrowing, then higher priority, then older. Fair sharing: a tournament per cohort tree, repeated
//! after each entry. Ties are broken by the names of the ClusterQueues. Source: docs/reference/kueue.md §4.6.

use std::cmp::Reverse;

use crate::cycle::contender::is_preemptor;
use crate::cycle::entry::{CycleEntry, CycleOutcome};
use crate::cycle::tournament::Tournament;
use crate::queues::layer::QueueLayer;
use crate::settings::EngineSettings;
use crate::state::State;
use crate::time::Time;
use crate::workloads::layer::WorkloadLayer;

/// Hands out entries in processing order. Its buffers are kept between cycles.
#[derive(Debug, Default)]
pub(super) struct ProcessingOrder {
    /// Entries still to process, next one last; empty with fair sharing.
    remaining: Vec<OrderKey>,
    tournament: Tournament,
    /// The order in which entries were handed out.
    sequence: Vec<usize>,
    /// For each entry, its position in that order.
    places: Vec<usize>,
}

/// Sort key of an entry, smallest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OrderKey {
    new: bool,
    borrow: u32,
    priority: Reverse<i64>,
    queued_at: Time,
    entry: usize,
}

impl ProcessingOrder {
    /// Begins a cycle.
    pub(super) fn begin(&mut self, state: &State) {
        self.remaining.clear();
        if state.settings.fair_sharing.is_some() {
            self.tournament.begin(&state.quota);
        }
    }

    /// Adds an entry that is not decided yet.
    pub(super) fn enter(&mut self, state: &mut State, entries: &[CycleEntry], index: usize) {
        let entry = &entries[index];
        // A head that was rejected before evaluation (§4.2) is not processed.
        if entry.outcome != CycleOutcome::Nominated {
            return;
        }
        if state.settings.fair_sharing.is_some() {
            self.tournament.enter(state, entries, index);
        } else {
            self.remaining.push(order_key(
                &state.settings,
                &state.workloads,
                &state.queues,
                index,
                entry,
            ));
        }
    }

    /// Sorts the entries after the last was added.
    pub(super) fn close(&mut self, state: &mut State, entries: &[CycleEntry]) {
        if state.settings.fair_sharing.is_some() {
            self.tournament.close(state, entries);
        } else {
            self.remaining.sort_unstable_by(|left, right| right.cmp(left));
        }
    }

    /// The next entry to process.
    pub(super) fn pop(&mut self, state: &mut State, entries: &[CycleEntry]) -> Option<usize> {
        let next = if state.settings.fair_sharing.is_some() {
            self.tournament.pop(state, entries)
        } else {
            self.remaining.pop().map(|order_key| order_key.entry)
        }?;
        self.sequence.push(next);
        Some(next)
    }

    /// Clears the order of the last cycle.
    pub(super) fn clear(&mut self) {
        self.sequence.clear();
        self.places.clear();
    }

    /// Computes the final positions of `entries` entries: in the order in which they were handed out, then those that
    /// never were.
    pub(super) fn number(&mut self, entries: usize) {
        let Self { places, sequence, .. } = self;
        places.clear();
        places.resize(entries, usize::MAX);
        for (place, &index) in sequence.iter().enumerate() {
            places[index] = place;
        }
        // Rejected heads were never handed out; they follow in the order of nomination.
        let rejected = places.iter_mut().filter(|place| **place == usize::MAX);
        for (place, behind) in rejected.zip(sequence.len()..) {
            *place = behind;
        }
    }

    /// Swaps the entry at `at` into its final position. Returns false if it is there already.
    pub(super) fn swap(&mut self, entries: &mut [CycleEntry], at: usize) -> bool {
        let Some(&place) = self.places.get(at).filter(|place| **place != at) else {
            return false;
        };
        entries.swap(at, place);
        self.places.swap(at, place);
        true
    }
}

fn order_key(
    settings: &EngineSettings,
    workloads: &WorkloadLayer,
    queues: &QueueLayer,
    index: usize,
    entry: &CycleEntry,
) -> OrderKey {
    let workload = workloads.at(entry.workload);
    let priority = if settings.priority_sorting_within_cohort { workload.priority } else { 0 };
    OrderKey {
        // Kueue's first key, an existing reservation (§4.6), is not needed: second passes precede
        // the cycle.
        new: !(settings.prioritize_preemptor_workloads && is_preemptor(queues, entry)),
        borrow: entry.nominated_borrow,
        priority: Reverse(priority),
        queued_at: workload.queued_at,
        entry: index,
    }
}
