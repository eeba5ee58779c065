//! One scheduling cycle.
//!
//! Requeues inadmissible Workloads that recent events may have made admissible. Replaces failed nodes of reserving
//! Workloads. Takes the head of every active ClusterQueue. Nominates: computes each head's assignment against the
//! same snapshot. Orders the entries. Processes them in order, each seeing the usage of those before it. Rewinds
//! usage, then commits reservations and requeues the rest. Source: docs/reference/kueue.md §4.1.
//!
//! A cycle advances in parts of a bounded number of heads, one [`CycleStage`] after the other, so that a caller with
//! thousands of ClusterQueues can handle other work in between.

mod admit;
pub(crate) mod alone;
pub(crate) mod contender;
mod contention;
pub(crate) mod entry;
mod exact_tournament;
mod heads;
mod leaving_pods;
mod nominate;
mod order;
mod other_flavors;
mod preempted_workloads;
mod preemption_for_room;
mod preemption_on_clusters;
pub(crate) mod preparation;
mod process;
mod replace;
mod requeue;
mod tournament;

use crate::cycle::entry::{CycleEntry, CycleOutcome};
use crate::cycle::preparation::Preparation;
use crate::ids::{QueueId, WorkloadId};
use crate::placer::Placer;
use crate::quota::journal::SimulationMark;
use crate::state::State;
use crate::time::Time;
use crate::topology::node_failures::NodeFailure;

/// The next step of a cycle, with its progress in ClusterQueues or entries.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum CycleStage {
    /// No cycle is in progress.
    #[default]
    NoCycle,
    Prepare(Preparation),
    RequeueInadmissible(usize),
    Replace,
    TakeHeads,
    /// `mark` is the usage before nomination, to rewind to.
    Nominate {
        from: usize,
        mark: SimulationMark,
    },
    ProcessingOrder {
        from: usize,
        mark: SimulationMark,
    },
    Process {
        mark: SimulationMark,
    },
    /// `left` is the number of entries whose topology usage is still assumed.
    Rewind {
        left: usize,
        mark: SimulationMark,
    },
    Commit(usize),
}

/// The cycle in progress, and buffers that are kept between cycles.
#[derive(Debug, Default)]
pub(crate) struct Cycle {
    stage: CycleStage,
    now: Time,
    /// Entries about reserving Workloads, then one per head in processing order; rejected heads come last. Entries
    /// beyond `used` belong to earlier cycles and keep their buffers.
    entries: Vec<CycleEntry>,
    /// Number of entries about reserving Workloads.
    replaced: usize,
    used: usize,
    /// Node failures still to process, next one last.
    failed: Vec<NodeFailure>,
    /// ClusterQueues whose inadmissible Workloads are requeued.
    requeued: Vec<QueueId>,
    heads: heads::Heads,
    order: order::ProcessingOrder,
    preempted_workloads: preempted_workloads::PreemptedWorkloads,
}

impl Cycle {
    /// The decisions.
    pub(crate) fn entries(&self) -> &[CycleEntry] {
        &self.entries[..self.used]
    }

    /// Begins a cycle. It is not counted if there is no head and no pending node replacement.
    pub(crate) fn begin(&mut self, state: &mut State, now: Time) {
        self.finish_early(state);
        (self.now, self.replaced, self.used) = (now, 0, 0);
        self.order.clear();
        self.requeued.clear();
        state.rebuild_topologies();
        self.stage = CycleStage::Prepare(Preparation::first(&state.quota));
    }

    /// Continues for about `heads` ClusterQueues or heads. Returns true when the cycle is complete.
    pub(crate) fn advance(
        &mut self,
        state: &mut State,
        placer: &mut dyn Placer,
        heads: usize,
    ) -> bool {
        // A part of no heads would never complete the cycle.
        let heads = heads.max(1);
        self.stage = match self.stage {
            CycleStage::NoCycle => CycleStage::NoCycle,
            CycleStage::Prepare(step) => step
                .take(state, &mut self.requeued)
                .map_or(CycleStage::RequeueInadmissible(0), CycleStage::Prepare),
            CycleStage::RequeueInadmissible(from) => {
                self.requeue_inadmissible_in(state, from, heads)
            }
            CycleStage::Replace => self.replace(state, heads),
            CycleStage::TakeHeads => self.take_heads(state, heads),
            CycleStage::Nominate { from, mark } => self.nominate(state, from, mark, heads),
            CycleStage::ProcessingOrder { from, mark } => {
                self.order_entries(state, from, mark, heads)
            }
            CycleStage::Process { mark } => self.process(state, mark, placer, heads),
            CycleStage::Rewind { left, mark } => self.rewind(state, left, mark, heads),
            CycleStage::Commit(from) => self.commit(state, from, heads),
        };
        self.stage == CycleStage::NoCycle
    }

    /// Ends a cycle that is not complete: processed entries are committed, the other heads stay active.
    pub(crate) fn finish_early(&mut self, state: &mut State) {
        match self.stage {
            CycleStage::NoCycle => return,
            CycleStage::Prepare(step) => {
                let mut next = Some(step);
                while let Some(step) = next {
                    next = step.take(state, &mut self.requeued);
                }
                self.defer_requeues(state, 0);
            }
            CycleStage::RequeueInadmissible(from) => self.defer_requeues(state, from),
            CycleStage::Replace => state.topology.node_failures_mut().put_back(&mut self.failed),
            // Heads that were taken are still in their pending queues.
            CycleStage::TakeHeads => self.heads.close(&mut state.queues),
            // Nomination removes a head from its pending queue; the commit requeues it.
            CycleStage::Nominate { mark, .. } | CycleStage::ProcessingOrder { mark, .. } => {
                state.quota.end_simulation(mark);
                self.commit(state, 0, usize::MAX);
            }
            CycleStage::Process { mark } => {
                self.rewind(state, self.used - self.replaced, mark, usize::MAX);
                self.commit(state, 0, usize::MAX);
            }
            CycleStage::Rewind { left, mark } => {
                self.rewind(state, left, mark, usize::MAX);
                self.commit(state, 0, usize::MAX);
            }
            CycleStage::Commit(from) => {
                self.commit(state, from, usize::MAX);
            }
        }
        self.stage = CycleStage::NoCycle;
    }

