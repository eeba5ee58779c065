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
use crate::preemption::simulation::{hide, queue_of, show};
use crate::preemption::target::{PreemptionTarget, WorkloadIds};
use crate::quota::dominant_share::{DominantShare, share};
use crate::reason::PreemptionReason;
use crate::settings::FairStrategy;
use crate::spec::PreemptionPolicy;
use crate::state::State;

/// Finds preemption targets into `out`; none if preemption does not make the request fit.
pub(super) fn find(
    state: &mut State,
    need: &PreemptionRequest<'_>,
    out: &mut Vec<PreemptionTarget>,
) {
    let candidates = collect(state, need);
    if candidates.is_empty() {
        return;
    }
    let strategies = state.settings.fair_sharing.clone().unwrap_or_default();
    let mark = state.tree.journal.mark();
    charge(state, need);
    let mut search = FairSearch::new(state, need, &candidates);
    let mut found = search.first_pass(state, strategies.first().copied());
    // The second of two strategies is always LessThanInitialShare (§4.10).
    if !found && strategies.len() > 1 {
        found = search.second_pass(state);
    }
    // Filling back compares the request with available quota, so it must not be charged already.
    uncharge(state, need);
    let mut targets = search.targets;
    if found {
        fill_back(state, &mut targets, |state| fits(state, need, true));
    }
    for target in &targets {
        show(state, target.workload);
    }
    state.tree.settle(mark);
    if found {
        out.append(&mut targets);
    }
}

fn charge(state: &mut State, need: &PreemptionRequest<'_>) {
    let node = state.queue(need.attempt.queue).node;
    state.tree.charge(node, need.usage);
}

fn uncharge(state: &mut State, need: &PreemptionRequest<'_>) {
    let node = state.queue(need.attempt.queue).node;
    state.tree.uncharge(node, need.usage);
}

fn fits_without_charge(state: &mut State, need: &PreemptionRequest<'_>) -> bool {
    uncharge(state, need);
    let result = fits(state, need, true);
    charge(state, need);
    result
}

/// Candidates in order: the own ClusterQueue by `withinClusterQueue`, borrowing ones of the tree by
/// `reclaimWithinCohort`.
fn collect(state: &State, need: &PreemptionRequest<'_>) -> WorkloadIds {
    let own = need.attempt.queue;
    let policy = state.queue(own).preemption;
    let mut all: WorkloadIds = of_queue(state, need, own, policy.within_cluster_queue).collect();
    let root = state.tree.root(state.queue(own).node);
    if policy.reclaim != PreemptionPolicy::Never {
        collect_below(state, need, root, &mut all);
    }
    // Grouped by ClusterQueue: only within one does the order matter, and LocalQueue usage compares only there.
    let queue = |id| queue_of(state, id);
    all.sort_by(|&left, &right| {
        queue(left).cmp(&queue(right)).then_with(|| order(state, own, left, right))
    });
    all
}

fn collect_below(state: &State, need: &PreemptionRequest<'_>, node: NodeId, all: &mut WorkloadIds) {
    for &child in &state.tree.node(node).children {
        let Some(queue) = state.tree.node(child).queue else {
            collect_below(state, need, child, all);
            continue;
        };
        // A ClusterQueue within its nominal quota of the contested slots keeps its Workloads.
        let borrows = need.contested.iter().any(|&slot| {
            let cell = state.tree.at(child, slot);
            cell.usage > cell.nominal
        });
        if queue != need.attempt.queue && borrows && state.queue(queue).active {
            let policy = state.queue(need.attempt.queue).preemption.reclaim;
            all.extend(of_queue(state, need, queue, policy));
        }
    }
}

/// A search in progress.
struct FairSearch<'a> {
    need: &'a PreemptionRequest<'a>,
    /// Candidates by ClusterQueue, in order; the first of each is next.
    queues: Vec<(QueueId, WorkloadIds)>,
    pruned: Vec<NodeId>,
    retry: WorkloadIds,
    targets: Vec<PreemptionTarget>,
    leaf: NodeId,
    /// The preemptor is within its nominal quota, so every candidate is a reclaim.
    within_nominal: bool,
}

impl<'a> FairSearch<'a> {
    fn new(state: &State, need: &'a PreemptionRequest<'a>, candidates: &[WorkloadId]) -> Self {
        let leaf = state.queue(need.attempt.queue).node;
        let queues = by_queue(state, candidates);
        let (pruned, retry, targets) = (Vec::new(), WorkloadIds::new(), Vec::new());
        let within_nominal = within_nominal(state, need, leaf);
        Self { need, queues, pruned, retry, targets, leaf, within_nominal }
    }

