//! Free capacity of a cluster after placing pods that do not run yet. Source: docs/reference/dispatch.md §2.

use std::sync::Arc;

use crate::{AssignedWorkload, CapacityReport, NodeClassCapacity, node_packing::PackedNodes};

/// What is free of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemainingNodes {
    /// The present nodes.
    pub classes: Vec<NodeClassCapacity>,
    /// The new nodes that nothing is placed on, one class for each of the report.
    pub elastic: Vec<NodeClassCapacity>,
}

/// Packs `works` onto the reported nodes in order, as far as they fit, and returns what is left. New nodes come after present ones.
pub fn free_capacity<'a>(
    report: &CapacityReport,
    works: impl IntoIterator<Item = &'a AssignedWorkload>,
) -> RemainingNodes {
    let mut nodes = PackedNodes::new(Arc::new(report.clone()));
    for work in works {
        nodes.place(work);
    }
    RemainingNodes { classes: nodes.classes(), elastic: nodes.unused_new_nodes() }
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
        let elastic = vec![NodeClassCapacity { count: 4, ..class.clone() }];
        let report = CapacityReport { classes: vec![class], elastic, ..CapacityReport::default() };
        let requests = vec![(cpu, Amount(1))];
        let pods = RequestedPodSet {
            name: "main".into(),
            count: 5,
            requests,
            ..RequestedPodSet::default()
        };
        let request =
            Arc::new(WorkloadRequest { pod_sets: vec![pods], ..WorkloadRequest::default() });
        let work = AssignedWorkload::new(request, vec![]);
        let left = free_capacity(&report, [&work, &work, &work]);
        assert_eq!(
            (left.classes.len(), left.elastic[0].count),
            (1, 3),
            "three pods need a new node"
        );
        let RemainingNodes { classes: left, elastic } = free_capacity(&report, [&work]);
        assert_eq!(elastic[0].count, 4);
        let mut left: Vec<(i64, i64)> =
            left.iter().map(|class| (class.free[0].1.0, class.count)).collect();
        left.sort_unstable();
        assert_eq!(left, [(0, 1), (3, 1), (4, 1)]);
    }
}
