//! One resource of one flavor with too little quota: how much is missing, which queues use it, and what would help.

use std::cmp::Reverse;

use crate::amount::Amount;
use crate::flavors::attempt::AssignmentAttempt;
use crate::ids::{NodeId, QueueId, Slot};
use crate::names::Names;
use crate::quota::available::{available, potential};
use crate::quota::layer::QuotaLayer;
use crate::spec::PreemptionPolicy;
use crate::state::State;
use crate::workloads::usage::charged;

/// A quota shortage of one resource in one flavor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaShortage {
    /// Flavor and resource.
    pub slot: Slot,
    /// Request of the pod set.
    pub request: Amount,
    /// Request of earlier pod sets of the same Workload.
    pub earlier: Amount,
    /// Quota that is free for the ClusterQueue now.
    pub free: Amount,
    /// Quota that the ClusterQueue could use if no quota were in use.
    pub maximum: Amount,
    /// Missing quota, relative to what is free, or to the maximum if the request exceeds it.
    pub missing: Amount,
    /// Queues of the cohort tree that use a slot, largest usage first, then by name.
    pub users: Vec<QueueUsage>,
    /// Changes that would help.
    pub remedies: Vec<QuotaRemedy>,
}

impl QuotaShortage {
    /// Whether the request exceeds the quota that the ClusterQueue can ever use: no release of quota helps.
    pub fn exceeds_maximum(&self) -> bool {
        self.earlier + self.request > self.maximum
    }
}

/// Usage of the missing resource by one ClusterQueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueUsage {
    /// The ClusterQueue.
    pub queue: QueueId,
    /// Its usage.
    pub amount: Amount,
    /// The part of the usage above its own quota.
    pub borrowed: Amount,
}

/// A change that would help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaRemedy {
    /// This much quota is released.
    ReleaseQuota(Amount),
    /// `reclaimWithinCohort`: the queue could reclaim its own quota.
    AllowReclaim(Amount),
    /// `withinClusterQueue`: the queue could preempt this many of its Workloads, which have lower priority.
    AllowPreemption(usize),
    /// A higher `borrowingLimit`, by this much.
    RaiseBorrowingLimit(Amount),
    /// Higher lending limits in the cohort tree, by this much.
    LendMore(Amount),
    /// More nominal quota in the cohort tree, by this much.
    RaiseQuota(Amount),
}

/// The shortage of `request` beside `earlier`; `None` if the quota suffices.
pub(super) fn shortage(
    state: &State,
    attempt: &AssignmentAttempt<'_>,
    slot: Slot,
    earlier: Amount,
    request: Amount,
) -> Option<QuotaShortage> {
    let node = state.queues.at(attempt.queue).node;
    let (free, maximum) = (
        available(state.quota.tree(), node, slot).clip(),
        potential(state.quota.tree(), node, slot),
    );
    let wanted = earlier + request;
    if wanted <= free {
        return None;
    }
    let exceeds_maximum = wanted > maximum;
    let missing = wanted - if exceeds_maximum { maximum.clip() } else { free };
    let remedies = if exceeds_maximum {
        vec![remedy_for_limit(&state.quota, node, slot, wanted, missing)]
    } else {
        remedies_for_usage(state, attempt, slot, wanted, missing)
    };
    let users = users(&state.names, &state.quota, node, slot);
    Some(QuotaShortage { slot, request, earlier, free, maximum, missing, users, remedies })
}

/// Queues of the tree that use a slot, most first, then by name.
fn users(names: &Names, quota: &QuotaLayer, node: NodeId, slot: Slot) -> Vec<QueueUsage> {
    let mut users: Vec<QueueUsage> = Vec::new();
    for one in quota.tree().tree_of(node) {
        let cell = quota.tree().at(one, slot);
        if let Some(queue) = quota.tree().node(one).queue
            && cell.usage > Amount::ZERO
        {
            let borrowed = (cell.usage - cell.subtree).clip();
            users.push(QueueUsage { queue, amount: cell.usage, borrowed });
        }
    }
    let names = &names.queues;
    users.sort_by(|left, right| {
        let by_amount = Reverse(left.amount).cmp(&Reverse(right.amount));
        by_amount.then_with(|| names.name(left.queue).cmp(names.name(right.queue)))
    });
    users
}

/// The limit that makes the request exceed the maximum.
fn remedy_for_limit(
    quota: &QuotaLayer,
    node: NodeId,
    slot: Slot,
    wanted: Amount,
    missing: Amount,
) -> QuotaRemedy {
    let tree = quota.tree();
    let own = tree.at(node, slot);
    let lent = tree.parent(node).map_or(Amount::ZERO, |parent| potential(tree, parent, slot));
    // The tree has enough; only the limit of the ClusterQueue is in the way.
    if own.borrowing_limit.is_some() && own.local + lent >= wanted {
        return QuotaRemedy::RaiseBorrowingLimit(missing);
    }
    let owned = tree
        .tree_of(node)
        .map(|one| tree.at(one, slot).nominal)
        .fold(Amount::ZERO, |sum, one| sum + one);
    // The tree owns enough, but others lend too little of it.
    if owned >= wanted && owned > own.nominal {
        return QuotaRemedy::LendMore(missing);
    }
    QuotaRemedy::RaiseQuota(missing)
}

/// Changes that help when quota is in use.
fn remedies_for_usage(
    state: &State,
    attempt: &AssignmentAttempt<'_>,
    slot: Slot,
    wanted: Amount,
    missing: Amount,
) -> Vec<QuotaRemedy> {
    let mut remedies = vec![QuotaRemedy::ReleaseQuota(missing)];
    let queue = state.queues.at(attempt.queue);
    let cell = state.quota.tree().at(queue.node, slot);
    let own_free = cell.nominal - cell.usage;
    let is_never = |policy| policy == PreemptionPolicy::Never;
    if is_never(queue.preemption.reclaim) && wanted <= own_free {
        remedies.push(QuotaRemedy::AllowReclaim(missing));
    }
    // Only Workloads that use the missing resource would make room.
    let lower = queue.reserving.iter().filter(|&&id| {
        let one = state.workloads.at(id);
        let usage = one.admission.as_deref().map_or(&[][..], |admission| &admission.usage);
        one.priority < attempt.class.priority && charged(usage, slot) > Amount::ZERO
    });
    let lower = lower.count();
    if is_never(queue.preemption.within_cluster_queue) && lower > 0 {
        remedies.push(QuotaRemedy::AllowPreemption(lower));
    }
    remedies
}
