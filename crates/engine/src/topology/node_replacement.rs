//! Replaces a failed node in topology assignments; all other pods keep their leaves.
//!
//! The failed node is removed from the assignment, and every remaining leaf must still exist. The moved pods go to
//! the slice that is incomplete now, or else into the required domain of the remaining pods of their pod set, or of
//! its pod set group; if no pods remain or neither constraint applies, anywhere, a group in one domain. The last slice
//! is complete with fewer pods if it had fewer.
//! Source: docs/reference/kueue.md §4.11 (Kueue: `findReplacementAssignment`). Cost: one search per affected pod
//! set.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::{DomainId, FlavorId, TopologyNodeId, WorkloadId};
use crate::names::Names;
use crate::spec::{PodSetAdmission, PodSetSpec};
use crate::state::State;
use crate::topology::assignment_search::TasPodSetRequest;
use crate::topology::domain_tree::DomainTree;
use crate::topology::flavor_assigner::search;
use crate::topology::layer::TopologyLayer;
use crate::topology::{DomainAssignment, PlacementFailure, TopologyMode, TopologyRequest};
use crate::workloads::layer::WorkloadLayer;

/// New topology assignments, complete, of the pod sets that used the failed node.
pub(crate) type ReplacementAssignments = Vec<(usize, Vec<DomainAssignment>)>;

/// A pod set with pods on the failed node.
struct AffectedPodSet {
    pod_set: usize,
    flavor: FlavorId,
    /// Spec for the moved pods.
    spec: PodSetSpec,
    missing: i64,
    /// Remaining leaves and their pods.
    remaining: BTreeMap<DomainId, i64>,
    within: Option<DomainId>,
}

/// The pod sets of an admitted Workload, and the node that failed under it.
struct PlacedPodSets<'a> {
    topology: &'a TopologyLayer,
    admission: &'a [PodSetAdmission],
    specs: &'a [PodSetSpec],
    failed: &'a str,
}

impl<'a> PlacedPodSets<'a> {
    fn all(&self) -> impl Iterator<Item = (usize, (&'a PodSetAdmission, &'a PodSetSpec))> {
        self.admission.iter().zip(self.specs).enumerate()
    }

    /// The domain that a pod set without remaining pods must go to, and the spec to search with.
    fn request_without_remaining(
        &self,
        pod_set: usize,
        flavor: FlavorId,
        tree: &DomainTree,
    ) -> (Option<DomainId>, PodSetSpec) {
        let spec = &self.specs[pod_set];
        let required = spec
            .topology
            .as_ref()
            .filter(|request| matches!(request.mode, Some(TopologyMode::Required(_))));
        let Some((request, group)) = required.and_then(|one| Some((one, one.group.as_deref()?)))
        else {
            return (None, ungrouped(spec));
        };
        match self.leaf_of_group(group, flavor, tree) {
            // The pods that the group keeps are in the required domain, so any of their leaves identifies it.
            Some(leaf) => (required_domain(tree, request, leaf), ungrouped(spec)),
            // The whole group moves, and one search keeps it in one domain.
            None => (None, with_slice_sizes(spec.clone())),
        }
    }

    /// A leaf that a pod set of a group keeps.
    fn leaf_of_group(&self, group: &str, flavor: FlavorId, tree: &DomainTree) -> Option<DomainId> {
        let is_member = |held: &PodSetAdmission, spec: &PodSetSpec| {
            let name = spec.topology.as_ref().and_then(|request| request.group.as_deref());
            name == Some(group)
                && node_tree(self.topology, held).is_some_and(|(other, _)| other == flavor)
        };
        let members = self.all().map(|(_, one)| one).filter(|(held, spec)| is_member(held, spec));
        let mut kept = members
            .flat_map(|(held, _)| held.used_domains())
            .filter(|domain| !is_on(domain, self.failed));
        kept.find_map(|domain| tree.leaf(&domain.values))
    }
}

/// Whether a topology assignment contains a node.
pub(crate) fn is_assigned_to(
    names: &Names,
    topology: &TopologyLayer,
    pod_sets: &[PodSetAdmission],
    node: TopologyNodeId,
) -> bool {
    let name = names.nodes.name(node);
    let mut assigned = pod_sets.iter().filter(|held| node_tree(topology, held).is_some());
    assigned.any(|held| held.used_domains().iter().any(|domain| is_on(domain, name)))
}

