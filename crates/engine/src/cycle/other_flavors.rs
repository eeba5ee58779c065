//! Other flavors for an entry whose quota is free, and that no worker cluster takes with the flavors of its nomination.
//!
//! Flavors that were refused are left out, and the scan of the others is that of a nomination: the order of the flavors, borrowing
//! and flavorFungibility decide as if these were not there. An assignment that fits is offered to the placer in the same
//! cycle. Only when none is taken, one that needs preemption counts.
//! Source: docs/reference/dispatch.md §1.
//!
//! Cost, only for a refused entry of a ClusterQueue with alternative flavors: at most one evaluation per flavor.

use std::collections::VecDeque;

use smallvec::SmallVec;

use crate::cycle::entry::{CycleEntry, CycleOutcome};
use crate::cycle::nominate::{EvaluationLimits, assign_topology, evaluate};
use crate::cycle::preemption_on_clusters::{preempt, preempt_for_room};
use crate::cycle::process::{fits_without, overlaps};
use crate::flavors::assignment::FlavorAssignmentMode;
use crate::ids::{FlavorId, RequeueKey, WorkloadId};
use crate::placer::Placer;
use crate::reason::PendingReason;
use crate::spec::FlavorFungibilityPolicy;
use crate::state::State;

/// Flavors that an evaluation leaves out, sorted.
type LeftOut = SmallVec<[FlavorId; 2]>;

/// The outcome of an entry that no cluster takes with its present flavors. It waits under `key`, gets other flavors, or preempts.
/// `earlier` are the targets of entries processed before.
pub(super) fn without_room(
    state: &mut State,
    entry: &mut CycleEntry,
    earlier: &[WorkloadId],
    key: RequeueKey,
    placer: &mut dyn Placer,
) -> CycleOutcome {
    let mut outcome = CycleOutcome::NoClusterCapacity(key);
    let fits = entry.assignment.mode() == FlavorAssignmentMode::Fit;
    let stays = prefers_preemption(state, entry);
    if fits && stays {
        outcome = preempt_for_room(state, entry, earlier, key, placer);
    }
    let mut search = FlavorSearch::new(state, entry);
    if is_refused(outcome)
        && let Some(placed) = search.place(state, entry, earlier, placer)
    {
        return placed;
    }
    if is_refused(outcome) && fits && !stays {
        outcome = preempt_for_room(state, entry, earlier, key, placer);
    }
    if is_refused(outcome)
        && let Some(mut found) = search.preempting
    {
        match preempt(state, &mut found, earlier, placer) {
            CycleOutcome::NoClusterCapacity(key) => entry.further_keys.push(key),
            preempting => {
                *entry = found;
                return preempting;
            }
        }
    }
    outcome
}

fn is_refused(outcome: CycleOutcome) -> bool {
    matches!(outcome, CycleOutcome::NoClusterCapacity(_))
}

/// Whether a scan of flavors ends at one that needs preemption.
fn prefers_preemption(state: &State, entry: &CycleEntry) -> bool {
    let fungibility = state.queues.at(entry.queue).flavor_fungibility;
    fungibility.when_can_preempt == FlavorFungibilityPolicy::MayStopSearch
}

/// A search for other flavors.
struct FlavorSearch {
    /// What to leave out in the next evaluations, in order.
    next: VecDeque<LeftOut>,
    seen: Vec<LeftOut>,
    /// Evaluations that are left.
    left: usize,
    /// The first assignment that needs preemption, with its targets.
    preempting: Option<CycleEntry>,
}

impl FlavorSearch {
    fn new(state: &State, entry: &CycleEntry) -> Self {
        let groups = &state.queues.at(entry.queue).groups;
        let has_others = groups.iter().any(|group| group.flavors.len() > 1);
        // A replacement slice keeps the flavors of the old one.
        let may_change = has_others && entry.replaced_slice.is_none();
        let left = if may_change { groups.iter().map(|one| one.flavors.len()).sum() } else { 0 };
        let mut search = Self { next: VecDeque::new(), seen: Vec::new(), left, preempting: None };
        search.leave_out(&LeftOut::new(), entry);
        search
    }

    /// Plans evaluations without each flavor of an assignment that was not taken, beside those that it lacks already.
    fn leave_out(&mut self, before: &LeftOut, refused: &CycleEntry) {
        let chosen = refused.assignment.pod_sets.iter().flat_map(|one| &one.flavor_assignments);
        for flavor in chosen.map(|choice| choice.flavor) {
            let mut set = before.clone();
            set.push(flavor);
            set.sort_unstable();
            if !self.seen.contains(&set) {
                self.seen.push(set.clone());
                self.next.push_back(set);
            }
        }
    }

    /// The outcome with the first other flavors that fit and that a cluster takes. Notes where the entry may wait otherwise.
    fn place(
        &mut self,
        state: &mut State,
        entry: &mut CycleEntry,
        earlier: &[WorkloadId],
        placer: &mut dyn Placer,
    ) -> Option<CycleOutcome> {
        while self.left > 0
            && let Some(refused) = self.next.pop_front()
        {
            self.left -= 1;
            let found = evaluate_without(state, entry, &refused);
            match found.assignment.mode() {
                FlavorAssignmentMode::Fit => match placer.place(&found) {
                    Ok(cluster) => {
                        *entry = found;
                        return Some(CycleOutcome::Reserved { cluster });
                    }
                    Err(key) => entry.further_keys.push(key),
                },
                FlavorAssignmentMode::Preempt => {
                    entry.lacks_quota = true;
                    self.keep_preempting(state, &found, earlier);
                }
                FlavorAssignmentMode::DeferredFit | FlavorAssignmentMode::NoFit => {
                    entry.lacks_quota |= may_get_quota(&found);
                    continue;
                }
            }
            self.leave_out(&refused, &found);
        }
        None
    }

    fn keep_preempting(&mut self, state: &mut State, found: &CycleEntry, earlier: &[WorkloadId]) {
        let is_usable = self.preempting.is_none()
            && !found.targets.is_empty()
            && !state.is_preemption_gated(found.workload)
            && !overlaps(found, earlier);
        if is_usable && fits_without(state, found, earlier) {
            self.preempting = Some(found.clone());
        }
    }
}

fn evaluate_without(state: &mut State, entry: &CycleEntry, refused: &LeftOut) -> CycleEntry {
    let mut found = entry.clone();
    evaluate(state, &mut found, EvaluationLimits { refused, ..EvaluationLimits::default() });
    assign_topology(state, &mut found);
    found
}

/// Whether released quota, or pods that leave, may make an assignment fit.
fn may_get_quota(found: &CycleEntry) -> bool {
    let waits = [PendingReason::WaitingForQuota, PendingReason::TopologyPlacementFailed];
    found.assignment.deferred
        || found.assignment.pending_reason.is_some_and(|one| waits.contains(&one))
}
