//! The order in which the heads of a cycle are processed.
//!
//! Without fair sharing: less borrowing, higher priority, older. With it: a tournament per tree, decided anew after each
//! head. Ties end with the names of the queues. Source: spec/kueue-core.md §4.6.

use crate::cycle::nominate::{Entry, Outcome};
use crate::cycle::tournament::Tournament;
use crate::state::State;

/// Hands out the entries one by one. Its buffers are kept between cycles.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Entries still to come, next one last; unused with fair sharing.
    waiting: Vec<usize>,
    tournament: Tournament,
    /// The order in which entries were handed out.
    sequence: Vec<usize>,
}

impl Order {
    /// Starts with the entries about which nothing is decided yet.
    pub(super) fn fill(&mut self, state: &mut State, entries: &[Entry]) {
        let Self { waiting, tournament, sequence } = self;
        let open = |&index: &usize| entries[index].outcome == Outcome::Open;
        sequence.clear();
        waiting.clear();
        waiting.extend((0..entries.len()).filter(open));
        if state.settings.fair_sharing.is_some() {
            tournament.fill(state, entries, waiting);
            return;
        }
        waiting.sort_by(|&left, &right| {
            let (a, b) = (&entries[left], &entries[right]);
            preemptor_first(state, a, b)
                .then(a.nominated_borrow.cmp(&b.nominated_borrow))
                .then_with(|| by_age(state, a, b))
        });
        waiting.reverse();
    }

    /// The next entry to process.
    pub(super) fn pop(&mut self, state: &mut State, entries: &[Entry]) -> Option<usize> {
        let next = if state.settings.fair_sharing.is_some() {
            self.tournament.pop(state, entries)
        } else {
            self.waiting.pop()
        }?;
        self.sequence.push(next);
        Some(next)
    }

    /// Brings the entries into the order in which they were handed out; those that never were stay behind, in their
    /// order.
    pub(super) fn arrange(&self, entries: &mut Vec<Entry>) {
        let mut places = vec![usize::MAX; entries.len()];
        for (place, &index) in self.sequence.iter().enumerate() {
            places[index] = place;
        }
        let mut tagged: Vec<(usize, Entry)> = places.into_iter().zip(entries.drain(..)).collect();
        tagged.sort_by_key(|(place, _)| *place);
        entries.extend(tagged.into_iter().map(|(_, entry)| entry));
    }
}

/// Under the gate PrioritizePreemptorWorkloads, heads that wait for their victims go first.
pub(super) fn preemptor_first(state: &State, left: &Entry, right: &Entry) -> std::cmp::Ordering {
    if !state.settings.prioritize_preemptors {
        return std::cmp::Ordering::Equal;
    }
    let waits = |one: &Entry| state.queue(one.queue).line.is_preemptor(one.workload);
    waits(right).cmp(&waits(left))
}

/// Higher priority, then older.
pub(super) fn by_age(state: &State, left: &Entry, right: &Entry) -> std::cmp::Ordering {
    let (a, b) = (state.workloads.at(left.workload), state.workloads.at(right.workload));
    let by_time = a.queued_at.cmp(&b.queued_at);
    if state.settings.priority_sorting {
        b.priority.cmp(&a.priority).then(by_time)
    } else {
        by_time
    }
}
