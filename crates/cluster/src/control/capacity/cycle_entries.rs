//! The pods that a cycle places: those of a clone, with what its flavors add.

use std::sync::Arc;

use crds::v1beta2::Workload;
use dispatch::{AssignedPodSet, AssignedWorkload, DispatchedEntry};
use index::{AdmissionMode, FlavorInfo, Index};

use super::LOCAL;
use crate::control::{
    elastic_slices::{counts_of, replaced},
    scheduling::DispatchedEntryOf,
    workloads::Workloads,
};

/// What an entry of a cycle needs of the cluster. In mode Thin the clone carries what flavors of its manager add; in mode Quota the
/// queues assign flavors of the cluster.
pub(super) fn work_of(mode: AdmissionMode) -> DispatchedEntryOf {
    match mode {
        AdmissionMode::Thin => work_of_carried,
        AdmissionMode::Quota => work_of_assigned,
    }
}

/// The pods of the clone of an entry, with what the clone carries for them.
fn work_of_carried(
    index: &Index,
    workloads: &Workloads,
    entry: &engine::CycleEntry,
) -> Option<DispatchedEntry> {
    let request = index.request(entry.workload)?;
    let (_, record) = workloads.by_id(entry.workload)?;
    let given = request.pod_sets.iter().zip(&entry.assignment.pod_sets);
    let given = given.map(|(pods, one)| carried(record.object(), &pods.name, one.count)).collect();
    work_with(given, index, workloads, entry)
}

/// The pods of the clone of an entry, with what its assigned flavors add.
fn work_of_assigned(
    index: &Index,
    workloads: &Workloads,
    entry: &engine::CycleEntry,
) -> Option<DispatchedEntry> {
    let given = index.assigned_pod_sets(&entry.assignment.pod_sets);
    work_with(given, index, workloads, entry)
}

/// What an entry of a cycle needs of the cluster: the pods of its clone, which get this.
fn work_with(
    given: Vec<AssignedPodSet>,
    index: &Index,
    workloads: &Workloads,
    entry: &engine::CycleEntry,
) -> Option<DispatchedEntry> {
    let request = index.request(entry.workload)?;
    let (_, record) = workloads.by_id(entry.workload)?;
    let whole = AssignedWorkload::new(Arc::clone(request), given);
    let work = match replaced(record.object(), workloads) {
        Some(old) => whole.beyond(counts_of(old.object())),
        None => whole,
    };
    Some(DispatchedEntry {
        config: LOCAL.to_owned(),
        work: Arc::new(work),
        order: index.queue_order(entry.workload),
        // Run times are learned by the manager, which sees all clusters.
        group: None,
        // Pods that are still to be bound are counted again with every change of a clone.
        extends: None,
    })
}

/// `count` pods of a pod set, with the node labels and tolerations that a clone carries for it: its flavors are not here.
pub(super) fn carried(clone: &Workload, pod_set: &str, count: i64) -> AssignedPodSet {
    let info = ::jobs::clone_assignment::read(clone, pod_set).unwrap_or_default();
    let (name, labels) = (pod_set.to_owned(), info.node_selector);
    let tolerations = info.tolerations;
    // The manager has chosen the cluster.
    let clusters = None;
    index::assigned_pod_set(&FlavorInfo { name, count, labels, tolerations, clusters })
}
