//! Preemption for capacity of a worker cluster: the targets that quota asks for, if any, leave no cluster with room.
//!
//! Further targets are Workloads of one cluster, as far as the policies of the ClusterQueue allow them: its own by
//! `withinClusterQueue`, and those of ClusterQueues above their quota by `reclaimWithinCohort`, if the entry stays within the
//! quota of its own. They are taken in the order of preemption candidates until the cluster has room; those that turn out
//! not to be needed are put back. Source: docs/reference/dispatch.md §1.

use crate::cycle::entry::CycleEntry;
use crate::cycle::process::all_targets;
use crate::ids::{NodeId, Slot, WorkloadId};
use crate::placer::Placer;
use crate::preemption::candidates::{allowed, order, within_quota};
use crate::preemption::simulation::{
    queue_of, remove_workload, restore_workload, simulate_removal,
};
use crate::preemption::target::{PreemptionTarget, ids};
use crate::quota::tree::QuotaTree;
use crate::reason::PreemptionReason;
use crate::spec::PreemptionPolicy;
use crate::state::State;

/// Whether any policy lets the entry preempt.
pub(super) fn may_preempt(state: &State, entry: &CycleEntry) -> bool {
    let policy = state.queues.at(entry.queue).preemption;
    let never = PreemptionPolicy::Never;
    (policy.within_cluster_queue != never || policy.reclaim != never)
        && !state.is_preemption_gated(entry.workload)
}

/// Adds targets among `candidates` until the placer has room for the entry. Returns false, and adds none, if they do not suffice.
/// `earlier` are the targets of entries processed before.
pub(super) fn add_targets(
    state: &mut State,
    entry: &mut CycleEntry,
    earlier: &[WorkloadId],
    candidates: &[WorkloadId],
    placer: &mut dyn Placer,
) -> bool {
    let n_before = entry.targets.len();
    let gone = all_targets(entry, earlier);
    let pool = pool(state, entry, &gone, candidates);
    let found = simulate_removal(state, &gone, |state| {
        let found = take(state, entry, earlier, &pool, placer);
        if found {
            put_back(entry, n_before, earlier, placer);
        }
        for target in pool.iter() {
            restore_workload(state, target.workload);
        }
        found
    });
    if !found {
        entry.targets.truncate(n_before);
    }
    found
}

/// The candidates that a policy allows, in order.
fn pool(
    state: &State,
    entry: &CycleEntry,
    gone: &[WorkloadId],
    candidates: &[WorkloadId],
) -> Vec<PreemptionTarget> {
    let may_reclaim = stays_within_quota(state, entry);
    let allowed = candidates.iter().copied().filter(|id| !gone.contains(id));
    let allowed = allowed.filter_map(|workload| {
        let reason = reason(state, entry, workload, may_reclaim)?;
        Some(PreemptionTarget { workload, reason })
    });
    let mut pool: Vec<PreemptionTarget> = allowed.collect();
    let tables = state.candidate_tables();
    pool.sort_by(|left, right| order(tables, entry.queue, left.workload, right.workload));
    pool
}

/// Why a Workload may be preempted; `None` if it may not.
fn reason(
    state: &State,
    entry: &CycleEntry,
    id: WorkloadId,
    may_reclaim: bool,
) -> Option<PreemptionReason> {
    state.workloads.admission(id)?;
    // The old slice hands its quota over and is finished, not preempted (docs/reference/kueue.md §4.13).
    if entry.replaced_slice == Some(id) || id == entry.workload {
        return None;
    }
    let (policies, other) =
        (state.queues.at(entry.queue).preemption, queue_of(&state.workloads, id));
    let (policy, reason) = if other == entry.queue {
        (policies.within_cluster_queue, PreemptionReason::InClusterQueue)
    } else if may_reclaim && shares_cohort(state, entry, state.queues.at(other).node) {
        (policies.reclaim, PreemptionReason::InCohortReclamation)
    } else {
        return None;
    };
    allowed(&state.workloads, entry.workload, id, policy).then_some(reason)
}

/// Removes candidates in order until the placer has room.
fn take(
    state: &mut State,
    entry: &mut CycleEntry,
    earlier: &[WorkloadId],
    pool: &[PreemptionTarget],
    placer: &mut dyn Placer,
) -> bool {
    let slots = slots(entry);
    for &target in pool {
        // A ClusterQueue that earlier targets brought back within its quota gives nothing back.
        let node = state.queues.at(queue_of(&state.workloads, target.workload)).node;
        let reclaims = target.reason == PreemptionReason::InCohortReclamation;
        if reclaims && within_quota(&state.quota, node, &slots) {
            continue;
        }
        remove_workload(state, target.workload);
        entry.targets.push(target);
        if placer.fits_after(entry, &all_targets(entry, earlier)) {
            return true;
        }
    }
    false
}

/// Puts back targets that are not needed for room, latest first. The last one made room and stays.
fn put_back(
    entry: &mut CycleEntry,
    n_before: usize,
    earlier: &[WorkloadId],
    placer: &mut dyn Placer,
) {
    let mut index = entry.targets.len().saturating_sub(1);
    while index > n_before {
        index -= 1;
        let target = entry.targets.remove(index);
        if !placer.fits_after(entry, &all_targets(entry, earlier)) {
            entry.targets.insert(index, target);
        }
    }
}

fn slots(entry: &CycleEntry) -> Vec<Slot> {
    entry.assignment.usage.iter().map(|(slot, _)| *slot).collect()
}

/// Whether the entry borrows nothing once its targets are gone.
fn stays_within_quota(state: &State, entry: &CycleEntry) -> bool {
    let node = state.queues.at(entry.queue).node;
    let released = |slot: Slot| {
        let own = ids(&entry.targets).into_iter().filter_map(|id| state.workloads.admission(id));
        let own = own.filter(|admission| admission.queue == entry.queue);
        own.flat_map(|one| one.usage.iter().filter(move |(of, _)| *of == slot))
            .fold(crate::amount::Amount(0), |sum, (_, amount)| sum + *amount)
    };
    let mut usage = entry.assignment.usage.iter();
    usage.all(|&(slot, amount)| {
        !state.quota.tree().at(node, slot).borrows_with(amount - released(slot))
    })
}

/// Whether a ClusterQueue is in the cohort tree of the entry's.
fn shares_cohort(state: &State, entry: &CycleEntry, other: NodeId) -> bool {
    let root = |tree: &QuotaTree, node| tree.ancestors(node).last();
    let tree = state.quota.tree();
    let own = root(tree, state.queues.at(entry.queue).node);
    own.is_some() && own == root(tree, other)
}
