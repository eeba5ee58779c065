//! Preemption by priority and ownership of quota.
//!
//! Candidates of the own queue, and of every queue of the tree that uses more than its own quota, in three lists:
//! those whose quota belongs to the preemptor's side of the tree (*hierarchical*), those that may be taken on grounds of
//! priority, and those of the own queue. Source: docs/reference/kueue.md §4.9. Cost: candidates, and
//! for each that is looked at log(candidates) + depth.

use std::cmp::{Ordering, Reverse};

use crate::ids::{NodeId, QueueId, WorkloadId};
use crate::preemption::candidates::{by_usage, of_queue, within_quota};
use crate::preemption::{PreemptionRequest, PreemptionTarget, fill_back, fits, hide, show};
use crate::queues::heap::Heap;
use crate::quota::tree::Tree;
use crate::reason::PreemptionReason;
use crate::spec::{BorrowWithinCohort, PreemptionPolicy};
use crate::state::State;
use crate::time::Time;

/// On what ground a candidate may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreemptionVariant {
    WithinClusterQueue,
    HierarchicalReclaim,
    ReclaimWithoutBorrowing,
    ReclaimWhileBorrowing,
}

impl PreemptionVariant {
    fn reason(self) -> PreemptionReason {
        match self {
            Self::WithinClusterQueue => PreemptionReason::InClusterQueue,
            Self::HierarchicalReclaim | Self::ReclaimWithoutBorrowing => {
                PreemptionReason::InCohortReclamation
            }
            Self::ReclaimWhileBorrowing => PreemptionReason::InCohortReclaimWhileBorrowing,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    workload: WorkloadId,
    queue: QueueId,
    variant: PreemptionVariant,
    /// The lowest common ancestor with the preemptor's queue.
    meeting: Option<NodeId>,
    rank: Rank,
}

/// What the order of candidates depends on, but for shares and uids: first those already evicted, then by list, in one
/// queue those whose LocalQueue used more, lower priority, later admission.
type Rank = ((bool, u8), (i64, Reverse<Time>));

impl Candidate {
    fn new(
        state: &State,
        queue: QueueId,
        workload: WorkloadId,
        variant: PreemptionVariant,
    ) -> Self {
        let one = state.workloads.at(workload);
        let list = match variant {
            PreemptionVariant::HierarchicalReclaim => 0,
            PreemptionVariant::ReclaimWithoutBorrowing
            | PreemptionVariant::ReclaimWhileBorrowing => 1,
            PreemptionVariant::WithinClusterQueue => 2,
        };
        let held = one.admission.as_deref();
        let (evicted, since) =
            held.map_or((false, Time(0)), |held| (held.evicted, held.reserved_at));
        let rank = ((!evicted, list), (one.priority, Reverse(since)));
        Self { workload, queue, variant, meeting: None, rank }
    }

    #[inline]
    fn goes_before(&self, state: &State, other: &Self, shares: bool) -> bool {
        let uid = |one: &Self| &state.workloads.at(one.workload).uid;
        let by_rank =
            if shares { self.by_shares(state, other) } else { self.rank.cmp(&other.rank) };
        by_rank.then_with(|| uid(self).cmp(uid(other))).is_lt()
    }

    /// The order of ranks where some queue shares by usage.
    fn by_shares(&self, state: &State, other: &Self) -> Ordering {
        let of_queue = |one: &Self| (one.queue, one.workload);
        let (left, right) = (self.rank, other.rank);
        left.0
            .cmp(&right.0)
            .then_with(|| by_usage(state, of_queue(self), of_queue(other)))
            .then(left.1.cmp(&right.1))
    }
}

/// The candidates of a search, put into order only as far as the search gets.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    rest: Heap<Candidate>,
    drawn: Vec<Candidate>,
    foreign: bool,
    hierarchical: bool,
    /// Some of their queues share by usage.
    shares: bool,
}

impl Pool {
    fn clear(&mut self) {
        self.rest.clear();
        self.drawn.clear();
        (self.foreign, self.hierarchical, self.shares) = (false, false, false);
    }

    #[inline]
    fn add(&mut self, state: &State, candidate: Candidate) {
        self.foreign |= candidate.variant != PreemptionVariant::WithinClusterQueue;
        self.hierarchical |= candidate.variant == PreemptionVariant::HierarchicalReclaim;
        let shares = self.shares;
        self.rest.push(candidate, |left, right| left.goes_before(state, &right, shares));
    }

    /// Candidates of a queue follow. Those before stay in their order: it does not depend on shares.
    fn enter(&mut self, state: &State, queue: QueueId) {
        self.shares |= state.queue(queue).pending.has_fair_sharing();
    }

