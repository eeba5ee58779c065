//! One scheduling cycle.
//!
//! Wake whom the last events may have helped. Replace machines that failed under holders. Take the head of every active queue. Nominate: compute what each head
//! would get, all against the same state. Order the heads. Process them in order, each seeing what those before it took.
//! Rewind the state, then enter what was decided and requeue the rest. Source: spec/kueue-core.md §4.1.

mod admit;
mod nominate;
mod order;
mod process;
mod replace;
mod requeue;
mod tournament;
mod wake;

pub use crate::cycle::nominate::{Entry, Outcome};
pub(crate) use crate::cycle::replace::Failures;
pub use crate::cycle::requeue::Requeue;

use crate::ids::{QueueId, WorkloadId};
use crate::placer::Placer;
use crate::state::State;
use crate::time::Time;

/// Buffers of a cycle, kept between cycles.
#[derive(Debug, Default)]
pub(crate) struct Cycle {
    /// Holders whose machine failed; then one per head, in the order in which they were processed; heads rejected before
    /// that come last.
    pub(crate) entries: Vec<Entry>,
    heads: Vec<(QueueId, WorkloadId)>,
    order: order::Order,
}

/// Runs one cycle. Without heads nothing happens and the cycle does not count.
pub(crate) fn run(state: &mut State, cycle: &mut Cycle, now: Time, placer: &mut dyn Placer) {
    cycle.entries.clear();
    wake::refresh(state);
    wake::carry_out(state);
    let replaced = replace::replace(state);
    take_heads(state, &mut cycle.heads);
    if cycle.heads.is_empty() && replaced.is_empty() {
        return;
    }
    state.cycle += 1;
    for &(queue, workload) in &cycle.heads {
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
    cycle.entries.splice(0..0, replaced);
}

/// Pops the head of every active queue, in the order of queue names.
fn take_heads(state: &mut State, heads: &mut Vec<(QueueId, WorkloadId)>) {
    heads.clear();
    let listed = std::mem::take(&mut state.with_heads);
    for id in listed {
        let queue = state.queues[id.index()].as_mut().expect("invariant: listed queues exist");
        if !queue.line.has_head() {
            queue.listed = false;
            continue;
        }
        state.with_heads.push(id);
        if !queue.active {
            continue;
        }
        let Some(workload) = queue.line.head(&state.workloads) else {
            continue;
        };
        queue.line.remove(workload, &mut state.workloads);
        heads.push((id, workload));
    }
    let names = &state.names.queues;
    heads.sort_unstable_by(|left, right| names.name(left.0).cmp(names.name(right.0)));
}
