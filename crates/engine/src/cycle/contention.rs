//! Heads that fit alone but not all together.
//!
//! If every head of a cohort tree is known to fit, in exactly one way, then the processing order and the quota left
//! for each are known before evaluation. Heads that would be skipped are not evaluated; they stay active, as skipped
//! heads do upstream. If the placer refuses a winner, the others are evaluated in the next cycle. Source:
//! docs/reference/kueue.md §4.6, §4.8.
//!
//! Cost: one sort, and one walk to the root per head and slot.

use std::cmp::Reverse;

use crate::ids::{NodeId, QueueId, WorkloadId};
use crate::quota::available::available;
use crate::state::State;
use crate::time::Time;
use crate::workloads::usage::SlotUsage;

/// A head that fits, with the key of the processing order.
#[derive(Debug)]
struct ContendingHead {
    root: NodeId,
    order_key: (u32, Reverse<i64>, Time, u32),
    queue: QueueId,
    workload: WorkloadId,
    usage: SlotUsage,
    wins: bool,
}

/// The contending heads of a cycle. The buffer is kept between cycles.
#[derive(Debug, Default)]
pub(super) struct Contention {
    all: Vec<ContendingHead>,
}

impl Contention {
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// Adds a head that fits with `usage`. `borrow` is the height of the lowest subtree that its usage fits in.
    pub(super) fn enter(
        &mut self,
        state: &State,
        queue: QueueId,
        workload: WorkloadId,
        borrow: u32,
        usage: SlotUsage,
    ) {
        let node = state.queues.at(queue).node;
        let one = state.workloads.at(workload);
        let priority = if state.settings.priority_sorting_within_cohort { one.priority } else { 0 };
        let order_key =
            (borrow, Reverse(priority), one.queued_at, state.quota.tree().node(node).rank);
        let root = state.quota.tree().root(node);
        self.all.push(ContendingHead { root, order_key, queue, workload, usage, wins: false });
    }

    /// Marks as winners the heads that still fit after those before them. In trees for which `is_open` holds, some
    /// head is evaluated anyway, so all of them win.
    pub(super) fn decide(&mut self, state: &mut State, is_open: impl Fn(NodeId) -> bool) {
        // The classical order: under fair sharing no head is certain to fit.
        self.all.sort_unstable_by_key(|one| (one.root, one.order_key));
        let mark = state.quota.begin_simulation();
        for one in &mut self.all {
            let node = state.queues.at(one.queue).node;
            let fits =
                |&(slot, amount): &_| amount <= available(state.quota.tree(), node, slot).clip();
            one.wins = is_open(one.root) || one.usage.iter().all(fits);
            // A head that loses takes nothing, like a skipped entry (§4.8 step 8).
            if one.wins {
                state.quota.charge(node, &one.usage);
            }
        }
        state.quota.end_simulation(mark);
    }

    pub(super) fn winners(&self) -> impl Iterator<Item = (QueueId, WorkloadId)> + '_ {
        self.all.iter().filter(|one| one.wins).map(|one| (one.queue, one.workload))
    }
}