/// The flavor and tree of a pod set whose leaves are single nodes.
fn node_tree<'a>(
    topology: &'a TopologyLayer,
    held: &PodSetAdmission,
) -> Option<(FlavorId, &'a DomainTree)> {
    let with_tree = |flavor| Some((flavor, topology.tree(flavor)?));
    let (flavor, tree) = held.flavors().find_map(with_tree)?;
    tree.leaves_are_nodes().then_some((flavor, tree))
}

fn is_on(domain: &DomainAssignment, node: &str) -> bool {
    domain.values.last().is_some_and(|last| **last == *node)
}

/// Finds new leaves for the pods on a failed node. Charges nothing.
///
/// # Errors
/// The index of the pod set that cannot be moved, and the reason.
pub(crate) fn find_replacement_assignment(
    state: &mut State,
    workload: WorkloadId,
    node: TopologyNodeId,
) -> Result<ReplacementAssignments, (usize, PlacementFailure)> {
    let affected = affected(&state.names, &state.workloads, &state.topology, workload, node)?;
    let wanted = affected.iter().map(|affected_pod_set| TasPodSetRequest {
        pod_set: affected_pod_set.pod_set,
        spec: &affected_pod_set.spec,
        pods: affected_pod_set.missing,
        flavor: affected_pod_set.flavor,
        within: affected_pod_set.within,
        retained: &[],
    });
    let all: Vec<TasPodSetRequest<'_>> = wanted.collect();
    search(state, &all, false)?;
    Ok(affected
        .iter()
        .map(|affected_pod_set| {
            (affected_pod_set.pod_set, merge_assignments(&state.topology, affected_pod_set))
        })
        .collect())
}

fn affected(
    names: &Names,
    workloads: &WorkloadLayer,
    topology: &TopologyLayer,
    workload: WorkloadId,
    node: TopologyNodeId,
) -> Result<Vec<AffectedPodSet>, (usize, PlacementFailure)> {
    let name = names.nodes.name(node);
    let workload = workloads.at(workload);
    let class = workloads.class_at(workload.class);
    let admission = workload.admission.as_ref().map(|one| one.pod_sets.as_slice());
    let pod_sets = PlacedPodSets {
        topology,
        admission: admission.unwrap_or_default(),
        specs: &class.pod_sets,
        failed: name,
    };
    let mut affected = Vec::new();
    for (pod_set, (held, spec)) in pod_sets.all() {
        let on_node = held.used_domains().iter().filter(|domain| is_on(domain, name));
        let missing: i64 = on_node.map(|domain| domain.count).sum();
        let Some((flavor, tree)) = node_tree(topology, held) else {
            continue;
        };
        if missing > 0 {
            let remaining = remaining(tree, held, name).map_err(|reason| (pod_set, reason))?;
            // Only the moved pods are searched for, so the request is narrowed to what still binds
            // them.
            let (within, spec) = if remaining.is_empty() {
                pod_sets.request_without_remaining(pod_set, flavor, tree)
            } else {
                topology_request(tree, ungrouped(spec), &remaining, missing)
            };
            affected.push(AffectedPodSet { pod_set, flavor, spec, missing, remaining, within });
        }
    }
    Ok(affected)
}

/// Remaining leaves and their pods. It is an error if one of them no longer exists.
fn remaining(
    tree: &DomainTree,
    held: &PodSetAdmission,
    node: &str,
) -> Result<BTreeMap<DomainId, i64>, PlacementFailure> {
    let mut remaining = BTreeMap::new();
    for domain in held.domains.iter().filter(|domain| !is_on(domain, node)) {
        let name = domain.values.last();
        let stale = || PlacementFailure::StaleDomain { domain: name.cloned().unwrap_or_default() };
        // An assignment with a vanished domain cannot be patched (§4.11).
        let leaf = tree.leaf(&domain.values).ok_or_else(stale)?;
        *remaining.entry(leaf).or_insert(0) += domain.count;
    }
    Ok(remaining)
}

/// The spec to search with for the moved pods of one pod set.
fn ungrouped(spec: &PodSetSpec) -> PodSetSpec {
    // Leader and workers are searched for separately, since each may lose pods alone.
    let topology = spec
        .topology
        .clone()
        .map(|topology_request| TopologyRequest { group: None, ..topology_request });
    with_slice_sizes(PodSetSpec { topology, ..spec.clone() })
}

