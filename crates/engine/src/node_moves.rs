//! Moves pods of a reserving Workload to other topology domains, and rolls such a move back if its write fails.

use crate::delayed_topology::reassign;
use crate::ids::WorkloadId;
use crate::topology;
use crate::topology::layer::TopologyLayer;
use crate::topology::node_failures::NodeReplacement;
use crate::workloads::layer::WorkloadLayer;

/// Rolls back a replacement whose write failed: pods are where they were, and the failure is open again. Returns
/// whether there was a replacement.
pub(crate) fn roll_back(
    workloads: &mut WorkloadLayer,
    topology: &mut TopologyLayer,
    id: WorkloadId,
) -> bool {
    let Some(NodeReplacement { node, before }) = topology.node_failures_mut().take_replacement(id)
    else {
        return false;
    };
    let before = before.into_iter().map(|one| one.domains).enumerate().collect();
    move_pods(workloads, topology, id, before);
    // The node is still failed; the next cycle searches a replacement again.
    topology.node_failures_mut().set(id, [node].into_iter().collect());
    true
}

/// Replaces topology assignments and charges the difference.
pub(crate) fn move_pods(
    workloads: &mut WorkloadLayer,
    topology: &mut TopologyLayer,
    id: WorkloadId,
    moved: topology::ReplacementAssignments,
) {
    reassign(workloads, topology, id, |pod_sets| {
        for (pod_set, domains) in moved {
            if let Some(one) = pod_sets.get_mut(pod_set) {
                one.domains = domains;
            }
        }
    });
}
