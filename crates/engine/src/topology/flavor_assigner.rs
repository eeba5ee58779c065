//! Adds topology assignments to flavor assignments, checks them again within a cycle, and charges their usage.
//!
//! Input: an [`Assignment`] whose flavors may have a topology. Output: the domains of each pod set, or a lower
//! flavor assignment mode. Source: docs/reference/kueue.md §4.11 (Kueue: `tas_flavorassigner.go`).

use std::sync::Arc;

use smallvec::SmallVec;

use crate::cycle::entry::{CycleEntry, CycleOutcome};
use crate::flavors::assignment::{Assignment, FlavorAssignmentMode};
use crate::flavors::attempt::AssignmentAttempt;
use crate::ids::{FlavorId, QueueId, WorkloadId};
use crate::names::Names;
use crate::queues::layer::QueueLayer;
use crate::reason::{NoFitReason, PendingReason};
use crate::settings::EngineSettings;
use crate::state::State;
use crate::topology::assignment_search::TasPodSetRequest;
use crate::topology::elastic_assignment::{
    RetainedAssignments, pods_beyond_previous, previous_pod_set,
};
use crate::topology::layer::TopologyLayer;
use crate::topology::planned_usage::PlannedUsage;
use crate::topology::refused_request::refusal;
use crate::topology::{DomainAssignment, PlacementFailure};
use crate::workloads::layer::WorkloadLayer;

/// The flavor with a topology that a pod set was assigned, if it needs a topology assignment now.
fn flavor_of(topology: &TopologyLayer, assignment: &Assignment, index: usize) -> Option<FlavorId> {
    let one = assignment.pod_sets.get(index).filter(|one| !one.delayed_topology)?;
    let mut flavors = one.flavor_assignments.iter().map(|choice| choice.flavor);
    flavors.find(|&flavor| topology.tree(flavor).is_some())
}

/// Topology requests of the pod sets of an assignment, without retained pods.
///
/// # Errors
/// The index of a pod set that requests a topology and cannot get one, and the reason.
fn pod_set_requests<'a>(
    state: &State,
    attempt: &AssignmentAttempt<'a>,
    assignment: &Assignment,
    retained: &'a RetainedAssignments,
) -> Result<SmallVec<[TasPodSetRequest<'a>; 2]>, (usize, NoFitReason)> {
    let implied = state.queues.at(attempt.queue).topology_only;
    // A Workload with quota was admitted under other gates, or by an earlier version, and keeps what it has.
    let is_new = || state.workloads.admission(attempt.workload).is_none();
    let count = |at: usize| assignment.pod_sets.get(at).map_or(0, |one| one.count);
    let mut all = SmallVec::new();
    let pod_sets = attempt.class.pod_sets.iter().zip(&assignment.pod_sets).enumerate();
    for (pod_set, (spec, one)) in pod_sets {
        // A pod set that got no pods needs no domains.
        if one.count == 0 || !(implied || spec.asks_for_topology()) {
            continue;
        }
        if is_new()
            && let Some(reason) = refusal(attempt.class, pod_set, one.delayed_topology, count)
        {
            return Err((pod_set, reason));
        }
        if one.delayed_topology {
            continue;
        }
        let given = one.flavor_assignments.iter().map(|choice| choice.flavor);
        let flavor =
            only_flavor(&state.names, &state.topology, &state.queues, attempt.queue, given);
        let flavor = flavor.map_err(|reason| (pod_set, reason))?;
        let (retained, pods) = (retained.get(pod_set), one.count - retained.pods(pod_set));
        all.push(TasPodSetRequest { pod_set, spec, pods, flavor, within: None, retained });
    }
    Ok(all)
}

/// The one flavor with a topology among the flavors given to a pod set. It is an error to have none, or several.
pub(crate) fn only_flavor(
    names: &Names,
    topology: &TopologyLayer,
    queues: &QueueLayer,
    queue: QueueId,
    given: impl Iterator<Item = FlavorId> + Clone,
) -> Result<FlavorId, NoFitReason> {
    let has_tree = |flavor: &FlavorId| topology.tree(*flavor).is_some();
    let mut given = given.filter(has_tree);
    let Some(first) = given.next() else {
        let mut all = queues.at(queue).groups.iter().flat_map(|group| &group.flavors);
        return Err(if all.any(has_tree) {
            NoFitReason::NoTopologyFlavor
        } else {
            NoFitReason::NoTopologies
        });
    };
    // A pod set may use only one flavor with a topology (§4.11).
    if given.clone().all(|flavor| flavor == first) {
        return Ok(first);
    }
    let mut several: Vec<FlavorId> = given.chain([first]).collect();
    several.sort_by_key(|&flavor| names.flavors.name(flavor));
    several.dedup();
    Err(NoFitReason::TopologyFlavors(several.into()))
}

