//! The report of a thin worker, in the terms of dispatch and of the API.

use std::collections::BTreeMap;

use ::dispatch::{CapacityReport, JobGvk, NodeClassCapacity, WorkerMode};
use crds::{
    meta::{Taint, is_true},
    names::{
        conditions::{ADMITTED, FINISHED},
        labels::MULTI_KUEUE_ORIGIN,
    },
    v1alpha1::{self, ClusterCapacity, ClusterCapacityStatus, JobKind, LOCAL, WorkloadCounts},
    v1beta2::Workload,
};
use engine::{Amount, Names, ids::ResourceId};
use runtime::{watch::Key, write::Write};

use super::node::FreeNode;
use crate::control::{Order, Purpose, Subject, Ticket};

/// Version of the protocol.
const PROTOCOL: i32 = 1;

/// Most classes that a report holds.
const MOST_CLASSES: usize = 64;

/// Nodes in classes, told apart by the labels of these keys.
pub(super) fn classes(
    names: &mut Names,
    nodes: &[FreeNode<'_>],
    keys: &[String],
    kinds: Vec<JobGvk>,
) -> CapacityReport {
    let mut classes: Vec<NodeClassCapacity> = Vec::new();
    for node in nodes {
        let labels = keys.iter().filter_map(|key| {
            let value = node.facts.labels.get(key)?;
            Some((key.as_str().into(), value.as_str().into()))
        });
        let (free, size) = (amounts(names, &node.free), amounts(names, &node.size));
        let taints = index::taints(&node.facts.taints);
        let class = NodeClassCapacity { count: 1, labels: labels.collect(), taints, free, size };
        match classes.iter_mut().find(|known| is_alike(known, &class)) {
            Some(known) => known.count += 1,
            None => classes.push(class),
        }
    }
    let label_keys = keys.iter().map(|key| key.as_str().into()).collect();
    CapacityReport { mode: WorkerMode::Thin, as_of: 0, label_keys, kinds, classes }
}

fn amounts(names: &mut Names, all: &BTreeMap<String, Amount>) -> Vec<(ResourceId, Amount)> {
    let amount = |(name, amount): (&String, &Amount)| (names.resources.intern(name), *amount);
    let mut amounts: Vec<_> = all.iter().map(amount).collect();
    amounts.sort_unstable_by_key(|(resource, _)| *resource);
    amounts
}

/// Whether they differ in their count at most.
fn is_alike(one: &NodeClassCapacity, other: &NodeClassCapacity) -> bool {
    (&one.labels, &one.taints, &one.free, &one.size)
        == (&other.labels, &other.taints, &other.free, &other.size)
}

/// The report as it is written. What does not fit into it is left out, so it never overstates.
pub(super) fn status(
    names: &Names,
    left: &[NodeClassCapacity],
    keys: &[String],
    as_of: u64,
    kinds: Vec<JobKind>,
    (pending, running): (WorkloadCounts, WorkloadCounts),
) -> ClusterCapacityStatus {
    let mut classes: Vec<v1alpha1::NodeClass> = Vec::new();
    for class in left {
        let class = in_api(names, class, keys);
        let alike = |known: &&mut v1alpha1::NodeClass| {
            (&known.labels, &known.taints, &known.free, &known.size)
                == (&class.labels, &class.taints, &class.free, &class.size)
        };
        match classes.iter_mut().find(alike) {
            Some(known) => known.count += class.count,
            None => classes.push(class),
        }
    }
    classes.sort_by_key(|class| std::cmp::Reverse(class.count));
    classes.truncate(MOST_CLASSES);
    ClusterCapacityStatus {
        protocol: PROTOCOL,
        mode: "Thin".to_owned(),
        as_of: as_of.to_string(),
        kinds,
        node_classes: classes,
        pending,
        running,
        ..ClusterCapacityStatus::default()
    }
}

fn in_api(names: &Names, class: &NodeClassCapacity, keys: &[String]) -> v1alpha1::NodeClass {
    let labels = class.labels.iter().filter(|(key, _)| keys.iter().any(|known| **known == **key));
    let taints = class.taints.iter().map(|taint| Taint {
        effect: taint.effect.name().to_owned(),
        key: taint.key.to_string(),
        time_added: None,
        value: taint.value.to_string(),
    });
    let quantity = |&(resource, amount): &(ResourceId, Amount)| {
        let name = names.resources.name(resource);
        (name.to_owned(), index::quantity(name, amount))
    };
    v1alpha1::NodeClass {
        count: i32::try_from(class.count).unwrap_or(i32::MAX),
        labels: labels
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect::<BTreeMap<_, _>>(),
        taints: taints.collect(),
        free: class.free.iter().map(quantity).collect(),
        size: class.size.iter().map(quantity).collect(),
    }
}

/// How many wait and run, of this manager and of others.
pub(super) fn counts<'a>(
    workloads: impl Iterator<Item = &'a Workload>,
    origin: &str,
) -> (WorkloadCounts, WorkloadCounts) {
    let (mut pending, mut running) = (WorkloadCounts::default(), WorkloadCounts::default());
    for workload in workloads {
        let conditions = &workload.status.conditions;
        if is_true(conditions, FINISHED) {
            continue;
        }
        let counts = if is_true(conditions, ADMITTED) { &mut running } else { &mut pending };
        let labels = workload.metadata.labels.as_ref();
        let own = labels.and_then(|all| all.get(MULTI_KUEUE_ORIGIN)).is_some_and(|of| of == origin);
        if own { counts.own += 1 } else { counts.others += 1 }
    }
    (pending, running)
}

/// Whether two reports say the same. That more was looked at without finding anything new is nothing new.
pub(super) fn same(before: &ClusterCapacityStatus, after: &ClusterCapacityStatus) -> bool {
    ClusterCapacityStatus { as_of: after.as_of.clone(), ..before.clone() } == *after
}

fn ticket(purpose: Purpose) -> Ticket {
    Ticket::home(Subject::Capacity, &Key { namespace: None, name: LOCAL.into() }, purpose)
}

/// Writes the report.
pub(super) fn order(
    before: &ClusterCapacityStatus,
    after: &ClusterCapacityStatus,
) -> Option<Order> {
    Order::status::<ClusterCapacity, _>(ticket(Purpose::Capacity), before, after)
}

/// Makes the object that reports are written to.
pub(super) fn creation() -> Option<Order> {
    let mut object = ClusterCapacity::default();
    object.metadata.name = Some(LOCAL.to_owned());
    Order::of(ticket(Purpose::CapacityCreate), |purpose, _| Write::create(purpose, &object))
}