    /// Leaves requeues that were not carried out to the next cycle.
    fn defer_requeues(&self, state: &mut State, from: usize) {
        for &queue in &self.requeued[from..] {
            state.queues.requeue_cohort_tree(queue);
        }
    }

    fn requeue_inadmissible_in(
        &mut self,
        state: &mut State,
        from: usize,
        heads: usize,
    ) -> CycleStage {
        let mut left = heads;
        for (at, &queue) in self.requeued.iter().enumerate().skip(from) {
            if left == 0 {
                return CycleStage::RequeueInadmissible(at);
            }
            // A visited class or Workload counts like a head, so that a part stays short.
            left = left
                .saturating_sub(1 + state.queues.requeue_inadmissible(queue, &mut state.workloads));
        }
        self.failed = replace::take_pending(&state.names, &state.workloads, &mut state.topology);
        CycleStage::Replace
    }

    fn replace(&mut self, state: &mut State, heads: usize) -> CycleStage {
        for _ in 0..heads {
            let Some(failure) = self.failed.pop() else {
                self.heads.begin();
                return CycleStage::TakeHeads;
            };
            if let Some(entry) = replace::replace(state, failure) {
                // The first replacement counts the cycle; heads that follow belong to the same one.
                if self.replaced == 0 {
                    state.queues.count_cycle();
                }
                self.keep(entry);
                self.replaced += 1;
            }
        }
        CycleStage::Replace
    }

    fn take_heads(&mut self, state: &mut State, heads: usize) -> CycleStage {
        if !self.heads.take(state, heads) {
            return CycleStage::TakeHeads;
        }
        // Replacements have counted the cycle already.
        if self.replaced == 0 {
            if !self.heads.had_heads() {
                return CycleStage::NoCycle;
            }
            state.queues.count_cycle();
        }
        // Usage that nomination and processing assume is rewound to this mark before the commit.
        CycleStage::Nominate { from: 0, mark: state.quota.begin_simulation() }
    }

    fn nominate(
        &mut self,
        state: &mut State,
        from: usize,
        mark: SimulationMark,
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
        self.preempted_workloads.clear();
        self.order.begin(state);
        CycleStage::ProcessingOrder { from: 0, mark }
    }

    fn order_entries(
        &mut self,
        state: &mut State,
        from: usize,
        mark: SimulationMark,
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

    /// Adds an entry for a head.
    fn entry(&mut self, state: &State, queue: QueueId, workload: WorkloadId) -> &mut CycleEntry {
        if self.used == self.entries.len() {
            self.entries.push(CycleEntry::new(state, queue, workload));
        } else {
            self.entries[self.used].renew(state, queue, workload);
        }
        self.used += 1;
        &mut self.entries[self.used - 1]
    }

    /// Adds an entry that is decided.
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
        mark: SimulationMark,
        placer: &mut dyn Placer,
        heads: usize,
    ) -> CycleStage {
        let entries = &mut self.entries[self.replaced..self.used];
        for _ in 0..heads {
            let Some(index) = self.order.pop(state, entries) else {
                return CycleStage::Rewind { left: entries.len(), mark };
            };
            process::process(state, &mut entries[index], &mut self.preempted_workloads, placer);
        }
        CycleStage::Process { mark }
    }

    /// Rewinds usage to the state before nomination.
    fn rewind(
        &mut self,
        state: &mut State,
        left: usize,
        mark: SimulationMark,
        heads: usize,
    ) -> CycleStage {
        let entries = &self.entries[self.replaced..self.used];
        // Without topologies no entry has assumed domains.
        let left = if state.topology.any() { left } else { 0 };
        let begin = left.saturating_sub(heads);
        admit::forget_assumed(state, &entries[begin..left]);
        if !state.quota.rewind_some(mark, heads) || begin > 0 {
            return CycleStage::Rewind { left: begin, mark };
        }
        state.quota.end_simulation(mark);
        // The commit swaps entries into processing order, which is the order of the decisions.
        self.order.number(entries.len());
        CycleStage::Commit(0)
    }

    fn commit(&mut self, state: &mut State, from: usize, heads: usize) -> CycleStage {
        let entries = &mut self.entries[self.replaced..self.used];
        let mut at = from;
        for _ in 0..heads {
            if at == entries.len() {
                break;
            }
            // The entry that is at `at` now may have another position, too.
            if self.order.swap(entries, at) {
                continue;
            }
            let entry = &mut entries[at];
            at += 1;
            match entry.outcome {
                CycleOutcome::Reserved { .. } => admit::admit(state, entry, self.now),
                // Still nominated: the cycle ended early, before this entry was processed.
                CycleOutcome::Nominated => {
                    requeue::requeue_unprocessed(&mut state.workloads, &mut state.queues, entry);
                }
                _ => requeue::requeue(state, entry),
            }
        }
        if at < entries.len() { CycleStage::Commit(at) } else { CycleStage::NoCycle }
    }
}
