//! Heads that fit if they are alone, but not all together.
//!
//! Where it is known of every head of a tree that it fits, and in which way, the order in which they will be processed
//! and what each leaves to the next is known too. Those who lose are not evaluated: they stay in line, as upstream's
//! skipped heads do. If the placer refuses a winner, the losers have their turn in the next cycle. Source:
//! docs/reference/kueue.md §4.6, §4.8. Cost: sorting, and a walk to the root per head and slot.

use std::cmp::Reverse;

use crate::ids::{NodeId, QueueId, WorkloadId};
use crate::quota::available::available;
use crate::state::State;
use crate::time::Time;
use crate::workloads::usage::Usage;

/// A head that fits, and what the order of processing depends on.
#[derive(Debug)]
struct ContendingHead {
    root: NodeId,
    turn: (u32, Reverse<i64>, Time, u32),
    queue: QueueId,
    workload: WorkloadId,
    usage: Usage,
    wins: bool,
}

/// All of them. Its buffer is kept between cycles.
#[derive(Debug, Default)]
pub(super) struct Contention {
    all: Vec<ContendingHead>,
}

impl Contention {
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// A head that fits with `usage` and reaches up the tree as far as `borrow`.
    pub(super) fn enter(
        &mut self,
        state: &State,
        (queue, workload): (QueueId, WorkloadId),
        (borrow, usage): (u32, Usage),
    ) {
        let node = state.queue(queue).node;
        let one = state.workloads.at(workload);
        let priority = if state.settings.priority_sorting_within_cohort { one.priority } else { 0 };
        let turn = (borrow, Reverse(priority), one.queued_at, state.tree.node(node).rank);
        let root = state.tree.root(node);
        self.all.push(ContendingHead { root, turn, queue, workload, usage, wins: false });
    }

    /// Lets everybody win who fits after those before it; in trees of which not all is known, everybody.
    pub(super) fn decide(&mut self, state: &mut State, is_open: impl Fn(NodeId) -> bool) {
        self.all.sort_unstable_by_key(|one| (one.root, one.turn));
        let mark = state.tree.journal.mark();
        for one in &mut self.all {
            let node = state.queue(one.queue).node;
            let fits = |&(slot, amount): &_| amount <= available(&state.tree, node, slot).clip();
            one.wins = is_open(one.root) || one.usage.iter().all(fits);
            if one.wins {
                state.tree.charge(node, &one.usage);
            }
        }
        state.tree.rewind(mark);
        state.tree.journal.close();
    }

    pub(super) fn winners(&self) -> impl Iterator<Item = (QueueId, WorkloadId)> + '_ {
        self.all.iter().filter(|one| one.wins).map(|one| (one.queue, one.workload))
    }
}
