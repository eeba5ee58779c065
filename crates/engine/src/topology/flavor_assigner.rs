//! Placements and assignments: finding places for what was assigned, keeping them, checking them again.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::cycle::{CycleEntry, CycleOutcome};
use crate::flavors::assign::{Assignment, AssignmentAttempt, FlavorAssignmentMode};
use crate::ids::{FlavorId, QueueId, WorkloadId};
use crate::reason::{NoFitReason, PendingReason};
use crate::state::State;
use crate::topology::assignment_search::{TasPodSetRequest, find};
use crate::topology::elastic_assignment::{
    RetainedAssignments, pods_beyond_previous, unsupported_constraint,
};
use crate::topology::{DomainAssignment, PlacementFailure, Topologies};

/// Builds stale trees and places everybody who holds a place.
pub(crate) fn rebuild(state: &mut State) {
    if !std::mem::take(&mut state.topologies.stale) {
        return;
    }
    let mut topologies = std::mem::take(&mut state.topologies);
    build(state, &mut topologies);
    state.topologies = topologies;
}

/// Topologies as the next search will find them.
pub(super) fn up_to_date(state: &State) -> Cow<'_, Topologies> {
    if !state.topologies.stale {
        return Cow::Borrowed(&state.topologies);
    }
    let mut topologies = state.topologies.clone();
    build(state, &mut topologies);
    Cow::Owned(topologies)
}

fn build(state: &State, topologies: &mut Topologies) {
    topologies.build(&state.flavors, state.names.resources.len());
    if !topologies.any() {
        return;
    }
    for index in 0..state.names.workloads.len() {
        if let Some(workload) = state.workloads.get(WorkloadId::from(index))
            && let Some(admission) = workload.admission.as_deref()
        {
            topologies.charge_admission(admission, &workload.class, &state.classes);
        }
    }
}

/// The topology flavor a pod set was assigned, if it has to be placed.
fn flavor_of(state: &State, assignment: &Assignment, index: usize) -> Option<FlavorId> {
    let one = assignment.pod_sets.get(index).filter(|one| !one.delayed_topology)?;
    let mut flavors = one.flavor_assignments.iter().map(|choice| choice.flavor);
    flavors.find(|&flavor| state.topologies.tree(flavor).is_some())
}

/// The pod sets that have to be placed, but for pods that stay; or one that asks for a place and cannot have one, and why.
fn pod_set_requests<'a>(
    state: &State,
    attempt: &AssignmentAttempt<'a>,
    assignment: &Assignment,
    retained: &'a RetainedAssignments,
) -> Result<SmallVec<[TasPodSetRequest<'a>; 2]>, (usize, NoFitReason)> {
    let implied = state.queue(attempt.queue).topology_only;
    let mut all = SmallVec::new();
    let pod_sets = attempt.class.pod_sets.iter().zip(&assignment.pod_sets).enumerate();
    for (pod_set, (spec, one)) in pod_sets {
        let asks = implied || spec.asks_for_topology();
        if asks && one.count > 0 && !one.delayed_topology {
            let given = one.flavor_assignments.iter().map(|choice| choice.flavor);
            let flavor = only_flavor(state, attempt.queue, given);
            let flavor = flavor.map_err(|reason| (pod_set, reason))?;
            if let Some(reason) = unsupported_constraint(state, attempt, spec) {
                return Err((pod_set, reason));
            }
            let (retained, pods) = (retained.get(pod_set), one.count - retained.pods(pod_set));
            all.push(TasPodSetRequest { pod_set, spec, pods, flavor, within: None, retained });
        }
    }
    Ok(all)
}

/// The one topology flavor of several that a pod set gets. It can have places neither without one nor of several.
pub(crate) fn only_flavor(
    state: &State,
    queue: QueueId,
    given: impl Iterator<Item = FlavorId> + Clone,
) -> Result<FlavorId, NoFitReason> {
    let has_tree = |flavor: &FlavorId| state.topologies.tree(*flavor).is_some();
    let mut given = given.filter(has_tree);
    let Some(first) = given.next() else {
        let mut all = state.queue(queue).groups.iter().flat_map(|group| &group.flavors);
        return Err(if all.any(has_tree) {
            NoFitReason::NoTopologyFlavor
        } else {
            NoFitReason::NoTopologies
        });
    };
    if given.clone().all(|flavor| flavor == first) {
        return Ok(first);
    }
    let mut several: Vec<FlavorId> = given.chain([first]).collect();
    several.sort_by_key(|&flavor| state.names.flavors.name(flavor));
    several.dedup();
    Err(NoFitReason::TopologyFlavors(several.into()))
}

