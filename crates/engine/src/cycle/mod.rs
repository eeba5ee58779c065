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
mod wake;

pub use crate::cycle::nominate::{Entry, Outcome};
pub use crate::cycle::requeue::Requeue;

use crate::placer::Placer;
use crate::state::State;
use crate::time::Time;

/// Buffers of a cycle, kept between cycles.
#[derive(Debug, Default)]
pub(crate) struct Cycle {
    /// One per head, in the order in which they were processed; heads rejected before that come last.
    pub(crate) entries: Vec<Entry>,
    heads: heads::Heads,
    order: order::Order,
}

/// Runs one cycle. With nobody in line nothing happens and the cycle does not count.
pub(crate) fn run(state: &mut State, cycle: &mut Cycle, now: Time, placer: &mut dyn Placer) {
    cycle.entries.clear();
    wake::refresh(state);
    wake::carry_out(state);
    if !cycle.heads.take(state) {
        return;
    }
    state.cycle += 1;
    for &(queue, workload) in cycle.heads.all() {
        cycle.entries.push(nominate::nominate(state, queue, workload));
    }
    let mark = state.tree.journal.mark();
    let mut victims = Vec::new();
    cycle.order.fill(state, &cycle.entries);
    while let Some(index) = cycle.order.pop(state, &cycle.entries) {
        process::process(state, &mut cycle.entries[index], &mut victims, placer);
    }
    state.tree.rewind(mark);
    state.tree.journal.close();
    admit::forget_assumed(state, &cycle.entries);
    cycle.order.arrange(&mut cycle.entries);
    for entry in &mut cycle.entries {
        match entry.outcome {
            Outcome::Reserved { .. } => admit::admit(state, entry, now),
            _ => requeue::requeue(state, entry),
        }
    }
}
