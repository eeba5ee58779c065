//! One scheduling cycle.
//!
//! Wake whom the last events may have helped. Replace machines that failed under holders. Take the head of every active
//! queue. Nominate: compute what each head would get, all against the same state. Order the heads. Process them in order,
//! each seeing what those before it took. Rewind the state, then enter what was decided and requeue the rest. Source:
//! docs/reference/kueue.md §4.1.
//!
//! All of it can be done in parts of a bounded number of heads, one [`Stage`] after the other, so that a caller with
//! thousands of queues can do something else in between.

mod admit;
mod anew;
mod contest;
mod heads;
mod nominate;
mod order;
mod process;
mod replace;
mod requeue;
mod tournament;
mod victims;
mod wake;

pub use crate::cycle::nominate::{Entry, Outcome};
pub(crate) use crate::cycle::replace::take_back;
pub use crate::cycle::requeue::Requeue;
pub(crate) use crate::cycle::wake::catch_up;

use crate::cycle::wake::Preparation;
use crate::failures::Failure;
use crate::ids::{QueueId, WorkloadId};
use crate::placer::Placer;
use crate::state::State;
use crate::time::Time;

/// What comes next in a cycle, with the number of queues or heads for which it is done.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing: no cycle has begun.
    #[default]
    Rest,
    Prepare(Preparation),
    Wake(usize),
    Replace,
    Turns,
    /// With the state of the books to go back to.
    Nominate {
        from: usize,
        mark: usize,
    },
    Order {
        from: usize,
        mark: usize,
    },
    Process {
        mark: usize,
    },
    /// With the number of heads who may still have places in a topology.
    Rewind {
        left: usize,
        mark: usize,
    },
    Enter(usize),
}

/// A cycle, and buffers that are kept between cycles.
#[derive(Debug, Default)]
pub(crate) struct Cycle {
    stage: Stage,
    now: Time,
    /// Holders whose machine failed; then one per head, in the order in which they were processed; heads rejected before
    /// that come last. What is beyond `used` belongs to earlier cycles, and its buffers to later ones.
    entries: Vec<Entry>,
    /// How many are about holders.
    replaced: usize,
    used: usize,
    /// Holders whose machine is still to be replaced, next one last.
    failed: Vec<Failure>,
    /// Queues of trees in which something was freed.
    woken: Vec<QueueId>,
    heads: heads::Heads,
    order: order::Order,
    victims: victims::Victims,
}