/// Searches in the present topologies.
pub(super) fn search(
    state: &mut State,
    all: &[TasPodSetRequest<'_>],
    empty: bool,
) -> Result<(), (usize, PlacementFailure)> {
    let State { names, settings, quota, topology, .. } = state;
    topology.search(names, settings, quota, all, empty)
}

/// Adds topology assignments to a new flavor assignment. If quota fits but no topology assignment exists, the mode
/// becomes Preempt; if none exists even in an empty topology, it becomes NoFit.
pub(crate) fn assign(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &mut Assignment,
) {
    if assignment.mode() == FlavorAssignmentMode::NoFit {
        return;
    }
    let retained =
        RetainedAssignments::of(state, attempt.class, attempt.replaced_slice, assignment);
    let all = match pod_set_requests(state, attempt, assignment, &retained) {
        Ok(all) if all.is_empty() => return,
        Ok(all) => all,
        // As after a search that fails.
        Err((index, NoFitReason::TopologyPlacement(reason))) => {
            record_failure(assignment, index, *reason);
            return record_no_fit(assignment, index);
        }
        Err((index, reason)) => {
            let one = &mut assignment.pod_sets[index];
            (one.no_fit, one.reasons) = (true, smallvec::smallvec![reason]);
            return;
        }
    };
    if assignment.mode() == FlavorAssignmentMode::Fit {
        match retained.without_reassigned(state, |state| search(state, &all, false)) {
            Ok(()) => return record_domains(&state.topology, assignment, &all),
            // The reason for the present usage is kept, whatever the search in the empty topology
            // finds.
            Err((index, reason)) => record_failure(assignment, index, reason),
        }
    }
    match search(state, &all, true) {
        // Free capacity may be in the wrong domains, so every resource of the pod set needs preemption.
        Ok(()) => all.iter().for_each(|one| require_preemption(assignment, one.pod_set)),
        Err((index, _)) => record_no_fit(assignment, index),
    }
}

/// Not even the empty topology is large enough for a pod set. Its earlier reasons stay.
fn record_no_fit(assignment: &mut Assignment, index: usize) {
    let pod_set = &mut assignment.pod_sets[index];
    pod_set.no_fit = true;
    // A pod set without reasons gets none, and then the condition names no obstacle, as in upstream.
    let has_reasons = !pod_set.reasons.is_empty();
    assignment.pending_reason = has_reasons.then_some(PendingReason::TopologyPlacementFailed);
}

fn record_failure(assignment: &mut Assignment, index: usize, reason: PlacementFailure) {
    assignment.pod_sets[index].reasons.push(NoFitReason::TopologyPlacement(Box::new(reason)));
    require_preemption(assignment, index);
}

/// Sets all flavor assignments of a pod set to Preempt.
fn require_preemption(assignment: &mut Assignment, index: usize) {
    for choice in &mut assignment.pod_sets[index].flavor_assignments {
        choice.mode = FlavorAssignmentMode::Preempt;
    }
}

/// Writes the domains that the search found, and the retained ones, into the assignment.
fn record_domains(
    topology: &TopologyLayer,
    assignment: &mut Assignment,
    all: &[TasPodSetRequest<'_>],
) {
    for one in &mut assignment.pod_sets {
        one.domains.clear();
    }
    let found = topology.assigned().iter();
    let found = found.map(|one| (one.flavor, one.pod_set, one.leaf, one.pods));
    // Pods that keep their domains were not searched for.
    let retained = all.iter().flat_map(|request| {
        request.retained.iter().map(|&(leaf, pods)| (request.flavor, request.pod_set, leaf, pods))
    });
    for (flavor, pod_set, leaf, count) in found.chain(retained) {
        if let Some(tree) = topology.tree(flavor) {
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

/// Merges consecutive entries of the same domain.
fn merge_equal_domains(domains: &mut Vec<DomainAssignment>) {
    domains.dedup_by(|later, first| {
        let same = later.values == first.values;
        first.count += if same { later.count } else { 0 };
        same
    });
}

/// Assigns domains to a Workload that waits for preemption, as if its targets were gone; in an empty topology if it
/// has no targets (`empty`). The domains count for the rest of the cycle.
pub(crate) fn assign_assuming_preemption(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &mut Assignment,
    empty: bool,
) {
    let retained =
        RetainedAssignments::of(state, attempt.class, attempt.replaced_slice, assignment);
    if assignment.mode() == FlavorAssignmentMode::Preempt
        && let Ok(all) = pod_set_requests(state, attempt, assignment, &retained)
        && !all.is_empty()
        && retained.without_reassigned(state, |state| search(state, &all, empty)).is_ok()
    {
        record_domains(&state.topology, assignment, &all);
    }
}

/// Whether all pod sets fit into their topologies now.
pub(crate) fn fits(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &Assignment,
) -> bool {
    let retained =
        RetainedAssignments::of(state, attempt.class, attempt.replaced_slice, assignment);
    let Ok(all) = pod_set_requests(state, attempt, assignment, &retained) else {
        return false;
    };
    all.is_empty() || retained.without_reassigned(state, |state| search(state, &all, false)).is_ok()
}

/// Whether all pods of a Workload fit into the topology of a flavor now.
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
    state.rebuild_topologies();
    search(state, &all, false).is_ok()
}

/// Whether the domains of an entry still have enough free capacity.
pub(crate) fn still_fits(state: &mut State, entry: &CycleEntry) -> bool {
    let assignment = &entry.assignment;
    let retained = RetainedAssignments::of(state, &entry.class, entry.replaced_slice, assignment);
    retained.without_reassigned(state, |state| has_free_domains(state, entry, &retained))
}

fn has_free_domains(state: &State, entry: &CycleEntry, retained: &RetainedAssignments) -> bool {
    let State { settings, workloads, topology, .. } = state;
    let mut planned = PlannedUsage::of(settings, &entry.assignment);
    entry.assignment.pod_sets.iter().enumerate().all(|(index, pod_set)| {
        let Some(flavor) = flavor_of(topology, &entry.assignment, index) else {
            return true;
        };
        let Some(tree) = topology.tree(flavor) else {
            return true;
        };
        let spec = &entry.class.pod_sets[index];
        let previous = previous_pod_set(settings, workloads, entry, index);
        let previous = previous.filter(|_| !retained.is_reassigned(index));
        pod_set.domains.iter().all(|domain| {
            let Some(leaf) = tree.leaf(&domain.values) else {
                return false;
            };
            // The implicit resource `pods` is not checked here, as in upstream.
            let pods = pods_beyond_previous(tree, previous, domain);
            spec.takes().iter().all(|&(resource, amount)| {
                let used = topology.topologies().used(tree, leaf, resource);
                let planned = planned.add(flavor, tree, leaf, resource, amount.times(pods));
                planned + used <= tree.capacity_of(leaf, resource)
            })
        })
    })
}

/// Charges the domains of an entry for the rest of the cycle.
pub(crate) fn assume(
    settings: &EngineSettings,
    workloads: &WorkloadLayer,
    topology: &mut TopologyLayer,
    entry: &CycleEntry,
) {
    charge(settings, workloads, topology, entry, 1);
}

/// Charges the domains of a head that must wait, so that later heads of the cycle do not use them.
pub(crate) fn reserve(
    settings: &EngineSettings,
    workloads: &WorkloadLayer,
    topology: &mut TopologyLayer,
    entry: &mut CycleEntry,
) {
    entry.reserved = true;
    charge(settings, workloads, topology, entry, 1);
}

/// Reverts [`assume`] or [`reserve`].
pub(crate) fn forget(
    settings: &EngineSettings,
    workloads: &WorkloadLayer,
    topology: &mut TopologyLayer,
    entry: &CycleEntry,
) {
    let taken = matches!(
        entry.outcome,
        CycleOutcome::Reserved { .. }
            | CycleOutcome::Preempting
            | CycleOutcome::Deferred
            | CycleOutcome::Migrating { .. }
            | CycleOutcome::MigrationRefused
    );
    // Entries with another outcome took no domains in the cycle.
    if taken || entry.reserved {
        charge(settings, workloads, topology, entry, -1);
    }
}

fn charge(
    settings: &EngineSettings,
    workloads: &WorkloadLayer,
    topology: &mut TopologyLayer,
    entry: &CycleEntry,
    sign: i64,
) {
    let pairs = entry.assignment.pod_sets.iter().zip(&entry.class.pod_sets).enumerate();
    for (index, (one, spec)) in pairs {
        let Some(flavor) = flavor_of(topology, &entry.assignment, index) else {
            continue;
        };
        let previous = previous_pod_set(settings, workloads, entry, index);
        for domain in &one.domains {
            let tree = topology.tree(flavor);
            let pods = tree.map_or(0, |tree| pods_beyond_previous(tree, previous, domain));
            topology.charge(flavor, &domain.values, spec, pods * sign);
        }
    }
}
