//! Other flavors for an entry with free quota that no worker cluster takes with the flavors of its nomination.
//!
//! Flavors that were refused are left out, and the scan of the others is that of a nomination: the order of the flavors, borrowing
//! and flavorFungibility decide as if these were not there. An assignment that fits is offered to the placer in the same
//! cycle. Only when none is taken, one that needs preemption counts.
//! Source: docs/reference/dispatch.md §1.
//!
//! A flavor that is the last one of its resource group is not left out. All combinations of the flavors of several groups are tried
//! if they are not too many. Otherwise the next flavors of all groups come first together, because flavors that are bound to the same
//! clusters are mostly at the same place of their groups.
//!
//! Cost, only for a refused entry of a ClusterQueue with alternative flavors: at most one evaluation with quota per combination, and
//! [`MAX_COMBINATIONS`] or one per flavor. An evaluation without quota plans no further ones.

use std::collections::VecDeque;

use smallvec::SmallVec;

use crate::cycle::entry::{CycleEntry, CycleOutcome};
use crate::cycle::nominate::{EvaluationLimits, evaluate};
use crate::cycle::preemption_on_clusters::{preempt, preempt_for_room};
use crate::cycle::process::has_usable_targets;
use crate::flavors::assignment::FlavorAssignmentMode;
use crate::ids::{FlavorId, RequeueKey, WorkloadId};
use crate::placer::Placer;
use crate::reason::PendingReason;
use crate::spec::FlavorFungibilityPolicy;
use crate::state::State;

/// Combinations of flavors that are all tried.
const MAX_COMBINATIONS: usize = 64;

/// Flavors that an evaluation leaves out, sorted.
type ExcludedFlavors = SmallVec<[FlavorId; 2]>;

/// The outcome of an entry that no cluster takes with its present flavors. It waits under `key`, gets other flavors, or preempts.
/// `earlier` are the targets of entries processed before.
pub(super) fn retry_other_flavors(
    state: &mut State,
    entry: &mut CycleEntry,
    earlier: &[WorkloadId],
    key: RequeueKey,
    placer: &mut dyn Placer,
) -> CycleOutcome {
    let mut outcome = CycleOutcome::NoClusterCapacity(key);
    let fits = entry.assignment.mode() == FlavorAssignmentMode::Fit;
    let room_first = fits && prefers_preemption(state, entry);
    if room_first {
        outcome = preempt_for_room(state, entry, earlier, key, placer);
        if !is_refused(outcome) {
            return outcome;
        }
    }
    let mut search = FlavorSearch::new(state, entry);
    if let Some(placed) = search.place(state, entry, earlier, placer) {
        return placed;
    }
    if fits && !room_first {
        outcome = preempt_for_room(state, entry, earlier, key, placer);
        if !is_refused(outcome) {
            return outcome;
        }
    }
    if let Some(mut found) = search.preempting {
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
    next: VecDeque<ExcludedFlavors>,
    seen: Vec<ExcludedFlavors>,
    /// Evaluations with quota that are left.
    left: usize,
    /// Not all combinations are tried.
    is_cut: bool,
    /// The first assignment that needs preemption, with its targets.
    preempting: Option<CycleEntry>,
}

impl FlavorSearch {
    fn new(state: &State, entry: &CycleEntry) -> Self {
        let groups = &state.queues.at(entry.queue).groups;
        let sizes = || groups.iter().map(|one| one.flavors.len()).filter(|size| *size > 0);
        let combinations = sizes().fold(1, usize::saturating_mul);
        let mut search = Self {
            next: VecDeque::new(),
            seen: Vec::new(),
            left: combinations.min(MAX_COMBINATIONS).max(sizes().sum()),
            is_cut: combinations > MAX_COMBINATIONS,
            preempting: None,
        };
        // A replacement slice keeps the flavors of the old one.
        if combinations > 1 && entry.replaced_slice.is_none() {
            search.exclude_each(state, &ExcludedFlavors::new(), entry);
        }
        search
    }

    /// Plans evaluations without each flavor of an assignment that was not taken, beside those that it lacks already, and one without
    /// all of them if not every combination is tried.
    fn exclude_each(&mut self, state: &State, before: &ExcludedFlavors, refused: &CycleEntry) {
        let groups = &state.queues.at(refused.queue).groups;
        let chosen = refused.assignment.pod_sets.iter().flat_map(|one| &one.flavor_assignments);
        let mut all = before.clone();
        for flavor in chosen.map(|choice| choice.flavor) {
            let has_another = |excluded: &ExcludedFlavors| {
                let mut own = groups.iter().filter(|group| group.flavors.contains(&flavor));
                own.all(|group| {
                    group.flavors.iter().any(|one| *one != flavor && !excluded.contains(one))
                })
            };
            if has_another(before) {
                self.plan(with(before, flavor), false);
            }
            if has_another(&all) && !all.contains(&flavor) {
                all = with(&all, flavor);
            }
        }
        if self.is_cut && all != *before {
            self.plan(all, true);
        }
    }

    /// Plans an evaluation once.
    fn plan(&mut self, excluded: ExcludedFlavors, first: bool) {
        if self.seen.contains(&excluded) {
            return;
        }
        self.seen.push(excluded.clone());
        if first { self.next.push_front(excluded) } else { self.next.push_back(excluded) }
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
            self.left -= 1;
            self.exclude_each(state, &refused, &found);
        }
        // No key wakes it for the combinations that were not tried.
        entry.lacks_quota |= !self.next.is_empty();
        None
    }

    fn keep_preempting(&mut self, state: &mut State, found: &CycleEntry, earlier: &[WorkloadId]) {
        if self.preempting.is_none() && has_usable_targets(state, found, earlier) {
            self.preempting = Some(found.clone());
        }
    }
}

fn with(excluded: &ExcludedFlavors, flavor: FlavorId) -> ExcludedFlavors {
    let mut more = excluded.clone();
    more.push(flavor);
    more.sort_unstable();
    more
}

fn evaluate_without(
    state: &mut State,
    entry: &CycleEntry,
    refused: &ExcludedFlavors,
) -> CycleEntry {
    let mut found = entry.clone();
    evaluate(state, &mut found, EvaluationLimits { refused, ..EvaluationLimits::default() });
    found
}

/// Whether released quota, or pods that leave, may make an assignment fit.
fn may_get_quota(found: &CycleEntry) -> bool {
    let waits = [PendingReason::WaitingForQuota, PendingReason::TopologyPlacementFailed];
    found.assignment.deferred
        || found.assignment.pending_reason.is_some_and(|one| waits.contains(&one))
}
