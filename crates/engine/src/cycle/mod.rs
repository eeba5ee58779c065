//! One scheduling cycle.
//!
//! Wake whom the last events may have helped. Take the head of every active queue. Nominate: compute what each head
//! would get, all against the same state. Order the heads. Process them in order, each seeing what those before it took.
//! Rewind the state, then enter what was decided and requeue the rest. Source: spec/kueue-core.md §4.1.

mod admit;
mod heads;
mod nominate;
mod order;
mod process;
mod requeue;
mod tournament;
mod victims;
mod wake;

pub use crate::cycle::nominate::{Entry, Outcome};
pub use crate::cycle::requeue::Requeue;

use crate::ids::{QueueId, WorkloadId};
use crate::placer::Placer;
use crate::state::State;
use crate::time::Time;

/// Buffers of a cycle, kept between cycles.
#[derive(Debug, Default)]
pub(crate) struct Cycle {
    /// One per head, in the order in which they were processed; heads rejected before that come last. What is beyond
    /// `used` belongs to earlier cycles, and its buffers to later ones.
    entries: Vec<Entry>,
    used: usize,
    heads: heads::Heads,
    order: order::Order,
    victims: victims::Victims,
}

impl Cycle {
    /// What was decided.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries[..self.used]
    }

    /// An entry for one more head.
    fn entry(&mut self, state: &State, queue: QueueId, workload: WorkloadId) -> &mut Entry {
        if self.used == self.entries.len() {
            self.entries.push(Entry::new(state, queue, workload));
        } else {
            self.entries[self.used].renew(state, queue, workload);
        }
        self.used += 1;
        &mut self.entries[self.used - 1]
    }
}

/// Runs one cycle. With nobody in line nothing happens and the cycle does not count.
pub(crate) fn run(state: &mut State, cycle: &mut Cycle, now: Time, placer: &mut dyn Placer) {
    cycle.used = 0;
    wake::refresh(state);
    wake::carry_out(state);
    if !cycle.heads.take(state) {
        return;
    }
    state.cycle += 1;
    for at in 0..cycle.heads.all().len() {
        let (queue, workload) = cycle.heads.all()[at];
        nominate::nominate(state, cycle.entry(state, queue, workload));
    }
    let Cycle { entries, used, order, victims, .. } = cycle;
    let entries = &mut entries[..*used];
    let mark = state.tree.journal.mark();
    victims.clear();
    order.fill(state, entries);
    while let Some(index) = order.pop(state, entries) {
        process::process(state, &mut entries[index], victims, placer);
    }
    state.tree.rewind(mark);
    state.tree.journal.close();
    admit::forget_assumed(state, entries);
    order.arrange(entries);
    for entry in entries {
        match entry.outcome {
            Outcome::Reserved { .. } => admit::admit(state, entry, now),
            _ => requeue::requeue(state, entry),
        }
    }
}
