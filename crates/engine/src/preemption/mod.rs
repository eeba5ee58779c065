//! Preemption: whom to evict so that a Workload fits.
//!
//! [`classical`] follows priorities and ownership of quota, [`fair`] follows shares; [`candidates`] knows the policies
//! and the order. Both remove candidates until the request fits and then put back whoever was not needed. Everything
//! happens inside a what-if. Source: docs/reference/kueue.md §4.9, §4.10.

pub(crate) mod candidates;
pub(crate) mod classical;
pub(crate) mod fair;

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::flavors::assign::{Assignment, AssignmentAttempt};
use crate::flavors::granular_mode::{GranularMode, PreemptionMode};
use crate::ids::{QueueId, Slot, WorkloadId};
use crate::quota::available::{available, reach};
use crate::reason::PreemptionReason;
use crate::state::State;
use crate::topology;
use crate::workload::Usage;

/// A victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreemptionTarget {
    /// Who.
    pub workload: WorkloadId,
    /// Why.
    pub reason: PreemptionReason,
}

/// Buffers of searches, kept between them.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    targets: Vec<PreemptionTarget>,
    /// For what the targets were found, as long as nothing changed since.
    found_for: Option<(Slot, Amount)>,
    pool: classical::Pool,
}

impl Scratch {
    /// Another attempt begins, and the books may be others.
    pub(crate) fn forget(&mut self) {
        self.found_for = None;
    }
}

/// What room is made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PreemptionRequest<'a> {
    pub(crate) attempt: &'a AssignmentAttempt<'a>,
    pub(crate) usage: &'a [(Slot, Amount)],
    /// The slots for which somebody has to go.
    pub(crate) contested: &'a [Slot],
    /// The assignment whose pods must find a place too.
    pub(crate) assignment: Option<&'a Assignment>,
}

/// Finds victims so that `need` fits; none if that is impossible.
pub(crate) fn find(
    state: &mut State,
    need: &PreemptionRequest<'_>,
    targets: &mut Vec<PreemptionTarget>,
) {
    targets.clear();
    if state.settings.fair_sharing.is_some() {
        fair::find(state, need, targets);
    } else {
        classical::find(state, need, targets);
    }
}

/// Finds victims for a whole assignment.
pub(crate) fn find_for(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &Assignment,
    targets: &mut Vec<PreemptionTarget>,
) {
    let contested = assignment.contested();
    // Upstream forgets the implicit resource `pods` here; too few victims then show when the head is processed. What
    // nothing is asked of does not count: it may be borrowed already.
    let counts =
        |one: &&(Slot, Amount)| one.1 != Amount::ZERO && state.tree.pair(one.0).1 != state.pods;
    let usage: Usage = assignment.usage.iter().filter(counts).copied().collect();
    if let [asked] = *usage.as_slice()
        && contested.as_slice() == [asked.0]
        && state.scratch.found_for == Some(asked)
        && !state.topologies.any()
        && state.tree.is_countable()
    {
        // The only slot was judged last, by this very search, which left no traces.
        targets.clone_from(&state.scratch.targets);
        return;
    }
    let need = PreemptionRequest {
        attempt,
        usage: &usage,
        contested: &contested,
        assignment: Some(assignment),
    };
    find(state, &need, targets);
}

/// What preemption could do for one slot alone.
pub(crate) fn simulate(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    slot: Slot,
    amount: Amount,
) -> GranularMode {
    let usage = [(slot, amount)];
    let need = PreemptionRequest { attempt, usage: &usage, contested: &[slot], assignment: None };
    let mut targets = std::mem::take(&mut state.scratch.targets);
    find(state, &need, &mut targets);
    let grade = grade_of(state, attempt, (slot, amount), &targets);
    (state.scratch.targets, state.scratch.found_for) = (targets, Some((slot, amount)));
    grade
}