impl Cycle {
    /// What was decided.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries[..self.used]
    }

    /// Begins a cycle. With nobody in line and no machine to replace nothing will happen, and the cycle will not count.
    pub(crate) fn begin(&mut self, state: &mut State, now: Time) {
        self.cut_short(state);
        crate::backoff::end(state, now);
        (self.now, self.replaced, self.used) = (now, 0, 0);
        self.order.clear();
        self.woken.clear();
        crate::topology::rebuild(state);
        self.stage = Stage::Prepare(Preparation::first(state));
    }

    /// Goes on for about so many queues or heads. Returns true when the cycle is complete.
    pub(crate) fn advance(
        &mut self,
        state: &mut State,
        placer: &mut dyn Placer,
        heads: usize,
    ) -> bool {
        let heads = heads.max(1);
        self.stage = match self.stage {
            Stage::Rest => Stage::Rest,
            Stage::Prepare(step) => {
                step.take(state, &mut self.woken).map_or(Stage::Wake(0), Stage::Prepare)
            }
            Stage::Wake(from) => self.wake(state, from, heads),
            Stage::Replace => self.replace(state, heads),
            Stage::Turns => self.take(state, heads),
            Stage::Nominate { from, mark } => self.nominate(state, (from, mark), heads),
            Stage::Order { from, mark } => self.put_in_order(state, (from, mark), heads),
            Stage::Process { mark } => self.process(state, mark, placer, heads),
            Stage::Rewind { left, mark } => self.rewind(state, (left, mark), heads),
            Stage::Enter(from) => self.enter(state, from, heads),
        };
        self.stage == Stage::Rest
    }

    /// Ends a cycle before it is complete: what was processed is entered, and whoever was not stays in line.
    pub(crate) fn cut_short(&mut self, state: &mut State) {
        match self.stage {
            Stage::Rest => return,
            Stage::Prepare(step) => {
                let mut next = Some(step);
                while let Some(step) = next {
                    next = step.take(state, &mut self.woken);
                }
                self.wake_later(state, 0);
            }
            Stage::Wake(from) => self.wake_later(state, from),
            Stage::Replace => state.failures.open.append(&mut self.failed),
            Stage::Turns => self.heads.close(state),
            Stage::Nominate { mark, .. } | Stage::Order { mark, .. } => {
                state.tree.rewind(mark);
                state.tree.journal.close();
                self.enter(state, 0, usize::MAX);
            }
            Stage::Process { mark } => {
                self.rewind(state, (self.used - self.replaced, mark), usize::MAX);
                self.enter(state, 0, usize::MAX);
            }
            Stage::Rewind { left, mark } => {
                self.rewind(state, (left, mark), usize::MAX);
                self.enter(state, 0, usize::MAX);
            }
            Stage::Enter(from) => {
                self.enter(state, from, usize::MAX);
            }
        }
        self.stage = Stage::Rest;
    }

    /// Leaves the wake-ups that were not carried out to the next cycle.
    fn wake_later(&self, state: &mut State, from: usize) {
        for &queue in &self.woken[from..] {
            state.wake(queue);
        }
    }

    fn wake(&mut self, state: &mut State, from: usize, heads: usize) -> Stage {
        let mut left = heads;
        for (at, &queue) in self.woken.iter().enumerate().skip(from) {
            if left == 0 {
                return Stage::Wake(at);
            }
            left = left.saturating_sub(1 + wake::wake_queue(state, queue));
        }
        self.failed = replace::due(state);
        Stage::Replace
    }

    fn replace(&mut self, state: &mut State, heads: usize) -> Stage {
        for _ in 0..heads {
            let Some(failure) = self.failed.pop() else {
                self.heads.begin();
                return Stage::Turns;
            };
            if let Some(entry) = replace::replace(state, failure) {
                state.cycle += u64::from(self.replaced == 0);
                self.keep(entry);
                self.replaced += 1;
            }
        }
        Stage::Replace
    }

    fn take(&mut self, state: &mut State, heads: usize) -> Stage {
        if !self.heads.take(state, heads) {
            return Stage::Turns;
        }
        if self.replaced == 0 {
            if !self.heads.had_turns() {
                return Stage::Rest;
            }
            state.cycle += 1;
        }
        Stage::Nominate { from: 0, mark: state.tree.journal.mark() }
    }

    fn nominate(&mut self, state: &mut State, (from, mark): (usize, usize), heads: usize) -> Stage {
        let all = self.heads.len();
        let end = from.saturating_add(heads).min(all);
        for at in from..end {
            let (queue, workload) = self.heads.at(at);
            nominate::nominate(state, self.entry(state, queue, workload));
        }
        if end < all {
            return Stage::Nominate { from: end, mark };
        }
        self.victims.clear();
        self.order.begin(state);
        Stage::Order { from: 0, mark }
    }

    fn put_in_order(
        &mut self,
        state: &mut State,
        (from, mark): (usize, usize),
        heads: usize,
    ) -> Stage {
        let entries = &self.entries[self.replaced..self.used];
        let end = from.saturating_add(heads).min(entries.len());
        for index in from..end {
            self.order.enter(state, entries, index);
        }
        if end < entries.len() {
            return Stage::Order { from: end, mark };
        }
        self.order.close(state, entries);
        Stage::Process { mark }
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

    /// One more entry that is decided.
    fn keep(&mut self, entry: Entry) {
        match self.entries.get_mut(self.used) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
        self.used += 1;
    }

    fn process(
        &mut self,
        state: &mut State,
        mark: usize,
        placer: &mut dyn Placer,
        heads: usize,
    ) -> Stage {
        let entries = &mut self.entries[self.replaced..self.used];
        for _ in 0..heads {
            let Some(index) = self.order.pop(state, entries) else {
                return Stage::Rewind { left: entries.len(), mark };
            };
            process::process(state, &mut entries[index], &mut self.victims, placer);
        }
        Stage::Process { mark }
    }

    /// Goes back to the state before the first head was nominated.
    fn rewind(&mut self, state: &mut State, (left, mark): (usize, usize), heads: usize) -> Stage {
        let entries = &self.entries[self.replaced..self.used];
        let left = if state.topologies.any() { left } else { 0 };
        let begin = left.saturating_sub(heads);
        admit::forget_assumed(state, &entries[begin..left]);
        if !state.tree.rewind_some(mark, heads) || begin > 0 {
            return Stage::Rewind { left: begin, mark };
        }
        state.tree.journal.close();
        self.order.number(entries.len());
        Stage::Enter(0)
    }

    fn enter(&mut self, state: &mut State, from: usize, heads: usize) -> Stage {
        let entries = &mut self.entries[self.replaced..self.used];
        let mut at = from;
        for _ in 0..heads {
            if at == entries.len() {
                break;
            }
            if self.order.swap(entries, at) {
                continue;
            }
            let entry = &mut entries[at];
            at += 1;
            match entry.outcome {
                Outcome::Reserved { .. } => admit::admit(state, entry, self.now),
                Outcome::Open => requeue::give_back(state, entry),
                _ => requeue::requeue(state, entry),
            }
        }
        if at < entries.len() { Stage::Enter(at) } else { Stage::Rest }
    }
}
