//! Classical preemption: by priority and by ownership of quota.
//!
//! Candidates come from the preemptor's ClusterQueue and from every ClusterQueue of the cohort tree that uses more than its
//! quota. Hierarchical reclaims go first, then reclaims by priority, then the own ClusterQueue. Candidates are removed in
//! this order until the request fits; those that turn out not to be needed are put back. Source: docs/reference/kueue.md
//! §4.9.
//!
//! Cost: one pass over the candidates, and log(candidates) + depth for each one drawn.

use crate::amount::Amount;
use crate::ids::{NodeId, Slot, WorkloadId};
use crate::preemption::candidate_pool::{CandidatePool, PreemptionCandidate, PreemptionVariant};
use crate::preemption::candidates::{of_queue, within_quota};
use crate::preemption::fit::{fill_back, fits};
use crate::preemption::request::PreemptionRequest;
use crate::preemption::simulation::{remove_workload, restore_workload};
use crate::preemption::tables::CandidateTables;
use crate::preemption::target::PreemptionTarget;
use crate::quota::tree::QuotaTree;
use crate::spec::{BorrowWithinCohortSpec, PreemptionPolicy};
use crate::state::State;

/// Finds preemption targets for `request` into `targets`; none if preemption does not make it fit.
pub(super) fn find(
    state: &mut State,
    request: &PreemptionRequest<'_>,
    targets: &mut Vec<PreemptionTarget>,
) {
    let mut pool = std::mem::take(&mut state.scratch.pool);
    pool.clear();
    collect(state.candidate_tables(), request, &mut pool);
    let forbidden = state.queues.at(request.attempt.queue).preemption.borrow.is_none();
    // The runs of docs/reference/kueue.md §4.9; `true` is a run that may borrow. Without reclaim
    // candidates every target is in the own ClusterQueue, and one run that may borrow covers all.
    let runs: &[bool] = if !pool.has_reclaim
        || (forbidden && !is_below_nominal(state.candidate_tables(), request))
    {
        &[true]
    } else if forbidden && !pool.has_hierarchical {
        &[false, true]
    } else {
        &[true, false]
    };
    for &borrowing in runs {
        run(state, request, &mut pool, borrowing, targets);
        if !targets.is_empty() {
            break;
        }
    }
    state.scratch.pool = pool;
}

/// Whether the preemptor's ClusterQueue uses less than its nominal quota of every contested slot.
fn is_below_nominal(tables: CandidateTables<'_>, request: &PreemptionRequest<'_>) -> bool {
    let CandidateTables { quota, queues, .. } = tables;
    let node = queues.at(request.attempt.queue).node;
    request.contested.iter().all(|&slot| {
        let cell = quota.tree().at(node, slot);
        cell.usage < cell.nominal
    })
}

/// Removes candidates in order until the request fits. Usage is the same afterwards.
fn run(
    state: &mut State,
    request: &PreemptionRequest<'_>,
    pool: &mut CandidatePool,
    borrowing: bool,
    targets: &mut Vec<PreemptionTarget>,
) {
    let mark = state.quota.begin_simulation();
    let (mut found, mut position) = (false, 0);
    while let Some(candidate) = pool.at(state.candidate_tables(), position) {
        position += 1;
        // Checked when the candidate is drawn: targets before it may have brought its ClusterQueue
        // back within quota.
        if !valid(state.candidate_tables(), request, &candidate, borrowing) {
            continue;
        }
        remove_workload(state, candidate.workload);
        targets.push(PreemptionTarget {
            workload: candidate.workload,
            reason: candidate.variant.reason(),
        });
        if fits(state, request, borrowing) {
            found = true;
            break;
        }
    }
    if found {
        fill_back(state, targets, |state| fits(state, request, borrowing));
    }
    for target in &*targets {
        restore_workload(state, target.workload);
    }
    state.quota.settle_simulation(mark);
    // A partial set of targets would evict Workloads without making the preemptor fit.
    if !found {
        targets.clear();
    }
}

/// A reclaim ends once the candidate's ClusterQueue, or a cohort between it and the common ancestor, is within its quota.
fn valid(
    tables: CandidateTables<'_>,
    request: &PreemptionRequest<'_>,
    candidate: &PreemptionCandidate,
    borrowing: bool,
) -> bool {
    let CandidateTables { quota, queues, .. } = tables;
    if candidate.variant == PreemptionVariant::ReclaimWithoutBorrowing && borrowing {
        return false;
    }
    // In the own ClusterQueue `withinClusterQueue` decides; there is no borrowed quota to return.
    let Some(common_ancestor) = candidate.common_ancestor else {
        return true;
    };
    let node = queues.at(candidate.queue).node;
    let below = quota.tree().ancestors(node).take_while(|&above| above != common_ancestor);
    std::iter::once(node).chain(below).all(|node| !within_quota(quota, node, request.contested))
}

