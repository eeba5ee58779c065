//! Free capacity of a cluster after placing pods that do not run yet. Source: docs/reference/dispatch.md §2.

use std::sync::Arc;

use crate::{AssignedWorkload, CapacityReport, NodeClassCapacity, node_packing::PackedNodes};

/// Packs `works` onto the reported nodes in order, as far as they fit, and returns the nodes.
pub fn free_capacity<'a>(
    report: &CapacityReport,
    works: impl IntoIterator<Item = &'a AssignedWorkload>,
) -> Vec<NodeClassCapacity> {
    let mut nodes = PackedNodes::new(Arc::new(report.clone()));
    for work in works {
        nodes.place(work);
    }
    nodes.classes()
}

#[cfg(test)]
mod tests {
    use engine::{Amount, ids::ResourceId};

    use super::*;
    use crate::{RequestedPodSet, WorkloadRequest};

    #[test]
    fn pending_pods_take_as_few_nodes_as_possible() {
        let cpu = ResourceId(1);
        let class = NodeClassCapacity {
            count: 3,
            free: vec![(cpu, Amount(4))],
            ..NodeClassCapacity::default()
        };
        let report = CapacityReport { classes: vec![class], ..CapacityReport::default() };
        let requests = vec![(cpu, Amount(1))];
        let pods = RequestedPodSet {
            name: "main".into(),
            count: 5,
            requests,
            ..RequestedPodSet::default()
        };
        let request =
            Arc::new(WorkloadRequest { pod_sets: vec![pods], ..WorkloadRequest::default() });
        let left = free_capacity(
            &report,
            [&AssignedWorkload { request, assigned: vec![], ..AssignedWorkload::default() }],
        );
        let mut left: Vec<(i64, i64)> =
            left.iter().map(|class| (class.free[0].1.0, class.count)).collect();
        left.sort_unstable();
        assert_eq!(left, [(0, 1), (3, 1), (4, 1)]);
    }
}