    /// The candidate at a position of the order.
    fn at(&mut self, state: &State, position: usize) -> Option<Candidate> {
        if position == self.drawn.len() {
            let shares = self.shares;
            let next = self.rest.pop(|left, right| left.goes_before(state, &right, shares))?;
            self.drawn.push(next);
        }
        self.drawn.get(position).copied()
    }
}

/// Finds the victims.
pub(super) fn find(
    state: &mut State,
    need: &PreemptionRequest<'_>,
    targets: &mut Vec<PreemptionTarget>,
) {
    let mut pool = std::mem::take(&mut state.scratch.pool);
    pool.clear();
    collect(state, need, &mut pool);
    let forbidden = state.queue(need.attempt.queue).preemption.borrow.is_none();
    let runs: &[bool] = if !pool.foreign || (forbidden && !under_nominal(state, need)) {
        &[true]
    } else if forbidden && !pool.hierarchical {
        &[false, true]
    } else {
        &[true, false]
    };
    for &borrowing in runs {
        run(state, need, &mut pool, borrowing, targets);
        if !targets.is_empty() {
            break;
        }
    }
    state.scratch.pool = pool;
}

fn under_nominal(state: &State, need: &PreemptionRequest<'_>) -> bool {
    let node = state.queue(need.attempt.queue).node;
    need.contested.iter().all(|&slot| {
        let cell = state.tree.at(node, slot);
        cell.usage < cell.nominal
    })
}

/// Removes candidates in order until the request fits. Leaves the state as it was.
fn run(
    state: &mut State,
    need: &PreemptionRequest<'_>,
    pool: &mut Pool,
    borrowing: bool,
    targets: &mut Vec<PreemptionTarget>,
) {
    let mark = state.tree.journal.mark();
    let (mut found, mut position) = (false, 0);
    while let Some(candidate) = pool.at(state, position) {
        position += 1;
        if !valid(state, need, &candidate, borrowing) {
            continue;
        }
        hide(state, candidate.workload);
        targets.push(PreemptionTarget {
            workload: candidate.workload,
            reason: candidate.variant.reason(),
        });
        if fits(state, need, borrowing) {
            found = true;
            break;
        }
    }
    if found {
        fill_back(state, targets, |state| fits(state, need, borrowing));
    }
    for target in &*targets {
        show(state, target.workload);
    }
    state.tree.settle(mark);
    if !found {
        targets.clear();
    }
}

/// A foreign candidate is spared once its queue, or a cohort below the common ancestor, is back within its quota.
fn valid(
    state: &State,
    need: &PreemptionRequest<'_>,
    candidate: &Candidate,
    borrowing: bool,
) -> bool {
    if candidate.variant == PreemptionVariant::ReclaimWithoutBorrowing && borrowing {
        return false;
    }
    let Some(meeting) = candidate.meeting else {
        return true;
    };
    let node = state.queue(candidate.queue).node;
    let below = state.tree.ancestors(node).take_while(|&above| above != meeting);
    std::iter::once(node).chain(below).all(|node| !within_quota(state, node, need.contested))
}

/// All candidates.
fn collect(state: &State, need: &PreemptionRequest<'_>, pool: &mut Pool) {
    let own = need.attempt.queue;
    let policy = state.queue(own).preemption;
    if policy.reclaim != PreemptionPolicy::Never {
        collect_foreign(state, need, pool);
    }
    pool.enter(state, own);
    for workload in of_queue(state, need, own, policy.within_cluster_queue) {
        pool.add(
            state,
            Candidate::new(state, own, workload, PreemptionVariant::WithinClusterQueue),
        );
    }
}

/// Walks up from the queue's parent. Once the request fits within the quota of a node on the way, everything further
/// up may be reclaimed on the ground that this node owns it.
fn collect_foreign(state: &State, need: &PreemptionRequest<'_>, pool: &mut Pool) {
    let leaf = state.queue(need.attempt.queue).node;
    let mut rest: smallvec::SmallVec<[_; 4]> = need.usage.into();
    let mut advantage = fits_quota(&state.tree, leaf, &mut rest);
    let mut skip = leaf;
    for node in state.tree.ancestors(leaf) {
        collect_below(state, need, &Walk { meeting: node, skip, advantage }, node, pool);
        advantage |= fits_quota(&state.tree, node, &mut rest);
        skip = node;
    }
}

/// Whether what is left of the request fits within a node's own quota; takes off what the node has for itself.
fn fits_quota(tree: &Tree, node: NodeId, rest: &mut [(crate::ids::Slot, crate::Amount)]) -> bool {
    let mut fits = true;
    for (slot, amount) in rest {
        let cell = tree.at(node, *slot);
        fits &= !cell.borrowing_with(*amount);
        *amount = (*amount - cell.local_available()).clip();
    }
    fits
}

#[derive(Debug, Clone, Copy)]
struct Walk {
    meeting: NodeId,
    /// Seen already.
    skip: NodeId,
    advantage: bool,
}

fn collect_below(
    state: &State,
    need: &PreemptionRequest<'_>,
    walk: &Walk,
    node: NodeId,
    pool: &mut Pool,
) {
    for &child in &state.tree.node(node).children {
        if child == walk.skip || within_quota(state, child, need.contested) {
            continue;
        }
        match state.tree.node(child).queue {
            None => collect_below(state, need, walk, child, pool),
            Some(queue) if state.queue(queue).active => {
                let policy = state.queue(need.attempt.queue).preemption;
                pool.enter(state, queue);
                for workload in of_queue(state, need, queue, policy.reclaim) {
                    let variant = variant(state, need, workload, walk.advantage, policy.borrow);
                    let candidate = Candidate::new(state, queue, workload, variant);
                    pool.add(state, Candidate { meeting: Some(walk.meeting), ..candidate });
                }
            }
            Some(_) => {}
        }
    }
}

fn variant(
    state: &State,
    need: &PreemptionRequest<'_>,
    candidate: WorkloadId,
    advantage: bool,
    borrow: Option<BorrowWithinCohort>,
) -> PreemptionVariant {
    let (own, other) = (state.workloads.at(need.attempt.workload), state.workloads.at(candidate));
    match borrow {
        _ if advantage => PreemptionVariant::HierarchicalReclaim,
        None => PreemptionVariant::ReclaimWithoutBorrowing,
        Some(_) if other.priority >= own.priority => PreemptionVariant::ReclaimWithoutBorrowing,
        Some(BorrowWithinCohort { max_priority: Some(bound) }) if other.priority > bound => {
            PreemptionVariant::ReclaimWithoutBorrowing
        }
        Some(_) => PreemptionVariant::ReclaimWhileBorrowing,
    }
}
