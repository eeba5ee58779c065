//! Users of some leaves of a tree.
//!
//! These are Workloads assigned there, also through another flavor whose tree contains the same nodes, and pods
//! that TAS does not manage. Cost: one pass over all Workloads with quota, and one over all nodes.

use std::cmp::Reverse;

use crate::amount::Amount;
use crate::ids::{DomainId, FlavorId, PODS, ResourceId, WorkloadId};
use crate::spec::PodSetAdmission;
use crate::topology::assignment_search::AssignmentSearch;
use crate::topology::limiting_resource::request_of_one_pod;
use crate::topology::topologies::UsageLocation;
use crate::workloads::admission::AdmissionRecord;
use crate::workloads::equivalence_class::EquivalenceClass;
use crate::workloads::layer::WorkloadLayer;

/// Number of users listed in a shortfall.
pub(super) const MAX_LISTED_USERS: usize = 8;

/// A user of topology capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopologyUsage {
    /// The Workload; `None` for all pods that TAS does not manage.
    pub workload: Option<WorkloadId>,
    /// Pods in the leaves.
    pub pods: i64,
    /// Usage of the limiting resource in the leaves.
    pub amount: Amount,
}

/// Users of a resource in `leaves` (sorted), largest first, then by name.
pub(super) fn usage_in_leaves(
    search: &AssignmentSearch<'_>,
    workloads: &WorkloadLayer,
    leaves: &[DomainId],
    resource: ResourceId,
) -> Vec<TopologyUsage> {
    let names = search.tables.names;
    let assigned = workloads.iter().filter_map(|(id, workload)| {
        let class = workloads.class_at(workload.class);
        let admission = workload.admission.as_deref()?;
        let usage = usage_of_admission(search, leaves, resource, admission, class);
        Some(TopologyUsage { workload: Some(id), ..usage })
    });
    let mut all: Vec<TopologyUsage> =
        assigned.chain([non_tas_usage(search, leaves, resource)]).collect();
    all.retain(|one| one.amount > Amount::ZERO);
    all.sort_by_key(|usage| {
        let name = usage.workload.map(|id| names.workloads.name(id));
        (Reverse(usage.amount), name.is_none(), name)
    });
    all
}

fn usage_of_admission(
    search: &AssignmentSearch<'_>,
    leaves: &[DomainId],
    resource: ResourceId,
    admission: &AdmissionRecord,
    class: &EquivalenceClass,
) -> TopologyUsage {
    let mut usage = TopologyUsage { workload: None, pods: 0, amount: Amount::ZERO };
    for (assigned, spec) in admission.pod_sets.iter().zip(&class.pod_sets) {
        let pods = pods_in_leaves(search, leaves, assigned);
        usage.pods += pods;
        usage.amount += request_of_one_pod(spec, resource).times(pods);
    }
    usage
}

fn pods_in_leaves(
    search: &AssignmentSearch<'_>,
    leaves: &[DomainId],
    admission: &PodSetAdmission,
) -> i64 {
    let has_tree = |&flavor: &FlavorId| search.tables.topologies.tree(flavor).is_some();
    let Some(flavor) = admission.flavors().find(has_tree) else {
        return 0;
    };
    let assigned = admission.used_domains().iter().filter(|domain| {
        // A Workload may be assigned through another flavor with the same node in its tree.
        let leaf = match search.tables.topologies.usage_location(flavor, &domain.values) {
            Some(UsageLocation::Node(node)) => search.tree.node_leaf(node),
            Some(UsageLocation::Leaf(leaf)) => {
                Some(leaf).filter(|_| flavor == search.workers.flavor)
            }
            None => None,
        };
        leaf.is_some_and(|leaf| leaves.binary_search(&leaf).is_ok())
    });
    assigned.map(|domain| domain.count).sum()
}

fn non_tas_usage(
    search: &AssignmentSearch<'_>,
    leaves: &[DomainId],
    resource: ResourceId,
) -> TopologyUsage {
    let mut usage = TopologyUsage { workload: None, pods: 0, amount: Amount::ZERO };
    for (id, node) in search.tables.topologies.nodes() {
        let leaf = search.tree.leaf_of_node(id);
        if leaf.is_some_and(|leaf| leaves.binary_search(&leaf).is_ok()) {
            let of = |resource| {
                let all = node.foreign.iter().filter(move |one| one.0 == resource);
                all.map(|one| one.1).fold(Amount::ZERO, |sum, one| sum + one)
            };
            usage.pods += of(PODS).0;
            usage.amount += of(resource);
        }
    }
    usage
}
