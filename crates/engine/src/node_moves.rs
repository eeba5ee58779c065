//! Moves pods of a reserving Workload to other topology domains.

use crate::delayed_topology::reassign;
use crate::ids::WorkloadId;
use crate::topology;
use crate::topology::layer::TopologyLayer;
use crate::workloads::layer::WorkloadLayer;

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
