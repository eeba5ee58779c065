//! Conversion of a `ClusterCapacity` to the report that dispatch reads. Source: docs/reference/dispatch.md §2.
//!
//! Every list is sorted, so equal clusters give equal reports. Free amounts are rounded down.

use std::collections::BTreeMap;

use crds::quantity::Quantity;
use crds::v1alpha1::{self, ClusterCapacity, FlavorCapacity, JobKind};
use dispatch::{
    CapacityReport, JobGvk, NodeClassCapacity, PROTOCOL, WorkerMode, unserved_protocol,
};
use engine::{Amount, Names, ids::ResourceId};

use crate::amount::allocatable_amount;
use crate::selectors;

/// Converts the report of a worker.
#[must_use]
pub fn capacity_report(names: &mut Names, capacity: &ClusterCapacity) -> CapacityReport {
    let status = &capacity.status;
    let mut label_keys: Vec<Box<str>> =
        capacity.spec.all_label_keys().iter().map(|key| key.as_str().into()).collect();
    // Equal reports must compare equal, whatever the order of their lists.
    label_keys.sort_unstable();
    let mut kinds: Vec<JobGvk> = status.kinds.iter().map(job_gvk).collect();
    kinds.sort_unstable();
    kinds.dedup();
    CapacityReport {
        unserved_protocol: unserved_protocol(PROTOCOL, status.protocol),
        mode: if status.mode == "Quota" { WorkerMode::Quota } else { WorkerMode::Thin },
        unknown_mode: Some(status.mode.as_str())
            .filter(|mode| !["", "Thin", "Quota"].contains(mode))
            .map(Box::from),
        as_of: status.as_of.parse().unwrap_or_default(),
        label_keys,
        kinds,
        classes: status.node_classes.iter().map(|class| node_class(names, class)).collect(),
        elastic: status.elastic.iter().map(|one| new_nodes(names, one)).collect(),
        queues: queues(names, &status.flavors),
    }
}

/// A kind of a report as requests name it.
#[must_use]
pub fn job_gvk(kind: &JobKind) -> JobGvk {
    JobGvk {
        group: kind.group.as_str().into(),
        version: kind.version.as_str().into(),
        kind: kind.kind.as_str().into(),
    }
}

fn node_class(names: &mut Names, class: &v1alpha1::NodeClass) -> NodeClassCapacity {
    NodeClassCapacity {
        count: i64::from(class.count),
        labels: selectors::pairs(&class.labels),
        taints: selectors::taints(&class.taints),
        free: amounts(names, &class.free),
        size: amounts(names, &class.size),
    }
}

fn new_nodes(names: &mut Names, one: &v1alpha1::ElasticCapacity) -> NodeClassCapacity {
    let shape = &one.node_shape;
    let free = amounts(names, &shape.allocatable);
    NodeClassCapacity {
        count: i64::from(one.max_more),
        labels: selectors::pairs(&shape.labels),
        taints: selectors::taints(&shape.taints),
        size: free.clone(),
        free,
    }
}

/// What each ClusterQueue can still use, over all of its flavors.
fn queues(names: &mut Names, flavors: &[FlavorCapacity]) -> Vec<Vec<(ResourceId, Amount)>> {
    let mut queues = BTreeMap::<&str, BTreeMap<ResourceId, Amount>>::new();
    for one in flavors {
        let amount = |quantity| allocatable_amount(&one.resource, quantity);
        let own = (amount(&one.nominal) - amount(&one.used)).max(Amount::ZERO);
        let resource = names.resources.intern(&one.resource);
        let of_queue = queues.entry(&one.cluster_queue).or_default();
        *of_queue.entry(resource).or_default() += own + amount(&one.borrowable);
    }
    queues.into_values().map(|queue| queue.into_iter().collect()).collect()
}

fn amounts(names: &mut Names, all: &BTreeMap<String, Quantity>) -> Vec<(ResourceId, Amount)> {
    let amount = |(name, quantity): (&String, _)| {
        (names.resources.intern(name), allocatable_amount(name, quantity))
    };
    let mut amounts: Vec<_> = all.iter().map(amount).collect();
    amounts.sort_unstable_by_key(|(resource, _)| *resource);
    amounts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_is_sorted_and_never_overstates() {
        let capacity: ClusterCapacity = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "ClusterCapacity",
            "spec": {"labelKeys": ["zone", "gpu"]},
            "status": {
                "protocol": 1, "mode": "Quota", "asOf": "42",
                "kinds": [{"version": "v1", "kind": "Pod"}, {"group": "batch", "version": "v1", "kind": "Job"}],
                "nodeClasses": [{"count": 3, "labels": {"zone": "a"},
                    "taints": [{"key": "k", "effect": "NoExecute"}],
                    "free": {"memory": "1500m", "cpu": "1999u"}, "size": {"cpu": "4"}}],
                "flavors": [
                    {"clusterQueue": "b", "flavor": "x", "resource": "cpu", "nominal": "4", "used": "6", "borrowable": "1"},
                    {"clusterQueue": "b", "flavor": "y", "resource": "cpu", "nominal": "2", "used": "1"},
                    {"clusterQueue": "a", "flavor": "x", "resource": "memory", "nominal": "8", "used": "3"},
                ],
                "elastic": [{"maxMore": 2, "nodeShape": {"labels": {"zone": "b"}, "allocatable": {"cpu": "8"}}}],
            },
        }))
        .expect("a ClusterCapacity");
        let mut names = Names::default();
        let (memory, cpu) = (names.resources.intern("memory"), names.resources.intern("cpu"));
        let report = capacity_report(&mut names, &capacity);
        assert_eq!((report.mode, report.as_of), (WorkerMode::Quota, 42));
        assert_eq!(report.label_keys, ["gpu".into(), "zone".into()]);
        assert_eq!(report.kinds.iter().map(|kind| &*kind.kind).collect::<Vec<_>>(), ["Pod", "Job"]);
        let class = report.classes.first().expect("a class");
        assert_eq!(class.free, [(memory, Amount(1)), (cpu, Amount(1))]);
        assert_eq!(class.size, [(cpu, Amount(4000))]);
        assert_eq!(report.queues, [vec![(memory, Amount(5))], vec![(cpu, Amount(2000))]]);
        let new = report.elastic.first().expect("new nodes");
        assert_eq!((new.count, &*new.labels), (2, &[("zone".into(), "b".into())][..]));
        assert_eq!(
            (&new.free, &new.size),
            (&vec![(cpu, Amount(8000))], &vec![(cpu, Amount(8000))])
        );
    }
}
