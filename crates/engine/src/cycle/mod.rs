//! One scheduling cycle.
//!
//! Wake whom the last events may have helped. Replace machines that failed under holders. Take the head of every active
//! queue. Nominate: compute what each head would get, all against the same state. Order the heads. Process them in order,
//! each seeing what those before it took. Rewind the state, then enter what was decided and requeue the rest. Source:
//! docs/reference/kueue.md §4.1.
//!
//! All of it can be done in parts of a bounded number of heads, one [`CycleStage`] after the other, so that a caller with
//! thousands of queues can do something else in between.

mod admit;
pub(crate) mod contender;
mod contention;
pub(crate) mod entry;
mod exact_tournament;
mod heads;
mod nominate;
mod order;
mod preempted_workloads;
pub(crate) mod preparation;
mod process;
mod replace;
mod requeue;
mod requeue_inadmissible;
mod tournament;

use crate::cycle::entry::{CycleEntry, CycleOutcome};
use crate::cycle::preparation::Preparation;
use crate::ids::{QueueId, WorkloadId};
use crate::node_failures::NodeFailure;
use crate::placer::Placer;
use crate::state::State;
use crate::time::Time;

/// What comes next in a cycle, with the number of queues or heads for which it is done.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum CycleStage {
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
    ProcessingOrder {
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
    stage: CycleStage,
    now: Time,
    /// Holders whose machine failed; then one per head, in the order in which they were processed; heads rejected before
    /// that come last. What is beyond `used` belongs to earlier cycles, and its buffers to later ones.
    entries: Vec<CycleEntry>,
    /// How many are about holders.
    replaced: usize,
    used: usize,
    /// Holders whose machine is still to be replaced, next one last.
    failed: Vec<NodeFailure>,
    /// Queues of trees in which something was freed.
    woken: Vec<QueueId>,
    heads: heads::Heads,
    order: order::ProcessingOrder,
    victims: preempted_workloads::PreemptedWorkloads,
}

impl Cycle {
    /// What was decided.
    pub(crate) fn entries(&self) -> &[CycleEntry] {
        &self.entries[..self.used]
    }

