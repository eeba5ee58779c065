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
use crate::workloads::equivalence_class::{EquivalenceClass, members};
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
    class: &'a EquivalenceClass,
    failed: &'a str,
}

impl PlacedPodSets<'_> {
    /// `None` if the pod set has no pods on the failed node, or no leaves that are nodes.
    fn affected(&self, pod_set: usize) -> Result<Option<AffectedPodSet>, PlacementFailure> {
        let held = &self.admission[pod_set];
        let on_node = held.used_domains().iter().filter(|domain| is_on(domain, self.failed));
        let missing: i64 = on_node.map(|domain| domain.count).sum();
        let Some((flavor, tree)) = node_tree(self.topology, held).filter(|_| missing > 0) else {
            return Ok(None);
        };
        let remaining = remaining(tree, held, self.failed)?;
        let leaf = match remaining.first_key_value() {
            Some((&leaf, _)) => Some(leaf),
            None => self.leaf_of_group(pod_set, tree)?,
        };
        // Only the moved pods are searched for, so the request is narrowed to what still binds them.
        let spec = self.spec_for_moved_pods(pod_set, leaf);
        let (within, spec) = topology_request(tree, spec, &remaining, missing, leaf);
        Ok(Some(AffectedPodSet { pod_set, flavor, spec, missing, remaining, within }))
    }

    /// A leaf that the group of a pod set keeps, if its level is required. It is an error if the domains that the group keeps
    /// no longer exist.
    fn leaf_of_group(
        &self,
        pod_set: usize,
        tree: &DomainTree,
    ) -> Result<Option<DomainId>, PlacementFailure> {
        if !self.is_in_required_group(pod_set) {
            return Ok(None);
        }
        let members = members(self.class, pod_set).into_iter();
        let members = members.filter_map(|member| self.admission.get(member));
        let used = members.flat_map(PodSetAdmission::used_domains);
        let mut kept = used.filter(|domain| !is_on(domain, self.failed)).peekable();
        let Some(&first) = kept.peek() else {
            return Ok(None);
        };
        // All of them are in one required domain, so any leaf identifies it.
        let leaf = kept.find_map(|domain| tree.leaf(&domain.values));
        leaf.map(Some).ok_or_else(|| stale(first))
    }

    fn is_in_required_group(&self, pod_set: usize) -> bool {
        let spec = &self.class.pod_sets[pod_set];
        let mode = spec.topology.as_ref().and_then(|request| request.mode.as_ref());
        spec.group().is_some() && matches!(mode, Some(TopologyMode::Required(_)))
    }

    /// The spec to search with for the moved pods of one pod set. `leaf` is one that the pod set or its group keeps.
    fn spec_for_moved_pods(&self, pod_set: usize, leaf: Option<DomainId>) -> PodSetSpec {
        let mut spec = self.class.pod_sets[pod_set].clone();
        // A whole group that moves is kept in its required domain by one search. Otherwise leader and workers are searched for
        // separately, since each may lose pods alone.
        let moves_together = leaf.is_none() && self.is_in_required_group(pod_set);
        if let Some(request) = &mut spec.topology {
            request.group.take_if(|_| !moves_together);
            // Slices without a size get size 1: a leader has none, and the pods of others are placed already.
            request.slices.iter_mut().for_each(|(_, size)| *size = (*size).max(1));
        }
        spec
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
    let workload = workloads.at(workload);
    let class = workloads.class_at(workload.class);
    let admission = workload.admission.as_ref().map(|one| one.pod_sets.as_slice());
    let admission = admission.unwrap_or_default();
    let pod_sets = PlacedPodSets { topology, admission, class, failed: names.nodes.name(node) };
    let all = 0..admission.len().min(class.pod_sets.len());
    let affected = all.filter_map(|pod_set| {
        pod_sets.affected(pod_set).map_err(|reason| (pod_set, reason)).transpose()
    });
    affected.collect()
}

/// Remaining leaves and their pods. It is an error if one of them no longer exists.
fn remaining(
    tree: &DomainTree,
    held: &PodSetAdmission,
    node: &str,
) -> Result<BTreeMap<DomainId, i64>, PlacementFailure> {
    let mut remaining = BTreeMap::new();
    for domain in held.domains.iter().filter(|domain| !is_on(domain, node)) {
        let leaf = tree.leaf(&domain.values).ok_or_else(|| stale(domain))?;
        *remaining.entry(leaf).or_insert(0) += domain.count;
    }
    Ok(remaining)
}

/// An assignment with a vanished domain cannot be patched (§4.11).
fn stale(domain: &DomainAssignment) -> PlacementFailure {
    PlacementFailure::StaleDomain { domain: domain.values.last().cloned().unwrap_or_default() }
}

/// The domain that the moved pods must go to, and the spec to search with. `leaf` is one that their pod set or its group keeps.
fn topology_request(
    tree: &DomainTree,
    mut spec: PodSetSpec,
    remaining: &BTreeMap<DomainId, i64>,
    missing: i64,
    leaf: Option<DomainId>,
) -> (Option<DomainId>, PodSetSpec) {
    let Some(topology_request) = spec.topology.as_mut() else {
        return (None, spec);
    };
    let Some((layer, domain)) =
        incomplete_slice_domain(tree, &topology_request.slices, remaining, missing)
    else {
        // Without an incomplete slice the moved pods are whole slices, possibly with the smaller last one, and only a required
        // level constrains them. All remaining pods are in its domain, so any of their leaves identifies it.
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