    /// First pass: every candidate once, against the first strategy.
    fn first_pass(&mut self, state: &mut State, strategy: Option<FairStrategy>) -> bool {
        while let Some(queue) = self.next_queue(state) {
            let reason = if queue == self.need.attempt.queue {
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
        self.queues = by_queue(state, &retry);
        // The first pass pruned nodes that ran out of candidates; some have candidates to retry.
        self.pruned.clear();
        while let Some(queue) = self.next_queue(state) {
            let (own, other) = self.meeting(state, queue);
            if share(&state.tree, own) < share(&state.tree, other)
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
        hide(state, target.workload);
        self.targets.push(target);
        fits_without_charge(state, self.need)
    }

    fn first_allowed(
        &mut self,
        state: &mut State,
        queue: QueueId,
        strategy: Option<FairStrategy>,
    ) -> Option<PreemptionTarget> {
        let (own, other) = self.meeting(state, queue);
        let preemptor = share(&state.tree, own);
        let initial = share(&state.tree, other);
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
    fn meeting(&self, state: &State, queue: QueueId) -> (NodeId, NodeId) {
        let tree = &state.tree;
        let path = |leaf: NodeId| -> Vec<NodeId> {
            std::iter::once(leaf).chain(tree.ancestors(leaf)).collect()
        };
        let (mut own, mut other) = (path(self.leaf), path(state.queue(queue).node));
        let mut pair = (self.leaf, state.queue(queue).node);
        while let (Some(left), Some(right)) = (own.pop(), other.pop()) {
            pair = (left, right);
            if left != right {
                break;
            }
        }
        pair
    }

    /// The ClusterQueue to preempt in next: from the root always down to the child with the largest share.
    fn next_queue(&mut self, state: &State) -> Option<QueueId> {
        // Without a cohort there are only candidates of the own ClusterQueue.
        let Some(parent) = state.tree.parent(self.leaf) else {
            let own = self.need.attempt.queue;
            return self.front(own).map(|_| own);
        };
        let root = state.tree.root(parent);
        while !self.pruned.contains(&root) {
            if let Some(queue) = self.descend(state, root) {
                return Some(queue);
            }
        }
        None
    }

    fn descend(&mut self, state: &State, cohort: NodeId) -> Option<QueueId> {
        let mut best_queue: Option<(DominantShare, QueueId)> = None;
        let mut best_cohort: Option<(DominantShare, NodeId)> = None;
        for &child in &state.tree.node(cohort).children {
            if self.pruned.contains(&child) {
                continue;
            }
            let own = share(&state.tree, child);
            match state.tree.node(child).queue {
                Some(queue) => {
                    // A node that does not borrow has nothing to return. The preemptor's own
                    // ClusterQueue stays: its candidates do not depend on borrowing.
                    if (!own.borrowing && child != self.leaf) || self.front(queue).is_none() {
                        self.pruned.push(child);
                    } else if best_queue.is_none_or(|best| self.prefer(state, (own, queue), best)) {
                        best_queue = Some((own, queue));
                    }
                }
                None => {
                    if !own.borrowing && !state.tree.ancestors(self.leaf).any(|one| one == child) {
                        self.pruned.push(child);
                    } else if best_cohort.is_none_or(|(best, _)| own >= best) {
                        best_cohort = Some((own, child));
                    }
                }
            }
        }
        match (best_cohort, best_queue) {
            (Some((cohort_share, cohort)), Some((queue_share, queue))) => {
                // A cohort wins a tie against a ClusterQueue (§4.10).
                if cohort_share >= queue_share { self.descend(state, cohort) } else { Some(queue) }
            }
            (Some((_, cohort)), None) => self.descend(state, cohort),
            (None, Some((_, queue))) => Some(queue),
            (None, None) => {
                // Nothing below is left; the next walk from the root passes this cohort by.
                self.pruned.push(cohort);
                None
            }
        }
    }

    fn prefer(
        &self,
        state: &State,
        new: (DominantShare, QueueId),
        old: (DominantShare, QueueId),
    ) -> bool {
        new.0.cmp(&old.0).then_with(|| match (self.front(new.1), self.front(old.1)) {
            (Some(left), Some(right)) => order(state, self.need.attempt.queue, right, left),
            _ => Ordering::Equal,
        }) == Ordering::Greater
    }
}

fn within_nominal(state: &State, need: &PreemptionRequest<'_>, leaf: NodeId) -> bool {
    state.settings.fair_sharing_preempt_within_nominal
        && need.contested.iter().all(|&slot| {
            let cell = state.tree.at(leaf, slot);
            cell.usage <= cell.nominal
        })
}

fn by_queue(state: &State, candidates: &[WorkloadId]) -> Vec<(QueueId, WorkloadIds)> {
    let mut queues: Vec<(QueueId, WorkloadIds)> = Vec::new();
    for &id in candidates {
        let queue = queue_of(state, id);
        match queues.iter_mut().find(|(one, _)| *one == queue) {
            Some((_, list)) => list.push(id),
            None => queues.push((queue, WorkloadIds::from_slice(&[id]))),
        }
    }
    queues
}

fn share_without(state: &mut State, node: NodeId, workload: WorkloadId) -> DominantShare {
    hide(state, workload);
    let without = share(&state.tree, node);
    show(state, workload);
    without
}
