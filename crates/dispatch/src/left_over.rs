//! What a cluster has left when pods that are still to come have taken theirs. Source: docs/reference/dispatch.md §2.

use std::sync::Arc;

use crate::{NodeClass, Report, Work, pack::Nodes};

/// The nodes of a report after `works`, in their order, have been packed onto them as far as they fit.
pub fn left_over<'a>(report: &Report, works: impl IntoIterator<Item = &'a Work>) -> Vec<NodeClass> {
    let mut nodes = Nodes::new(Arc::new(report.clone()));
    for work in works {
        nodes.take(work);
    }
    nodes.classes()
}

#[cfg(test)]
mod tests {
    use engine::{Amount, ids::ResourceId};

    use super::*;
    use crate::{Pods, Request};

    #[test]
    fn pods_to_come_take_from_as_few_nodes_as_they_can() {
        let cpu = ResourceId(1);
        let class = NodeClass { count: 3, free: vec![(cpu, Amount(4))], ..NodeClass::default() };
        let report = Report { classes: vec![class], ..Report::default() };
        let requests = vec![(cpu, Amount(1))];
        let pods = Pods { name: "main".into(), count: 5, requests, ..Pods::default() };
        let request = Arc::new(Request { pod_sets: vec![pods], ..Request::default() });
        let left = left_over(&report, [&Work { request, given: vec![] }]);
        let mut left: Vec<(i64, i64)> =
            left.iter().map(|class| (class.free[0].1.0, class.count)).collect();
        left.sort_unstable();
        assert_eq!(left, [(0, 1), (3, 1), (4, 1)]);
    }
}
