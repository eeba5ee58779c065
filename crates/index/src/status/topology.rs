//! Topology assignments of a Workload with quota, and the nodes that failed under it. Source: docs/reference/kueue.md §4.11.

use crds::v1beta2::{PodSetAssignment, TopologyAssignment, UnhealthyNode, WorkloadStatus};
use engine::topology::HOSTNAME_LABEL;

use super::admitted::READY;

/// The most nodes that a status names (docs/reference/kueue.md §1.2).
const MOST_UNHEALTHY_NODES: usize = 8;

/// The topology of a pod set from now on.
#[derive(Clone, Debug, PartialEq)]
pub enum PodSetTopology {
    /// What it is.
    Unchanged,
    /// Its pods are placed. A pod set without pods to place has no assignment.
    Settled(Option<TopologyAssignment>),
    /// Its pods start without a topology: it needs none any more.
    NotNeeded,
}

/// Replaces topology assignments, by pod set: those of a second pass, or those after the replacement of a node. Failed nodes
/// without pods are failures no longer. The caller sets Admitted.
#[must_use]
pub fn with_topologies(
    mut status: WorkloadStatus,
    topologies: &[PodSetTopology],
) -> WorkloadStatus {
    let held = status.admission.iter_mut().flat_map(|one| &mut one.pod_set_assignments);
    for (held, topology) in held.zip(topologies) {
        match topology {
            PodSetTopology::Unchanged => {}
            PodSetTopology::Settled(assigned) => settle(held, assigned.as_ref()),
            // A request that is ready gates pods as well, and no assignment would ungate them.
            PodSetTopology::NotNeeded => held.delayed_topology_request = None,
        }
    }
    let nodes = assigned_nodes(&status);
    status.unhealthy_nodes.retain(|failed| nodes.contains(&failed.name));
    status
}

fn settle(held: &mut PodSetAssignment, assigned: Option<&TopologyAssignment>) {
    if assigned.is_some() {
        held.topology_assignment = assigned.cloned();
    }
    if let Some(request) = &mut held.delayed_topology_request {
        READY.clone_into(request);
    }
}

/// Records the nodes that failed.
#[must_use]
pub fn with_unhealthy_nodes(mut status: WorkloadStatus, failed: &[String]) -> WorkloadStatus {
    let names = failed.iter().take(MOST_UNHEALTHY_NODES);
    status.unhealthy_nodes = names.map(|name| UnhealthyNode { name: name.clone() }).collect();
    status
}

/// Names of the nodes that pods are assigned to, in order; none where domains are larger than nodes.
#[must_use]
pub fn assigned_nodes(status: &WorkloadStatus) -> Vec<String> {
    let held = status.admission.iter().flat_map(|one| &one.pod_set_assignments);
    let mut nodes: Vec<String> = held.flat_map(nodes_of_pod_set).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Names of the nodes that the pods of a pod set are assigned to.
pub fn nodes_of_pod_set(assignment: &PodSetAssignment) -> impl Iterator<Item = String> {
    let on_nodes =
        |one: &&TopologyAssignment| one.levels.last().is_some_and(|level| level == HOSTNAME_LABEL);
    let assigned = assignment.topology_assignment.iter().filter(on_nodes);
    assigned.flat_map(TopologyAssignment::domains).filter_map(|(mut values, _)| values.pop())
}