/// The pods are placed already, and each of them is searched for as a slice of its own; a leader has no size either.
fn with_slice_sizes(mut spec: PodSetSpec) -> PodSetSpec {
    for (_, size) in spec.topology.iter_mut().flat_map(|request| &mut request.slices) {
        *size = (*size).max(1);
    }
    spec
}

/// The domain that the moved pods must go to, and the spec to search with.
fn topology_request(
    tree: &DomainTree,
    mut spec: PodSetSpec,
    remaining: &BTreeMap<DomainId, i64>,
    missing: i64,
) -> (Option<DomainId>, PodSetSpec) {
    let Some(topology_request) = spec.topology.as_mut() else {
        return (None, spec);
    };
    // The moved pods make up whole slices, so only a required level constrains them. They may include the last slice,
    // which may be smaller.
    let Some((layer, domain)) =
        incomplete_slice_domain(tree, &topology_request.slices, remaining, missing)
    else {
        // All remaining pods are in the required domain, so any of their leaves identifies it.
        let leaf = remaining.first_key_value().map(|(&leaf, _)| leaf);
        return (leaf.and_then(|leaf| required_domain(tree, topology_request, leaf)), spec);
    };
    // Within an incomplete slice only the layers with complete slices still constrain the search.
    let complete = topology_request.slices.split_off(layer + 1).pop();
    topology_request.slices = complete.into_iter().collect();
    (Some(domain), spec)
}

/// The required domain of a leaf; `None` if the request requires no level.
fn required_domain(
    tree: &DomainTree,
    topology_request: &TopologyRequest,
    leaf: DomainId,
) -> Option<DomainId> {
    let TopologyMode::Required(label) = topology_request.mode.as_ref()? else {
        return None;
    };
    Some(tree.ancestor(leaf, tree.level_named(label)?))
}

/// The innermost layer of which a slice lost some of its pods, and the domain of that slice.
fn incomplete_slice_domain(
    tree: &DomainTree,
    layers: &[(Box<str>, i64)],
    remaining: &BTreeMap<DomainId, i64>,
    missing: i64,
) -> Option<(usize, DomainId)> {
    for (layer, (label, size)) in layers.iter().enumerate().rev() {
        if missing % size != 0 {
            let retained = retained_pods(tree, tree.level_named(label)?, remaining);
            if let Some(domain) = incomplete_domain(&retained, missing, *size) {
                return Some((layer, domain));
            }
        }
    }
    None
}

/// Remaining pods per domain of a level.
fn retained_pods(
    tree: &DomainTree,
    level: usize,
    remaining: &BTreeMap<DomainId, i64>,
) -> BTreeMap<DomainId, i64> {
    let mut retained = BTreeMap::new();
    for (&leaf, &pods) in remaining {
        *retained.entry(tree.ancestor(leaf, level)).or_insert(0) += pods;
    }
    retained
}

/// The first domain with a slice that the moved pods complete: a whole one, or else the smaller last one.
fn incomplete_domain(
    retained: &BTreeMap<DomainId, i64>,
    missing: i64,
    size: i64,
) -> Option<DomainId> {
    let last_slice = (retained.values().sum::<i64>() + missing) % size;
    let completed = |slice: i64| {
        let mut incomplete = retained.iter().filter(|&(_, pods)| pods % size != 0);
        incomplete.find(|&(_, pods)| (pods + missing) % size == slice)
    };
    completed(0).or_else(|| completed(last_slice)).map(|(&domain, _)| domain)
}

/// The remaining leaves together with those that the search found.
fn merge_assignments(
    topology: &TopologyLayer,
    affected_pod_set: &AffectedPodSet,
) -> Vec<DomainAssignment> {
    let mut all = affected_pod_set.remaining.clone();
    let assigned = topology.assigned().iter();
    for one in assigned.filter(|one| one.pod_set == affected_pod_set.pod_set) {
        *all.entry(one.leaf).or_insert(0) += one.pods;
    }
    let tree = topology.tree(affected_pod_set.flavor);
    let domain = |(leaf, count)| {
        tree.map(|tree| DomainAssignment { values: Arc::clone(tree.path(leaf)), count })
    };
    all.into_iter().filter_map(domain).collect()
}