    /// Begins a cycle. With nobody in line and no machine to replace nothing will happen, and the cycle will not count.
    pub(crate) fn begin(&mut self, state: &mut State, now: Time) {
        self.cut_short(state);
        crate::pending::requeue_after_backoff(state, now);
        (self.now, self.replaced, self.used) = (now, 0, 0);
        self.order.clear();
        self.woken.clear();
        crate::topology::rebuild(state);
        self.stage = CycleStage::Prepare(Preparation::first(state));
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
            CycleStage::Rest => CycleStage::Rest,
            CycleStage::Prepare(step) => {
                step.take(state, &mut self.woken).map_or(CycleStage::Wake(0), CycleStage::Prepare)
            }
            CycleStage::Wake(from) => self.wake(state, from, heads),
            CycleStage::Replace => self.replace(state, heads),
            CycleStage::Turns => self.take(state, heads),
            CycleStage::Nominate { from, mark } => self.nominate(state, (from, mark), heads),
            CycleStage::ProcessingOrder { from, mark } => {
                self.put_in_order(state, (from, mark), heads)
            }
            CycleStage::Process { mark } => self.process(state, mark, placer, heads),
            CycleStage::Rewind { left, mark } => self.rewind(state, (left, mark), heads),
            CycleStage::Enter(from) => self.enter(state, from, heads),
        };
        self.stage == CycleStage::Rest
    }

    /// Ends a cycle before it is complete: what was processed is entered, and whoever was not stays in line.
    pub(crate) fn cut_short(&mut self, state: &mut State) {
        match self.stage {
            CycleStage::Rest => return,
            CycleStage::Prepare(step) => {
                let mut next = Some(step);
                while let Some(step) = next {
                    next = step.take(state, &mut self.woken);
                }
                self.wake_later(state, 0);
            }
            CycleStage::Wake(from) => self.wake_later(state, from),
            CycleStage::Replace => state.node_failures.put_back(&mut self.failed),
            CycleStage::Turns => self.heads.close(state),
            CycleStage::Nominate { mark, .. } | CycleStage::ProcessingOrder { mark, .. } => {
                state.tree.rewind(mark);
                state.tree.journal.close();
                self.enter(state, 0, usize::MAX);
            }
            CycleStage::Process { mark } => {
                self.rewind(state, (self.used - self.replaced, mark), usize::MAX);
                self.enter(state, 0, usize::MAX);
            }
            CycleStage::Rewind { left, mark } => {
                self.rewind(state, (left, mark), usize::MAX);
                self.enter(state, 0, usize::MAX);
            }
            CycleStage::Enter(from) => {
                self.enter(state, from, usize::MAX);
            }
        }
        self.stage = CycleStage::Rest;
    }

    /// Leaves the wake-ups that were not carried out to the next cycle.
    fn wake_later(&self, state: &mut State, from: usize) {
        for &queue in &self.woken[from..] {
            state.requeue_cohort_tree(queue);
        }
    }

    fn wake(&mut self, state: &mut State, from: usize, heads: usize) -> CycleStage {
        let mut left = heads;
        for (at, &queue) in self.woken.iter().enumerate().skip(from) {
            if left == 0 {
                return CycleStage::Wake(at);
            }
            left = left.saturating_sub(1 + requeue_inadmissible::wake_queue(state, queue));
        }
        self.failed = replace::take_pending(state);
        CycleStage::Replace
    }

    fn replace(&mut self, state: &mut State, heads: usize) -> CycleStage {
        for _ in 0..heads {
            let Some(failure) = self.failed.pop() else {
                self.heads.begin();
                return CycleStage::Turns;
            };
            if let Some(entry) = replace::replace(state, failure) {
                state.cycle += u64::from(self.replaced == 0);
                self.keep(entry);
                self.replaced += 1;
            }
        }
        CycleStage::Replace
    }

    fn take(&mut self, state: &mut State, heads: usize) -> CycleStage {
        if !self.heads.take(state, heads) {
            return CycleStage::Turns;
        }
        if self.replaced == 0 {
            if !self.heads.had_turns() {
                return CycleStage::Rest;
            }
            state.cycle += 1;
        }
        CycleStage::Nominate { from: 0, mark: state.tree.journal.mark() }
    }

    fn nominate(
        &mut self,
        state: &mut State,
        (from, mark): (usize, usize),
        heads: usize,
    ) -> CycleStage {
        let all = self.heads.len();
        let end = from.saturating_add(heads).min(all);
        for at in from..end {
            let (queue, workload) = self.heads.at(at);
            nominate::nominate(state, self.entry(state, queue, workload));
        }
        if end < all {
            return CycleStage::Nominate { from: end, mark };
        }
        self.victims.clear();
        self.order.begin(state);
        CycleStage::ProcessingOrder { from: 0, mark }
    }

    fn put_in_order(
        &mut self,
        state: &mut State,
        (from, mark): (usize, usize),
        heads: usize,
    ) -> CycleStage {
        let entries = &self.entries[self.replaced..self.used];
        let end = from.saturating_add(heads).min(entries.len());
        for index in from..end {
            self.order.enter(state, entries, index);
        }
        if end < entries.len() {
            return CycleStage::ProcessingOrder { from: end, mark };
        }
        self.order.close(state, entries);
        CycleStage::Process { mark }
    }

    /// An entry for one more head.
    fn entry(&mut self, state: &State, queue: QueueId, workload: WorkloadId) -> &mut CycleEntry {
        if self.used == self.entries.len() {
            self.entries.push(CycleEntry::new(state, queue, workload));
        } else {
            self.entries[self.used].renew(state, queue, workload);
        }
        self.used += 1;
        &mut self.entries[self.used - 1]
    }

    /// One more entry that is decided.
    fn keep(&mut self, entry: CycleEntry) {
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
    ) -> CycleStage {
        let entries = &mut self.entries[self.replaced..self.used];
        for _ in 0..heads {
            let Some(index) = self.order.pop(state, entries) else {
                return CycleStage::Rewind { left: entries.len(), mark };
            };
            process::process(state, &mut entries[index], &mut self.victims, placer);
        }
        CycleStage::Process { mark }
    }

    /// Goes back to the state before the first head was nominated.
    fn rewind(
        &mut self,
        state: &mut State,
        (left, mark): (usize, usize),
        heads: usize,
    ) -> CycleStage {
        let entries = &self.entries[self.replaced..self.used];
        let left = if state.topologies.any() { left } else { 0 };
        let begin = left.saturating_sub(heads);
        admit::forget_assumed(state, &entries[begin..left]);
        if !state.tree.rewind_some(mark, heads) || begin > 0 {
            return CycleStage::Rewind { left: begin, mark };
        }
        state.tree.journal.close();
        self.order.number(entries.len());
        CycleStage::Enter(0)
    }

    fn enter(&mut self, state: &mut State, from: usize, heads: usize) -> CycleStage {
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
                CycleOutcome::Reserved { .. } => admit::admit(state, entry, self.now),
                CycleOutcome::Nominated => requeue::give_back(state, entry),
                _ => requeue::requeue(state, entry),
            }
        }
        if at < entries.len() { CycleStage::Enter(at) } else { CycleStage::Rest }
    }
}