fn grade_of(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    (slot, amount): (Slot, Amount),
    targets: &[PreemptionTarget],
) -> GranularMode {
    let node = state.queue(attempt.queue).node;
    if targets.is_empty() {
        let borrow = reach(&state.tree, node, slot, amount).height;
        return GranularMode { grant: PreemptionMode::NoCandidates, borrow };
    }
    let mark = state.tree.journal.mark();
    let borrow =
        without(state, &ids(targets), |state| reach(&state.tree, node, slot, amount).height);
    state.tree.settle(mark);
    let own = targets.iter().any(|target| queue_of(state, target.workload) == attempt.queue);
    GranularMode {
        grant: if own { PreemptionMode::Preempt } else { PreemptionMode::Reclaim },
        borrow,
    }
}

/// The queue in which a Workload holds quota.
pub(crate) fn queue_of(state: &State, id: WorkloadId) -> QueueId {
    let admission = state.workloads.at(id).admission.as_deref();
    admission.map(|admission| admission.queue).expect("invariant: victims hold quota")
}

/// Takes a Workload's usage away within a what-if.
pub(crate) fn hide(state: &mut State, id: WorkloadId) {
    change(state, id, true);
}

/// Undoes [`hide`].
pub(crate) fn show(state: &mut State, id: WorkloadId) {
    change(state, id, false);
}

/// What `look` sees while the Workloads `gone` are hidden.
pub(crate) fn without<T>(
    state: &mut State,
    gone: &[WorkloadId],
    look: impl FnOnce(&mut State) -> T,
) -> T {
    for &id in gone {
        hide(state, id);
    }
    let seen = look(state);
    for &id in gone {
        show(state, id);
    }
    seen
}

/// The Workloads that are to go.
pub(crate) fn ids(targets: &[PreemptionTarget]) -> WorkloadIds {
    targets.iter().map(|target| target.workload).collect()
}

fn change(state: &mut State, id: WorkloadId, hidden: bool) {
    let workload = state.workloads.at_mut(id);
    if workload.hidden == hidden {
        return;
    }
    workload.hidden = hidden;
    let class = workload.class;
    let Some(admission) = workload.admission.take() else {
        return;
    };
    let node = state.queue(admission.queue).node;
    if hidden {
        state.tree.uncharge(node, &admission.usage);
        state.topologies.release_admission(&admission, &class, &state.classes);
    } else {
        state.tree.charge(node, &admission.usage);
        state.topologies.charge_admission(&admission, &class, &state.classes);
    }
    state.workloads.at_mut(id).admission = Some(admission);
}

/// Whether the request fits now; without borrowing, only within the queue's own quota.
pub(super) fn fits(state: &mut State, need: &PreemptionRequest<'_>, borrowing: bool) -> bool {
    let node = state.queue(need.attempt.queue).node;
    let quota = need.usage.iter().all(|&(slot, amount)| {
        (borrowing || !state.tree.at(node, slot).borrowing_with(amount))
            && amount <= available(&state.tree, node, slot).clip()
    });
    quota && need.assignment.is_none_or(|one| topology::fits(state, need.attempt, one))
}

/// Puts back victims that were not needed, latest first; the last one removed made it fit and stays.
pub(super) fn fill_back(
    state: &mut State,
    targets: &mut Vec<PreemptionTarget>,
    mut still_fits: impl FnMut(&mut State) -> bool,
) {
    let mut index = targets.len().saturating_sub(1);
    while index > 0 {
        index -= 1;
        let target = targets[index];
        show(state, target.workload);
        if still_fits(state) {
            targets.swap_remove(index);
        } else {
            hide(state, target.workload);
        }
    }
}

/// The slots of a Workload's usage that are contested.
pub(super) fn uses(state: &State, id: WorkloadId, contested: &[Slot]) -> bool {
    let admission = state.workloads.at(id).admission.as_deref();
    admission.is_some_and(|one| one.usage.iter().any(|(slot, _)| contested.contains(slot)))
}

/// Shorthand for lists of Workloads.
pub(crate) type WorkloadIds = SmallVec<[WorkloadId; 16]>;