/// Searches with the buffers of the state.
pub(super) fn search(
    state: &mut State,
    all: &[TasPodSetRequest<'_>],
    empty: bool,
) -> Result<(), (usize, PlacementFailure)> {
    let mut scratch = std::mem::take(&mut state.topologies.scratch);
    let found = find(state, &mut scratch, all, empty);
    state.topologies.scratch = scratch;
    found
}

/// Finds places for a fresh assignment. What fits the quota but finds no place would need preemption; what finds no
/// place even in an empty topology does not fit at all.
pub(crate) fn assign(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &mut Assignment,
) {
    if assignment.mode() == FlavorAssignmentMode::NoFit {
        return;
    }
    let retained = RetainedAssignments::of(state, attempt, assignment);
    let all = match pod_set_requests(state, attempt, assignment, &retained) {
        Ok(all) if all.is_empty() => return,
        Ok(all) => all,
        Err((index, reason)) => {
            let one = &mut assignment.pod_sets[index];
            (one.no_fit, one.reasons) = (true, smallvec::smallvec![reason]);
            return;
        }
    };
    if assignment.mode() == FlavorAssignmentMode::Fit {
        match search(state, &all, false) {
            Ok(()) => return record_domains(state, assignment, &all),
            Err((index, reason)) => demote(assignment, index, reason),
        }
    }
    match search(state, &all, true) {
        // Which of its resources somebody must go for is not known: what is free may be free in the wrong places.
        Ok(()) => all.iter().for_each(|one| require_preemption(assignment, one.pod_set)),
        Err((index, _)) => {
            // What was said before stands; a pod set of which nothing was said stays silent, and so does the condition.
            let one = &mut assignment.pod_sets[index];
            one.no_fit = true;
            let silent = one.reasons.is_empty();
            assignment.pending_reason = (!silent).then_some(PendingReason::TopologyPlacementFailed);
        }
    }
}

fn demote(assignment: &mut Assignment, index: usize, reason: PlacementFailure) {
    assignment.pod_sets[index].reasons.push(NoFitReason::TopologyPlacement(Box::new(reason)));
    require_preemption(assignment, index);
}

/// Makes a pod set wait for victims in everything it gets.
fn require_preemption(assignment: &mut Assignment, index: usize) {
    for choice in &mut assignment.pod_sets[index].flavor_assignments {
        choice.mode = FlavorAssignmentMode::Preempt;
    }
}

/// Enters what a search found.
fn record_domains(state: &State, assignment: &mut Assignment, all: &[TasPodSetRequest<'_>]) {
    for one in &mut assignment.pod_sets {
        one.domains.clear();
    }
    let found = state.topologies.scratch.placed.iter();
    let found = found.map(|one| (one.flavor, one.pod_set, one.leaf, one.pods));
    let retained = all.iter().flat_map(|one| {
        one.retained.iter().map(|&(leaf, pods)| (one.flavor, one.pod_set, leaf, pods))
    });
    for (flavor, pod_set, leaf, count) in found.chain(retained) {
        if let Some(tree) = state.topologies.tree(flavor) {
            let values = Arc::clone(tree.path(leaf));
            assignment.pod_sets[pod_set].domains.push(DomainAssignment { values, count });
        }
    }
    for one in &mut assignment.pod_sets {
        one.domains.sort_by(|left, right| left.values.cmp(&right.values));
    }
    for one in all.iter().filter(|one| !one.retained.is_empty()) {
        merge_equal_domains(&mut assignment.pod_sets[one.pod_set].domains);
    }
}

/// Pods in the same place are said once.
fn merge_equal_domains(domains: &mut Vec<DomainAssignment>) {
    domains.dedup_by(|later, first| {
        let same = later.values == first.values;
        first.count += if same { later.count } else { 0 };
        same
    });
}

/// Places for a Workload that waits for its victims, as if they were gone; in an empty topology if it has none. They
/// count in the rest of the cycle.
pub(crate) fn assign_assuming_preemption(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &mut Assignment,
    empty: bool,
) {
    let retained = RetainedAssignments::of(state, attempt, assignment);
    if assignment.mode() == FlavorAssignmentMode::Preempt
        && let Ok(all) = pod_set_requests(state, attempt, assignment, &retained)
        && !all.is_empty()
        && search(state, &all, empty).is_ok()
    {
        record_domains(state, assignment, &all);
    }
}

/// Whether everybody finds a place now.
pub(crate) fn fits(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &Assignment,
) -> bool {
    let retained = RetainedAssignments::of(state, attempt, assignment);
    pod_set_requests(state, attempt, assignment, &retained)
        .is_ok_and(|all| all.is_empty() || search(state, &all, false).is_ok())
}

/// Whether everybody who has pods finds a place in a flavor now.
pub(crate) fn finds_topology_assignment(
    state: &mut State,
    workload: WorkloadId,
    flavor: FlavorId,
) -> bool {
    let class = state.class_of(workload);
    let pod_sets = class.pod_sets.iter().enumerate().filter(|(_, spec)| spec.count > 0);
    let all: SmallVec<[TasPodSetRequest<'_>; 2]> = pod_sets
        .map(|(pod_set, spec)| TasPodSetRequest {
            pod_set,
            spec,
            pods: spec.count,
            flavor,
            within: None,
            retained: &[],
        })
        .collect();
    rebuild(state);
    search(state, &all, false).is_ok()
}

/// Whether the very places that were found are still free.
pub(crate) fn still_fits(state: &State, entry: &CycleEntry) -> bool {
    entry.assignment.pod_sets.iter().enumerate().all(|(index, one)| {
        let Some(flavor) = flavor_of(state, &entry.assignment, index) else {
            return true;
        };
        let Some(tree) = state.topologies.tree(flavor) else {
            return true;
        };
        let spec = &entry.class.pod_sets[index];
        one.domains.iter().all(|place| {
            let Some(leaf) = tree.leaf(&place.values) else {
                return false;
            };
            // The implicit resource `pods` is not looked at here, as upstream does not.
            let pods = pods_beyond_previous(state, entry, index, flavor, place);
            spec.takes().iter().all(|&(resource, amount)| {
                let used = state.topologies.used(tree, leaf, resource);
                amount.times(pods) + used <= tree.capacity_of(leaf, resource)
            })
        })
    })
}

/// Takes the places of an entry for the rest of the cycle.
pub(crate) fn assume(state: &mut State, entry: &CycleEntry) {
    charge(state, entry, 1);
}

/// Takes the places of a head that has to wait, so that later heads of the cycle leave them alone.
pub(crate) fn reserve(state: &mut State, entry: &mut CycleEntry) {
    entry.reserved = true;
    charge(state, entry, 1);
}

/// Gives back what was taken for the cycle.
pub(crate) fn forget(state: &mut State, entry: &CycleEntry) {
    let taken = matches!(
        entry.outcome,
        CycleOutcome::Reserved { .. }
            | CycleOutcome::Preempting
            | CycleOutcome::Deferred
            | CycleOutcome::Migrating { .. }
            | CycleOutcome::MigrationRefused
    );
    if taken || entry.reserved {
        charge(state, entry, -1);
    }
}

fn charge(state: &mut State, entry: &CycleEntry, sign: i64) {
    let pairs = entry.assignment.pod_sets.iter().zip(&entry.class.pod_sets).enumerate();
    for (index, (one, spec)) in pairs {
        let Some(flavor) = flavor_of(state, &entry.assignment, index) else {
            continue;
        };
        for place in &one.domains {
            let pods = pods_beyond_previous(state, entry, index, flavor, place);
            state.topologies.charge(flavor, &place.values, spec, pods * sign);
        }
    }
}
