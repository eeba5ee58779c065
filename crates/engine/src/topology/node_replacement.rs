//! New places for pods whose machine failed; the others of their pod set stay where they are.
//!
//! The failed machine is taken out of the places, and those that are left must still exist. Who has to move stands with
//! the slice that is incomplete now, or in the required domain of those who stay; anywhere if nobody stays or neither is
//! asked for. Source: docs/reference/kueue.md §4.11. Cost: one search per pod set that stood there.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::{DomainId, FlavorId, TopologyNodeId, WorkloadId};
use crate::spec::{PodSetAdmission, PodSetSpec};
use crate::state::State;
use crate::topology::assignment_search::TasPodSetRequest;
use crate::topology::domain_tree::DomainTree;
use crate::topology::flavor_assigner::search;
use crate::topology::{DomainAssignment, PlacementFailure, TopologyMode, TopologyRequest};

/// New places by pod set, all of them, for those that stood on the machine.
pub(crate) type ReplacementAssignments = Vec<(usize, Vec<DomainAssignment>)>;

/// A pod set that stood on the machine.
struct AffectedPodSet {
    pod_set: usize,
    flavor: FlavorId,
    /// What is asked for those who move.
    spec: PodSetSpec,
    missing: i64,
    /// Leaves of those who stay, and how many of them.
    rest: BTreeMap<DomainId, i64>,
    within: Option<DomainId>,
}

/// Whether any pods of a Workload stand on a machine.
pub(crate) fn is_assigned_to(
    state: &State,
    pod_sets: &[PodSetAdmission],
    node: TopologyNodeId,
) -> bool {
    let name = state.names.nodes.name(node);
    let mut placed = pod_sets.iter().filter(|held| node_tree(state, held).is_some());
    placed.any(|held| held.domains.iter().any(|place| is_on(place, name)))
}

/// The flavor that a pod set has its machines from, if its places are machines.
fn node_tree<'a>(state: &'a State, held: &PodSetAdmission) -> Option<(FlavorId, &'a DomainTree)> {
    let tree = |&(_, flavor, _): &(_, FlavorId, _)| Some((flavor, state.topologies.tree(flavor)?));
    let (flavor, tree) = held.resources.iter().find_map(tree)?;
    tree.leaves_are_nodes().then_some((flavor, tree))
}

fn is_on(place: &DomainAssignment, node: &str) -> bool {
    place.values.last().is_some_and(|last| **last == *node)
}

/// Finds new places for those who stood on a machine. Nothing is charged.
pub(crate) fn find_replacement_assignment(
    state: &mut State,
    workload: WorkloadId,
    node: TopologyNodeId,
) -> Result<ReplacementAssignments, (usize, PlacementFailure)> {
    let losses = losses(state, workload, node)?;
    let wanted = losses.iter().map(|loss| TasPodSetRequest {
        pod_set: loss.pod_set,
        spec: &loss.spec,
        pods: loss.missing,
        flavor: loss.flavor,
        within: loss.within,
        retained: &[],
    });
    let all: Vec<TasPodSetRequest<'_>> = wanted.collect();
    search(state, &all, false)?;
    Ok(losses.iter().map(|loss| (loss.pod_set, places(state, loss))).collect())
}

fn losses(
    state: &State,
    workload: WorkloadId,
    node: TopologyNodeId,
) -> Result<Vec<AffectedPodSet>, (usize, PlacementFailure)> {
    let name = state.names.nodes.name(node);
    let workload = state.workloads.at(workload);
    let class = state.classes.at(workload.class);
    let held = workload.admission.iter().flat_map(|one| &one.pod_sets);
    let mut losses = Vec::new();
    for (pod_set, (held, spec)) in held.zip(&class.pod_sets).enumerate() {
        let gone = held.domains.iter().filter(|place| is_on(place, name));
        let missing: i64 = gone.map(|place| place.count).sum();
        let Some((flavor, tree)) = node_tree(state, held) else {
            continue;
        };
        if missing > 0 {
            let rest = rest(tree, held, name).map_err(|reason| (pod_set, reason))?;
            let (within, spec) = topology_request(tree, spec, &rest, missing);
            losses.push(AffectedPodSet { pod_set, flavor, spec, missing, rest, within });
        }
    }
    Ok(losses)
}

