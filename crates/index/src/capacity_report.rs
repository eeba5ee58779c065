//! Conversion of a `ClusterCapacity` to the report that dispatch reads. Source: docs/reference/dispatch.md §2.
//!
//! Every list is sorted, so equal clusters give equal reports. Free amounts are rounded down. The API server of a worker checks the
//! schema of its report, and is the worker's own: the limits of the schema are checked again.

use std::collections::{BTreeMap, BTreeSet};

use crds::quantity::Quantity;
use crds::v1alpha1::{self, ClusterCapacity, FlavorCapacity, JobKind};
use dispatch::{
    CapacityReport, JobGvk, NodeClassCapacity, PROTOCOL, WorkerMode, unserved_protocol,
};
use engine::{Amount, Names, ids::ResourceId};

use crate::amount::allocatable_amount;
use crate::report_names::{AddedNames, ReportNames};
use crate::selectors;

/// Entries of the lists of a report, by the schema of a ClusterCapacity.
const MAX_ENTRIES: usize = 64;

/// Quotas of a report, by the schema of a ClusterCapacity.
const MAX_FLAVORS: usize = 1024;

/// Label keys of a report: those of sixteen managers.
const MAX_LABEL_KEYS: usize = 17 * MAX_ENTRIES;

/// Different resources of a report.
const MAX_RESOURCES: usize = 256;

/// A report lists more than a manager reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it has {found} {what}, {most} at most")]
pub struct OversizedReport {
    what: &'static str,
    found: usize,
    most: usize,
}

/// Converts the report of a worker, which has added these names so far.
///
/// # Errors
/// If it lists too much.
pub fn capacity_report(
    names: &mut Names,
    added: &mut AddedNames,
    capacity: &ClusterCapacity,
) -> Result<CapacityReport, OversizedReport> {
    let label_keys = capacity.spec.all_label_keys();
    check_size(capacity, label_keys.len())?;
    let mut names = ReportNames { names, added };
    let status = &capacity.status;
    let mut label_keys: Vec<Box<str>> = label_keys.into_iter().map(Into::into).collect();
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
        classes: status.node_classes.iter().map(|class| node_class(&mut names, class)).collect(),
        elastic: status.elastic.iter().map(|one| new_nodes(&mut names, one)).collect(),
        queues: queues(&mut names, &status.flavors),
    })
}

/// Compares the lists of a report with their limits.
fn check_size(capacity: &ClusterCapacity, n_label_keys: usize) -> Result<(), OversizedReport> {
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
    let sizes = [
        ("kinds", status.kinds.len(), MAX_ENTRIES),
        ("node classes", status.node_classes.len(), MAX_ENTRIES),
        ("kinds of new nodes", status.elastic.len(), MAX_ENTRIES),
        ("quotas", status.flavors.len(), MAX_FLAVORS),
        ("label keys", n_label_keys, MAX_LABEL_KEYS),
        ("labels of one node class", labels.max().unwrap_or(0), MAX_LABEL_KEYS),
        ("taints of one node class", taints.max().unwrap_or(0), MAX_ENTRIES),
        ("resources", resources.len(), MAX_RESOURCES),
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

fn node_class(names: &mut ReportNames<'_>, class: &v1alpha1::NodeClass) -> NodeClassCapacity {
    NodeClassCapacity {
        count: i64::from(class.count),
        labels: selectors::pairs(&class.labels),
        taints: selectors::taints(&class.taints),
        free: amounts(names, &class.free),
        size: amounts(names, &class.size),
    }
}

fn new_nodes(names: &mut ReportNames<'_>, one: &v1alpha1::ElasticCapacity) -> NodeClassCapacity {
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
fn queues(
    names: &mut ReportNames<'_>,
    flavors: &[FlavorCapacity],
) -> Vec<Vec<(ResourceId, Amount)>> {
    let mut queues = BTreeMap::<&str, BTreeMap<ResourceId, Amount>>::new();
    for one in flavors {
        let amount = |quantity| allocatable_amount(&one.resource, quantity);
        let own = (amount(&one.nominal) - amount(&one.used)).max(Amount::ZERO);
        let of_queue = queues.entry(&one.cluster_queue).or_default();
        if let Some(resource) = names.id(&one.resource) {
            *of_queue.entry(resource).or_default() += own + amount(&one.borrowable);
        }
    }
    queues.into_values().map(|queue| queue.into_iter().collect()).collect()
}

fn amounts(
    names: &mut ReportNames<'_>,
    all: &BTreeMap<String, Quantity>,
) -> Vec<(ResourceId, Amount)> {
    let amount = |(name, quantity): (&String, _)| {
        names.id(name).map(|id| (id, allocatable_amount(name, quantity)))
    };
    let mut amounts: Vec<_> = all.iter().filter_map(amount).collect();
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
        let report = capacity_report(&mut names, &mut AddedNames::default(), &capacity)
            .expect("a small report");
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
            assert!(
                capacity_report(&mut names, &mut AddedNames::default(), &reported(&report(limit)))
                    .is_ok(),
                "{what}"
            );
            let known = names.resources.len();
            let error = capacity_report(
                &mut names,
                &mut AddedNames::default(),
                &reported(&report(limit + 1)),
            );
            let expected = format!("it has {} {what}, {limit} at most", limit + 1);
            assert_eq!(error.map_err(|one| one.to_string()), Err(expected));
            assert_eq!(names.resources.len(), known, "no name is kept");
        }
    }

    #[test]
    fn names_of_others_make_no_report_unreadable() {
        let mut names = Names::default();
        for at in 0..4100 {
            names.resources.intern(&format!("example.com/of-a-job-{at}"));
        }
        let free = json!({"cpu": "1", "example.com/of-a-job-7": "2", "example.com/own": "3"});
        let report = reported(&json!({"nodeClasses": [{"count": 1, "free": free}]}));
        let added = &mut AddedNames::default();
        let read = capacity_report(&mut names, added, &report).expect("it is read");
        assert_eq!(read.classes.first().map(|class| class.free.len()), Some(3));
    }

    #[test]
    fn hostile_worker_resources_beyond_its_own_limit_are_left_out() {
        let (mut names, mut added) = (Names::default(), AddedNames::default());
        let report = |at: usize| {
            let new = (0..250).map(|one| (format!("example.com/{at}-{one}"), json!("1")));
            let free: serde_json::Value = new.chain([("cpu".to_owned(), json!("4"))]).collect();
            let quota = json!({"clusterQueue": "a", "flavor": "x", "resource": format!("example.com/{at}-249"), "nominal": "1"});
            reported(&json!({"nodeClasses": [{"count": 1, "free": free}], "flavors": [quota]}))
        };
        let counts = |at, names: &mut _, added: &mut _| {
            let read = capacity_report(names, added, &report(at)).expect("it is read");
            let free = read.classes.first().map_or(0, |class| class.free.len());
            (free, read.queues.first().map(Vec::len))
        };
        for at in 0..4 {
            assert_eq!(counts(at, &mut names, &mut added), (251, Some(1)), "{at}");
        }
        assert_eq!(counts(4, &mut names, &mut added), (24, Some(0)));
        assert_eq!(names.resources.len(), 1024);
        assert_eq!(counts(3, &mut names, &mut added), (251, Some(1)), "what is known counts on");
        names.resources.intern("example.com/4-249");
        assert_eq!(counts(4, &mut names, &mut added), (25, Some(1)), "a Workload requests it");
        let other = &mut AddedNames::default();
        assert_eq!(counts(5, &mut names, other), (251, Some(1)), "it is the limit of one worker");
    }
}
