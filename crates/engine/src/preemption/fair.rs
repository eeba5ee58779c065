//! Fair-sharing preemption: targets come from the ClusterQueue with the largest share, as far as the strategies
//! allow.
//!
//! The preemptor's request is charged during the search, so that shares include it. Source: docs/reference/kueue.md
//! §4.10. Cost: candidates · depth, plus one walk down the tree per target.

use std::cmp::Ordering;

use crate::ids::{NodeId, QueueId, WorkloadId};
use crate::preemption::candidates::{of_queue, order};
use crate::preemption::fit::{fill_back, fits};
use crate::preemption::request::PreemptionRequest;
use crate::preemption::simulation::{queue_of, remove_workload, restore_workload};
use crate::preemption::tables::CandidateTables;
use crate::preemption::target::{PreemptionTarget, WorkloadIds};
use crate::queues::layer::QueueLayer;
use crate::quota::dominant_share::{DominantShare, share};
use crate::quota::layer::QuotaLayer;
use crate::reason::PreemptionReason;
use crate::settings::EngineSettings;
use crate::settings::FairStrategy;
use crate::spec::PreemptionPolicy;
use crate::state::State;
use crate::workloads::layer::WorkloadLayer;

/// Finds preemption targets into `out`; none if preemption does not make the request fit.
pub(super) fn find(
    state: &mut State,
    request: &PreemptionRequest<'_>,
    out: &mut Vec<PreemptionTarget>,
) {
    let candidates = collect(state.candidate_tables(), request);
    if candidates.is_empty() {
        return;
    }
    let strategies = state.settings.fair_sharing.clone().unwrap_or_default();
    let mark = state.quota.begin_simulation();
    charge(&mut state.quota, &state.queues, request);
    let mut search = FairSearch::new(state, request, &candidates);
    let mut found = search.first_pass(state, strategies.first().copied());
    // The second of two strategies is always LessThanInitialShare (§4.10).
    if !found && strategies.len() > 1 {
        found = search.second_pass(state);
    }
    // Filling back compares the request with available quota, so it must not be charged already.
    uncharge(&mut state.quota, &state.queues, request);
    let mut targets = search.targets;
    if found {
        fill_back(state, &mut targets, |state| fits(state, request, true));
    }
    for target in &targets {
        restore_workload(state, target.workload);
    }
    state.quota.settle_simulation(mark);
    if found {
        out.append(&mut targets);
    }
}

fn charge(quota: &mut QuotaLayer, queues: &QueueLayer, request: &PreemptionRequest<'_>) {
    let node = queues.at(request.attempt.queue).node;
    quota.charge(node, request.usage);
}

fn uncharge(quota: &mut QuotaLayer, queues: &QueueLayer, request: &PreemptionRequest<'_>) {
    let node = queues.at(request.attempt.queue).node;
    quota.uncharge(node, request.usage);
}

fn fits_without_charge(state: &mut State, request: &PreemptionRequest<'_>) -> bool {
    uncharge(&mut state.quota, &state.queues, request);
    let result = fits(state, request, true);
    charge(&mut state.quota, &state.queues, request);
    result
}

/// Candidates in order: the own ClusterQueue by `withinClusterQueue`, borrowing ones of the tree by
/// `reclaimWithinCohort`.
fn collect(tables: CandidateTables<'_>, request: &PreemptionRequest<'_>) -> WorkloadIds {
    let CandidateTables { quota, workloads, queues } = tables;
    let own = request.attempt.queue;
    let policy = queues.at(own).preemption;
    let mut all: WorkloadIds =
        of_queue(tables, request, own, policy.within_cluster_queue).collect();
    let root = quota.tree().root(queues.at(own).node);
    if policy.reclaim != PreemptionPolicy::Never {
        collect_below(tables, request, root, &mut all);
    }
    // Grouped by ClusterQueue: only within one does the order matter, and LocalQueue usage compares only there.
    let queue = |id| queue_of(workloads, id);
    all.sort_by(|&left, &right| {
        queue(left).cmp(&queue(right)).then_with(|| order(tables, own, left, right))
    });
    all
}

fn collect_below(
    tables: CandidateTables<'_>,
    request: &PreemptionRequest<'_>,
    node: NodeId,
    all: &mut WorkloadIds,
) {
    let CandidateTables { quota, queues, .. } = tables;
    for &child in &quota.tree().node(node).children {
        let Some(queue) = quota.tree().node(child).queue else {
            collect_below(tables, request, child, all);
            continue;
        };
        // A ClusterQueue within its nominal quota of the contested slots keeps its Workloads.
        let borrows = request.contested.iter().any(|&slot| {
            let cell = quota.tree().at(child, slot);
            cell.usage > cell.nominal
        });
        if queue != request.attempt.queue && borrows && queues.at(queue).active {
            let policy = queues.at(request.attempt.queue).preemption.reclaim;
            all.extend(of_queue(tables, request, queue, policy));
        }
    }
}