/// Collects all candidates.
fn collect(tables: CandidateTables<'_>, request: &PreemptionRequest<'_>, pool: &mut CandidatePool) {
    let CandidateTables { workloads, queues, .. } = tables;
    let own = request.attempt.queue;
    let policy = queues.at(own).preemption;
    if policy.reclaim != PreemptionPolicy::Never {
        collect_reclaim(tables, request, pool);
    }
    pool.enter(queues, own);
    for workload in of_queue(tables, request, own, policy.within_cluster_queue) {
        pool.add(
            tables,
            PreemptionCandidate::new(
                workloads,
                own,
                workload,
                PreemptionVariant::WithinClusterQueue,
            ),
        );
    }
}

/// Collects candidates of other ClusterQueues, walking up from the parent. Once the request fits within the quota of a node
/// on the way, candidates further up are hierarchical reclaims: that node owns the quota.
fn collect_reclaim(
    tables: CandidateTables<'_>,
    request: &PreemptionRequest<'_>,
    pool: &mut CandidatePool,
) {
    let CandidateTables { quota, queues, .. } = tables;
    let leaf = queues.at(request.attempt.queue).node;
    let mut rest: smallvec::SmallVec<[_; 4]> = request.usage.into();
    let mut advantage = fits_quota(quota.tree(), leaf, &mut rest);
    let mut skip = leaf;
    for node in quota.tree().ancestors(leaf) {
        collect_below(
            tables,
            request,
            &CohortWalk { common_ancestor: node, skip, advantage },
            node,
            pool,
        );
        // Tested after the subtree of `node` is collected: quota that `node` owns is an advantage
        // only over candidates outside of that subtree.
        advantage |= fits_quota(quota.tree(), node, &mut rest);
        skip = node;
    }
}

/// Whether the rest of the request fits within a node's quota. Subtracts the node's available local quota from the rest.
fn fits_quota(tree: &QuotaTree, node: NodeId, rest: &mut [(Slot, Amount)]) -> bool {
    let mut fits = true;
    for (slot, amount) in rest {
        let cell = tree.at(node, *slot);
        fits &= !cell.borrows_with(*amount);
        // Local quota is used before the parent is charged, so the parent covers only the rest.
        *amount = (*amount - cell.local_available()).clip();
    }
    fits
}

/// One step of the walk from the preemptor's ClusterQueue up to the root.
#[derive(Debug, Clone, Copy)]
struct CohortWalk {
    /// The cohort whose subtree is visited.
    common_ancestor: NodeId,
    /// The child whose subtree the step before visited.
    skip: NodeId,
    /// A node below owns enough quota for the request, so candidates are hierarchical reclaims.
    advantage: bool,
}

fn collect_below(
    tables: CandidateTables<'_>,
    request: &PreemptionRequest<'_>,
    walk: &CohortWalk,
    node: NodeId,
    pool: &mut CandidatePool,
) {
    let CandidateTables { quota, workloads, queues } = tables;
    for &child in &quota.tree().node(node).children {
        // A subtree within its quota has borrowed nothing that could be reclaimed.
        if child == walk.skip || within_quota(quota, child, request.contested) {
            continue;
        }
        match quota.tree().node(child).queue {
            None => collect_below(tables, request, walk, child, pool),
            Some(queue) if queues.at(queue).active => {
                let policy = queues.at(request.attempt.queue).preemption;
                pool.enter(queues, queue);
                for workload in of_queue(tables, request, queue, policy.reclaim) {
                    let variant = variant(tables, request, workload, walk);
                    let candidate = PreemptionCandidate::new(workloads, queue, workload, variant);
                    let common_ancestor = Some(walk.common_ancestor);
                    let candidate = PreemptionCandidate { common_ancestor, ..candidate };
                    pool.add(tables, candidate);
                }
            }
            // Kueue's snapshot has no inactive ClusterQueues (§4.1), so their Workloads are no
            // candidates.
            Some(_) => {}
        }
    }
}

/// The variant of a candidate in another ClusterQueue, by the preemptor's `borrowWithinCohort` policy.
fn variant(
    tables: CandidateTables<'_>,
    request: &PreemptionRequest<'_>,
    candidate: WorkloadId,
    walk: &CohortWalk,
) -> PreemptionVariant {
    let CandidateTables { workloads, queues, .. } = tables;
    let borrow = queues.at(request.attempt.queue).preemption.borrow;
    let (own, other) = (workloads.at(request.attempt.workload), workloads.at(candidate));
    match borrow {
        _ if walk.advantage => PreemptionVariant::HierarchicalReclaim,
        None => PreemptionVariant::ReclaimWithoutBorrowing,
        // `borrowWithinCohort` preempts only lower priorities while the preemptor borrows (§4.9).
        Some(_) if other.priority >= own.priority => PreemptionVariant::ReclaimWithoutBorrowing,
        Some(BorrowWithinCohortSpec { max_priority: Some(bound) }) if other.priority > bound => {
            PreemptionVariant::ReclaimWithoutBorrowing
        }
        Some(_) => PreemptionVariant::ReclaimWhileBorrowing,
    }
}
