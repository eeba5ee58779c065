//! Conversion of a `ClusterCapacity` to the report that dispatch reads. Source: docs/reference/dispatch.md §2.
//!
//! Every list is sorted, so equal clusters give equal reports. Free amounts are rounded down. The API server of a worker checks the
//! schema of its report, and is the worker's own: the limits of the schema are checked again, and so is the number of resource names,
//! which are never forgotten.

use std::collections::{BTreeMap, BTreeSet};

use crds::quantity::Quantity;
use crds::v1alpha1::{self, ClusterCapacity, FlavorCapacity, JobKind};
use dispatch::{
    CapacityReport, JobGvk, NodeClassCapacity, PROTOCOL, WorkerMode, unserved_protocol,
};
use engine::{Amount, Names, ids::ResourceId};

use crate::amount::allocatable_amount;
use crate::selectors;

/// Entries of the lists of a report, by the schema of a ClusterCapacity.
const MAX_ENTRIES: usize = 64;

/// Quotas of a report, by the schema of a ClusterCapacity.
const MAX_FLAVORS: usize = 1024;

/// Label keys of a report: those of sixteen managers.
const MAX_LABEL_KEYS: usize = 17 * MAX_ENTRIES;

/// Different resources of a report.
const MAX_RESOURCES: usize = 256;

/// Names of resources, of this cluster and of all workers, above which a report may add no more.
const MAX_RESOURCE_NAMES: usize = 4096;

/// A report lists more than a manager reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it has {found} {what}, {most} at most")]
pub struct OversizedReport {
    what: &'static str,
    found: usize,
    most: usize,
}

/// Converts the report of a worker.
///
/// # Errors
/// If it lists too much.
pub fn capacity_report(
    names: &mut Names,
    capacity: &ClusterCapacity,
) -> Result<CapacityReport, OversizedReport> {
    check_size(names, capacity)?;
    let status = &capacity.status;
    let mut label_keys: Vec<Box<str>> =
        capacity.spec.all_label_keys().iter().map(|key| key.as_str().into()).collect();
    // Equal reports must compare equal, whatever the order of their lists.
    label_keys.sort_unstable();
    let mut kinds: Vec<JobGvk> = status.kinds.iter().map(job_gvk).collect();
    kinds.sort_unstable();
    kinds.dedup();
    Ok(CapacityReport {
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
    })
}

/// Compares the lists of a report with their limits.
fn check_size(names: &Names, capacity: &ClusterCapacity) -> Result<(), OversizedReport> {
    let status = &capacity.status;
    let classes = status.node_classes.iter();
    let shapes = status.elastic.iter().map(|one| &one.node_shape);
    let labels = classes.clone().map(|one| one.labels.len());
    let labels = labels.chain(shapes.clone().map(|one| one.labels.len()));
    let taints = classes.clone().map(|one| one.taints.len());
    let taints = taints.chain(shapes.clone().map(|one| one.taints.len()));
    let of_nodes = classes.flat_map(|one| one.free.keys().chain(one.size.keys()));
    let of_shapes = shapes.flat_map(|one| one.allocatable.keys());
    let of_queues = status.flavors.iter().map(|one| &one.resource);
    let resources: BTreeSet<&String> = of_nodes.chain(of_shapes).chain(of_queues).collect();
    let n_new = resources.iter().filter(|name| names.resources.get(name).is_none()).count();
    // Names that are known already are no reason to refuse a report.
    let n_names = if n_new > 0 { names.resources.len().saturating_add(n_new) } else { 0 };
    let sizes = [
        ("kinds", status.kinds.len(), MAX_ENTRIES),
        ("node classes", status.node_classes.len(), MAX_ENTRIES),
        ("kinds of new nodes", status.elastic.len(), MAX_ENTRIES),
        ("quotas", status.flavors.len(), MAX_FLAVORS),
        ("label keys", capacity.spec.all_label_keys().len(), MAX_LABEL_KEYS),
        ("labels of one node class", labels.max().unwrap_or(0), MAX_LABEL_KEYS),
        ("taints of one node class", taints.max().unwrap_or(0), MAX_ENTRIES),
        ("resources", resources.len(), MAX_RESOURCES),
        ("names of resources together with those of others", n_names, MAX_RESOURCE_NAMES),
    ];
    let oversized = sizes.into_iter().find(|(_, found, most)| found > most);
    oversized.map_or(Ok(()), |(what, found, most)| Err(OversizedReport { what, found, most }))
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
        let report = capacity_report(&mut names, &capacity).expect("a small report");
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

    /// A report with these fields of its status.
    fn reported(status: &serde_json::Value) -> ClusterCapacity {
        let object = json!({"kind": "ClusterCapacity", "spec": {}, "status": status});
        serde_json::from_value(object).expect("a ClusterCapacity")
    }

    #[test]
    fn hostile_worker_an_oversized_report_is_not_read() {
        let many = |n: usize, one: serde_json::Value| json!(vec![one; n]);
        let resources = |from: usize, n: usize| -> serde_json::Value {
            (from..from + n).map(|at| (format!("example.com/{at}"), json!("1"))).collect()
        };
        let kind = json!({"version": "v1", "kind": "Pod"});
        let quota = json!({"clusterQueue": "a", "flavor": "x", "resource": "cpu", "nominal": "1"});
        let taint = json!({"key": "k", "effect": "NoExecute"});
        let class = |fields: serde_json::Value| json!({"nodeClasses": [fields]});
        for (limit, what, report) in [
            (64, "kinds", &(|n| json!({"kinds": many(n, kind.clone())})) as &dyn Fn(usize) -> _),
            (64, "node classes", &|n| json!({"nodeClasses": many(n, json!({"count": 1}))})),
            (64, "kinds of new nodes", &|n| json!({"elastic": many(n, json!({"maxMore": 1}))})),
            (1024, "quotas", &|n| json!({"flavors": many(n, quota.clone())})),
            (64, "taints of one node class", &|n| class(json!({"taints": many(n, taint.clone())}))),
            (256, "resources", &|n| class(json!({"count": 1, "free": resources(0, n)}))),
        ] {
            let mut names = Names::default();
            assert!(capacity_report(&mut names, &reported(&report(limit))).is_ok(), "{what}");
            let known = names.resources.len();
            let error = capacity_report(&mut names, &reported(&report(limit + 1)));
            let expected = format!("it has {} {what}, {limit} at most", limit + 1);
            assert_eq!(error.map_err(|one| one.to_string()), Err(expected));
            assert_eq!(names.resources.len(), known, "no name is kept");
        }
    }

    #[test]
    fn hostile_worker_reports_with_ever_new_resources_end() {
        let mut names = Names::default();
        let report = |at: usize| {
            let free: serde_json::Value =
                (0..256).map(|one| (format!("example.com/{at}-{one}"), json!("1"))).collect();
            reported(&json!({"nodeClasses": [{"count": 1, "free": free}]}))
        };
        let read = (0..99).filter(|at| capacity_report(&mut names, &report(*at)).is_ok());
        assert_eq!(read.count(), 16);
        assert_eq!(names.resources.len(), 4096);
        assert!(capacity_report(&mut names, &report(3)).is_ok(), "what is known counts on");
    }
}