/// A search in progress.
struct FairSearch<'a> {
    request: &'a PreemptionRequest<'a>,
    /// Candidates by ClusterQueue, in order; the first of each is next.
    queues: Vec<(QueueId, WorkloadIds)>,
    pruned: Vec<NodeId>,
    retry: WorkloadIds,
    targets: Vec<PreemptionTarget>,
    leaf: NodeId,
    /// The preemptor is within its nominal quota, so every candidate is a reclaim.
    within_nominal: bool,
}

/// The children of a cohort with the largest shares.
#[derive(Default)]
struct LargestShares {
    cohort: Option<(DominantShare, NodeId)>,
    queue: Option<(DominantShare, QueueId)>,
}

impl<'a> FairSearch<'a> {
    fn new(state: &State, request: &'a PreemptionRequest<'a>, candidates: &[WorkloadId]) -> Self {
        let leaf = state.queues.at(request.attempt.queue).node;
        let queues = by_queue(&state.workloads, candidates);
        let (pruned, retry, targets) = (Vec::new(), WorkloadIds::new(), Vec::new());
        let within_nominal = within_nominal(&state.settings, &state.quota, request, leaf);
        Self { request, queues, pruned, retry, targets, leaf, within_nominal }
    }

    /// First pass: every candidate once, against the first strategy.
    fn first_pass(&mut self, state: &mut State, strategy: Option<FairStrategy>) -> bool {
        while let Some(queue) = self.next_queue(state.candidate_tables()) {
            let reason = if queue == self.request.attempt.queue {
                // Within the own ClusterQueue `withinClusterQueue` decides, and shares are not
                // compared.
                Some(PreemptionReason::InClusterQueue)
            } else if self.within_nominal {
                // The preemptor takes back its own nominal quota, so shares are not compared.
                Some(PreemptionReason::InCohortReclamation)
            } else {
                None
            };
            let taken = match reason {
                Some(reason) => {
                    self.pop(queue).map(|one| PreemptionTarget { workload: one, reason })
                }
                None => self.first_allowed(state, queue, strategy),
            };
            if let Some(target) = taken
                && self.take(state, target)
            {
                return true;
            }
        }
        false
    }

    /// Second pass: candidates that failed the first, against the initial share; at most one per ClusterQueue.
    fn second_pass(&mut self, state: &mut State) -> bool {
        let retry = std::mem::take(&mut self.retry);
        self.queues = by_queue(&state.workloads, &retry);
        // The first pass pruned nodes that ran out of candidates; some have candidates to retry.
        self.pruned.clear();
        while let Some(queue) = self.next_queue(state.candidate_tables()) {
            let (own, other) = self.meeting(state.candidate_tables(), queue);
            if share(state.quota.tree(), own) < share(state.quota.tree(), other)
                && let Some(workload) = self.pop(queue)
            {
                let reason = PreemptionReason::InCohortFairSharing;
                if self.take(state, PreemptionTarget { workload, reason }) {
                    return true;
                }
            }
            self.queues.retain(|(one, _)| *one != queue);
        }
        false
    }

    fn take(&mut self, state: &mut State, target: PreemptionTarget) -> bool {
        remove_workload(state, target.workload);
        self.targets.push(target);
        fits_without_charge(state, self.request)
    }

    fn first_allowed(
        &mut self,
        state: &mut State,
        queue: QueueId,
        strategy: Option<FairStrategy>,
    ) -> Option<PreemptionTarget> {
        let (own, other) = self.meeting(state.candidate_tables(), queue);
        let preemptor = share(state.quota.tree(), own);
        let initial = share(state.quota.tree(), other);
        while let Some(workload) = self.pop(queue) {
            let allowed = match strategy? {
                FairStrategy::LessThanInitialShare => preemptor < initial,
                FairStrategy::LessThanOrEqualToFinalShare => {
                    preemptor <= share_without(state, other, workload)
                }
            };
            if allowed {
                return Some(PreemptionTarget {
                    workload,
                    reason: PreemptionReason::InCohortFairSharing,
                });
            }
            self.retry.push(workload);
        }
        None
    }

    fn pop(&mut self, queue: QueueId) -> Option<WorkloadId> {
        let (_, list) = self.queues.iter_mut().find(|(one, _)| *one == queue)?;
        if list.is_empty() { None } else { Some(list.remove(0)) }
    }

    fn front(&self, queue: QueueId) -> Option<WorkloadId> {
        let (_, list) = self.queues.iter().find(|(one, _)| *one == queue)?;
        list.first().copied()
    }

