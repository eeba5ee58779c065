//! One resource of one flavor of which there is too little: how much is missing, who uses it, what would help.

use std::cmp::Reverse;

use crate::amount::Amount;
use crate::flavors::attempt::AssignmentAttempt;
use crate::ids::{NodeId, QueueId, Slot};
use crate::quota::available::{available, potential};
use crate::spec::PreemptionPolicy;
use crate::state::State;
use crate::workloads::usage::charged;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaShortage {
    /// Flavor and resource.
    pub slot: Slot,
    /// What the pod set asks for.
    pub request: Amount,
    /// What earlier pod sets of the same Workload take.
    pub earlier: Amount,
    /// What is free for the queue now.
    pub free: Amount,
    /// What the queue could have if nobody used anything.
    pub most: Amount,
    /// What is missing: of what is free, or of what there can ever be.
    pub missing: Amount,
    /// Who uses it, most first.
    pub users: Vec<QueueUsage>,
    /// What would help.
    pub remedies: Vec<QuotaRemedy>,
}

impl QuotaShortage {
    /// No waiting helps.
    pub fn exceeds_maximum(&self) -> bool {
        self.earlier + self.request > self.most
    }
}

/// A queue that uses what is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueUsage {
    /// Which.
    pub queue: QueueId,
    /// How much.
    pub amount: Amount,
    /// The part of it that goes beyond its own quota.
    pub borrowed: Amount,
}

/// A change that would help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaRemedy {
    /// So much is given back by those who use it.
    Free(Amount),
    /// The queue may take back its own quota from others (`reclaimWithinCohort`).
    AllowReclaim(Amount),
    /// The queue may preempt so many of its own that have lower priority (`withinClusterQueue`).
    AllowPreemption(usize),
    /// The queue may borrow so much more.
    RaiseBorrowingLimit(Amount),
    /// Others lend so much more of what they own.
    LendMore(Amount),
    /// There is so much more quota in the tree.
    RaiseQuota(Amount),
}

/// What is missing for `request` beside `earlier`; `None` if there is enough.
pub(super) fn shortage(
    state: &State,
    attempt: &AssignmentAttempt<'_>,
    slot: Slot,
    earlier: Amount,
    request: Amount,
) -> Option<QuotaShortage> {
    let node = state.queue(attempt.queue).node;
    let (free, most) =
        (available(&state.tree, node, slot).clip(), potential(&state.tree, node, slot));
    let wanted = earlier + request;
    if wanted <= free {
        return None;
    }
    let hopeless = wanted > most;
    let missing = wanted - if hopeless { most.clip() } else { free };
    let remedies = if hopeless {
        vec![more_quota(state, node, slot, wanted, missing)]
    } else {
        give_way(state, attempt, slot, wanted, missing)
    };
    let users = users(state, node, slot);
    Some(QuotaShortage { slot, request, earlier, free, most, missing, users, remedies })
}

/// Queues of the tree that use a slot, most first, then by name.
fn users(state: &State, node: NodeId, slot: Slot) -> Vec<QueueUsage> {
    let root = state.tree.root(node);
    let mut users: Vec<QueueUsage> = Vec::new();
    for one in state.tree.ids().filter(|&one| state.tree.root(one) == root) {
        let cell = state.tree.at(one, slot);
        if let Some(queue) = state.tree.node(one).queue
            && cell.usage > Amount::ZERO
        {
            let borrowed = (cell.usage - cell.subtree).clip();
            users.push(QueueUsage { queue, amount: cell.usage, borrowed });
        }
    }
    let names = &state.names.queues;
    users.sort_by(|left, right| {
        let by_amount = Reverse(left.amount).cmp(&Reverse(right.amount));
        by_amount.then_with(|| names.name(left.queue).cmp(names.name(right.queue)))
    });
    users
}

/// Where there can never be enough: the bound that is in the way.
fn more_quota(
    state: &State,
    node: NodeId,
    slot: Slot,
    wanted: Amount,
    missing: Amount,
) -> QuotaRemedy {
    let tree = &state.tree;
    let own = tree.at(node, slot);
    let lent = tree.parent(node).map_or(Amount::ZERO, |parent| potential(tree, parent, slot));
    if own.borrowing_limit.is_some() && own.local + lent >= wanted {
        return QuotaRemedy::RaiseBorrowingLimit(missing);
    }
    let root = tree.root(node);
    let all = tree.ids().filter(|&one| tree.root(one) == root);
    let owned = all.map(|one| tree.at(one, slot).nominal).fold(Amount::ZERO, |sum, one| sum + one);
    if owned >= wanted && owned > own.nominal {
        return QuotaRemedy::LendMore(missing);
    }
    QuotaRemedy::RaiseQuota(missing)
}

/// Where too much is in use: who could give way.
fn give_way(
    state: &State,
    attempt: &AssignmentAttempt<'_>,
    slot: Slot,
    wanted: Amount,
    missing: Amount,
) -> Vec<QuotaRemedy> {
    let mut remedies = vec![QuotaRemedy::Free(missing)];
    let queue = state.queue(attempt.queue);
    let cell = state.tree.at(queue.node, slot);
    let own_free = cell.nominal - cell.usage;
    let never = |policy| policy == PreemptionPolicy::Never;
    if never(queue.preemption.reclaim) && wanted <= own_free {
        remedies.push(QuotaRemedy::AllowReclaim(missing));
    }
    let lower = queue.reserving.iter().filter(|&&id| {
        let one = state.workloads.at(id);
        let usage = one.admission.as_deref().map_or(&[][..], |admission| &admission.usage);
        one.priority < attempt.class.priority && charged(usage, slot) > Amount::ZERO
    });
    let lower = lower.count();
    if never(queue.preemption.within_cluster_queue) && lower > 0 {
        remedies.push(QuotaRemedy::AllowPreemption(lower));
    }
    remedies
}
