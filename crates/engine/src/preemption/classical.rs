//! Preemption by priority and ownership of quota.
//!
//! Candidates of the own queue, and of every queue of the tree that uses more than its own quota, in three lists:
//! those whose quota belongs to the preemptor's side of the tree (*hierarchical*), those that may be taken on grounds of
//! priority, and those of the own queue. Source: spec/kueue-core.md §4.9. Cost: candidates · log + candidates · depth.

use crate::ids::{NodeId, QueueId, WorkloadId};
use crate::preemption::candidates::{is_evicted, of_queue, order, within_quota};
use crate::preemption::{Need, Target, fill_back, fits, hide, show};
use crate::quota::tree::Tree;
use crate::reason::PreemptionReason;
use crate::spec::{BorrowWithinCohort, PreemptionPolicy};
use crate::state::State;

/// On what ground a candidate may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ground {
    OwnQueue,
    Hierarchical,
    WithoutBorrowing,
    WhileBorrowing,
}

impl Ground {
    fn reason(self) -> PreemptionReason {
        match self {
            Self::OwnQueue => PreemptionReason::InClusterQueue,
            Self::Hierarchical | Self::WithoutBorrowing => PreemptionReason::InCohortReclamation,
            Self::WhileBorrowing => PreemptionReason::InCohortReclaimWhileBorrowing,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    workload: WorkloadId,
    queue: QueueId,
    ground: Ground,
    /// The lowest common ancestor with the preemptor's queue.
    meeting: Option<NodeId>,
}

/// Finds the victims.
pub(super) fn find(state: &mut State, need: &Need<'_>) -> Vec<Target> {
    let candidates = collect(state, need);
    if candidates.is_empty() {
        return Vec::new();
    }
    let foreign = candidates.iter().any(|one| one.ground != Ground::OwnQueue);
    let hierarchical = candidates.iter().any(|one| one.ground == Ground::Hierarchical);
    let forbidden = state.queue(need.attempt.queue).preemption.borrow.is_none();
    let runs: &[bool] = if !foreign || (forbidden && !under_nominal(state, need)) {
        &[true]
    } else if forbidden && !hierarchical {
        &[false, true]
    } else {
        &[true, false]
    };
    for &borrowing in runs {
        let targets = run(state, need, &candidates, borrowing);
        if !targets.is_empty() {
            return targets;
        }
    }
    Vec::new()
}

fn under_nominal(state: &State, need: &Need<'_>) -> bool {
    let node = state.queue(need.attempt.queue).node;
    need.contested.iter().all(|&slot| {
        let cell = state.tree.at(node, slot);
        cell.usage < cell.nominal
    })
}

/// Removes candidates in order until the request fits. Leaves the state as it was.
fn run(state: &mut State, need: &Need<'_>, all: &[Candidate], borrowing: bool) -> Vec<Target> {
    let mark = state.tree.journal.mark();
    let mut targets = Vec::new();
    let mut found = false;
    for candidate in all {
        if !valid(state, need, candidate, borrowing) {
            continue;
        }
        hide(state, candidate.workload);
        targets.push(Target { workload: candidate.workload, reason: candidate.ground.reason() });
        if fits(state, need, borrowing) {
            found = true;
            break;
        }
    }
    if found {
        fill_back(state, &mut targets, |state| fits(state, need, borrowing));
    }
    for candidate in all {
        show(state, candidate.workload);
    }
    state.tree.rewind(mark);
    state.tree.journal.close();
    if !found {
        targets.clear();
    }
    targets
}

/// A foreign candidate is spared once its queue, or a cohort below the common ancestor, is back within its quota.
fn valid(state: &State, need: &Need<'_>, candidate: &Candidate, borrowing: bool) -> bool {
    if candidate.ground == Ground::WithoutBorrowing && borrowing {
        return false;
    }
    let Some(meeting) = candidate.meeting else {
        return true;
    };
    let node = state.queue(candidate.queue).node;
    let below = state.tree.ancestors(node).take_while(|&above| above != meeting);
    std::iter::once(node).chain(below).all(|node| !within_quota(state, node, need.contested))
}

/// All candidates in the order in which they are considered.
fn collect(state: &State, need: &Need<'_>) -> Vec<Candidate> {
    let own = need.attempt.queue;
    let policy = state.queue(own).preemption;
    let mut all = Vec::new();
    if policy.reclaim != PreemptionPolicy::Never {
        collect_foreign(state, need, &mut all);
    }
    let at_home = of_queue(state, need, own, policy.within_queue);
    all.extend(at_home.map(|workload| Candidate {
        workload,
        queue: own,
        ground: Ground::OwnQueue,
        meeting: None,
    }));
    let list = |one: &Candidate| match one.ground {
        Ground::Hierarchical => 0,
        Ground::WithoutBorrowing | Ground::WhileBorrowing => 1,
        Ground::OwnQueue => 2,
    };
    all.sort_by(|left, right| {
        let evicted = |one: &Candidate| is_evicted(state, one.workload);
        evicted(right)
            .cmp(&evicted(left))
            .then(list(left).cmp(&list(right)))
            .then_with(|| order(state, own, left.workload, right.workload))
    });
    all
}

/// Walks up from the queue's parent. Once the request fits within the quota of a node on the way, everything further
/// up may be reclaimed on the ground that this node owns it.
fn collect_foreign(state: &State, need: &Need<'_>, all: &mut Vec<Candidate>) {
    let leaf = state.queue(need.attempt.queue).node;
    let mut rest: smallvec::SmallVec<[_; 4]> = need.usage.into();
    let mut advantage = fits_quota(&state.tree, leaf, &mut rest);
    let mut skip = leaf;
    for node in state.tree.ancestors(leaf) {
        collect_below(state, need, &Walk { meeting: node, skip, advantage }, node, all);
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
    need: &Need<'_>,
    walk: &Walk,
    node: NodeId,
    all: &mut Vec<Candidate>,
) {
    for &child in &state.tree.node(node).children {
        if child == walk.skip || within_quota(state, child, need.contested) {
            continue;
        }
        match state.tree.node(child).queue {
            None => collect_below(state, need, walk, child, all),
            Some(queue) if state.queue(queue).active => {
                let policy = state.queue(need.attempt.queue).preemption;
                for workload in of_queue(state, need, queue, policy.reclaim) {
                    let ground = ground(state, need, workload, walk.advantage, policy.borrow);
                    let meeting = Some(walk.meeting);
                    all.push(Candidate { workload, queue, ground, meeting });
                }
            }
            Some(_) => {}
        }
    }
}

fn ground(
    state: &State,
    need: &Need<'_>,
    candidate: WorkloadId,
    advantage: bool,
    borrow: Option<BorrowWithinCohort>,
) -> Ground {
    let (own, other) = (state.workloads.at(need.attempt.workload), state.workloads.at(candidate));
    match borrow {
        _ if advantage => Ground::Hierarchical,
        None => Ground::WithoutBorrowing,
        Some(_) if other.priority >= own.priority => Ground::WithoutBorrowing,
        Some(BorrowWithinCohort { max_priority: Some(bound) }) if other.priority > bound => {
            Ground::WithoutBorrowing
        }
        Some(_) => Ground::WhileBorrowing,
    }
}