    /// The children of the lowest common ancestor, on the preemptor's side and on the candidate's.
    fn meeting(&self, tables: CandidateTables<'_>, queue: QueueId) -> (NodeId, NodeId) {
        let CandidateTables { quota, queues, .. } = tables;
        let tree = quota.tree();
        let path = |leaf: NodeId| -> Vec<NodeId> {
            std::iter::once(leaf).chain(tree.ancestors(leaf)).collect()
        };
        let (mut own, mut other) = (path(self.leaf), path(queues.at(queue).node));
        let mut pair = (self.leaf, queues.at(queue).node);
        while let (Some(left), Some(right)) = (own.pop(), other.pop()) {
            pair = (left, right);
            if left != right {
                break;
            }
        }
        pair
    }

    /// The ClusterQueue to preempt in next: from the root always down to the child with the largest share.
    fn next_queue(&mut self, tables: CandidateTables<'_>) -> Option<QueueId> {
        // Without a cohort there are only candidates of the own ClusterQueue.
        let Some(parent) = tables.quota.tree().parent(self.leaf) else {
            let own = self.request.attempt.queue;
            return self.front(own).map(|_| own);
        };
        let root = tables.quota.tree().root(parent);
        while !self.pruned.contains(&root) {
            if let Some(queue) = self.descend(tables, root) {
                return Some(queue);
            }
        }
        None
    }

    fn descend(&mut self, tables: CandidateTables<'_>, cohort: NodeId) -> Option<QueueId> {
        let largest = self.largest_shares(tables, cohort);
        match (largest.cohort, largest.queue) {
            (Some((cohort_share, cohort)), Some((queue_share, queue))) => {
                // A cohort wins a tie against a ClusterQueue (§4.10).
                if cohort_share >= queue_share { self.descend(tables, cohort) } else { Some(queue) }
            }
            (Some((_, cohort)), None) => self.descend(tables, cohort),
            (None, Some((_, queue))) => Some(queue),
            (None, None) => {
                // Nothing below is left; the next walk from the root passes this cohort by.
                self.pruned.push(cohort);
                None
            }
        }
    }

    /// Finds the child cohort and the child ClusterQueue with the largest share. Prunes children that have nothing to preempt.
    fn largest_shares(&mut self, tables: CandidateTables<'_>, cohort: NodeId) -> LargestShares {
        let CandidateTables { quota, .. } = tables;
        let mut largest = LargestShares::default();
        for &child in &quota.tree().node(cohort).children {
            if self.pruned.contains(&child) {
                continue;
            }
            let own = share(quota.tree(), child);
            match quota.tree().node(child).queue {
                Some(queue) => {
                    // A node that does not borrow has nothing to return. The preemptor's own
                    // ClusterQueue stays: its candidates do not depend on borrowing.
                    if (!own.borrowing && child != self.leaf) || self.front(queue).is_none() {
                        self.pruned.push(child);
                    } else if largest
                        .queue
                        .is_none_or(|best| self.prefer(tables, (own, queue), best))
                    {
                        largest.queue = Some((own, queue));
                    }
                }
                None => {
                    if !own.borrowing && !quota.tree().ancestors(self.leaf).any(|one| one == child)
                    {
                        self.pruned.push(child);
                    } else if largest.cohort.is_none_or(|(best, _)| own >= best) {
                        largest.cohort = Some((own, child));
                    }
                }
            }
        }
        largest
    }

    fn prefer(
        &self,
        tables: CandidateTables<'_>,
        new: (DominantShare, QueueId),
        old: (DominantShare, QueueId),
    ) -> bool {
        new.0.cmp(&old.0).then_with(|| match (self.front(new.1), self.front(old.1)) {
            (Some(left), Some(right)) => order(tables, self.request.attempt.queue, right, left),
            _ => Ordering::Equal,
        }) == Ordering::Greater
    }
}

fn within_nominal(
    settings: &EngineSettings,
    quota: &QuotaLayer,
    request: &PreemptionRequest<'_>,
    leaf: NodeId,
) -> bool {
    settings.fair_sharing_preempt_within_nominal
        && request.contested.iter().all(|&slot| {
            let cell = quota.tree().at(leaf, slot);
            cell.usage <= cell.nominal
        })
}

fn by_queue(workloads: &WorkloadLayer, candidates: &[WorkloadId]) -> Vec<(QueueId, WorkloadIds)> {
    let mut queues: Vec<(QueueId, WorkloadIds)> = Vec::new();
    for &id in candidates {
        let queue = queue_of(workloads, id);
        match queues.iter_mut().find(|(one, _)| *one == queue) {
            Some((_, list)) => list.push(id),
            None => queues.push((queue, WorkloadIds::from_slice(&[id]))),
        }
    }
    queues
}

fn share_without(state: &mut State, node: NodeId, workload: WorkloadId) -> DominantShare {
    remove_workload(state, workload);
    let without = share(state.quota.tree(), node);
    restore_workload(state, workload);
    without
}