/// Leaves of those who stay.
fn rest(
    tree: &DomainTree,
    held: &PodSetAdmission,
    node: &str,
) -> Result<BTreeMap<DomainId, i64>, PlacementFailure> {
    let mut rest = BTreeMap::new();
    for place in held.domains.iter().filter(|place| !is_on(place, node)) {
        let named = place.values.last();
        let stale = || PlacementFailure::StaleDomain { domain: named.cloned().unwrap_or_default() };
        let leaf = tree.leaf(&place.values).ok_or_else(stale)?;
        *rest.entry(leaf).or_insert(0) += place.count;
    }
    Ok(rest)
}

/// Where those who move must stand, and what is asked for them.
fn topology_request(
    tree: &DomainTree,
    spec: &PodSetSpec,
    rest: &BTreeMap<DomainId, i64>,
    missing: i64,
) -> (Option<DomainId>, PodSetSpec) {
    // A leader and its workers are looked for one by one.
    let topology = spec
        .topology
        .clone()
        .map(|topology_request| TopologyRequest { group: None, ..topology_request });
    let mut spec = PodSetSpec { topology, ..spec.clone() };
    let Some(topology_request) = spec.topology.as_mut().filter(|_| !rest.is_empty()) else {
        return (None, spec);
    };
    let breaks = |size: i64| missing % size.max(1) != 0;
    if topology_request.slices.first().is_none_or(|&(_, size)| !breaks(size)) {
        return (required_domain(tree, topology_request, rest), spec);
    }
    let innermost = topology_request.slices.iter().rfind(|&&(_, size)| breaks(size));
    let within = innermost
        .and_then(|(label, size)| incomplete(tree, tree.level_named(label)?, rest, missing, *size));
    if within.is_some() {
        // Within its slice only the layers that are still whole hold together.
        let whole = topology_request.slices.iter().rfind(|&&(_, size)| !breaks(size)).cloned();
        topology_request.slices = whole.into_iter().collect();
    }
    (within, spec)
}

fn required_domain(
    tree: &DomainTree,
    topology_request: &TopologyRequest,
    rest: &BTreeMap<DomainId, i64>,
) -> Option<DomainId> {
    let Some(TopologyMode::Required(label)) = &topology_request.mode else {
        return None;
    };
    let (&leaf, _) = rest.first_key_value()?;
    Some(tree.ancestor(leaf, tree.level_named(label)?))
}

/// The first domain that those who move would complete.
fn incomplete(
    tree: &DomainTree,
    level: usize,
    rest: &BTreeMap<DomainId, i64>,
    missing: i64,
    size: i64,
) -> Option<DomainId> {
    let mut retained: BTreeMap<DomainId, i64> = BTreeMap::new();
    for (&leaf, &pods) in rest {
        *retained.entry(tree.ancestor(leaf, level)).or_insert(0) += pods;
    }
    let completes = |&(_, pods): &(DomainId, i64)| (pods + missing) % size == 0;
    retained.into_iter().find(completes).map(|(domain, _)| domain)
}

/// Those who stay together with what the search found for the others.
fn places(state: &State, loss: &AffectedPodSet) -> Vec<DomainAssignment> {
    let mut all = loss.rest.clone();
    let placed = state.topologies.scratch.placed.iter();
    for one in placed.filter(|one| one.pod_set == loss.pod_set) {
        *all.entry(one.leaf).or_insert(0) += one.pods;
    }
    let tree = state.topologies.tree(loss.flavor);
    let place = |(leaf, count)| {
        tree.map(|tree| DomainAssignment { values: Arc::clone(tree.path(leaf)), count })
    };
    all.into_iter().filter_map(place).collect()
}
