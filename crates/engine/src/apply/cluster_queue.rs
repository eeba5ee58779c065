//! Events of cohorts, ClusterQueues and LocalQueues.
//!
//! A change of quotas or of the tree's structure is noted here and takes effect when the next cycle begins. It requeues the
//! inadmissible Workloads of the cohort trees that the node is in and was in. Source: docs/reference/kueue.md §2.5, §3.6.

use crate::admission_fair_sharing::consumption;
use crate::ids::{CohortId, LocalQueueId, NodeId, QueueId, WorkloadId};
use crate::pending::{enqueue_active, leave_queue, target};
use crate::queues::cluster_queue::GroupSlots;
use crate::queues::layer::QueueLayer;
use crate::quota::layer::QuotaLayer;
use crate::spec::{ClusterQueueInfo, CohortInfo, LocalQueueInfo, ResourceGroupSpec};
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::record::WorkloadRecord;

/// The tree node of a ClusterQueue; its record is created on first reference.
pub(crate) fn queue_record(quota: &mut QuotaLayer, queues: &mut QueueLayer, id: QueueId) -> NodeId {
    if let Some(queue) = queues.find(id) {
        return queue.node;
    }
    let node = quota.add_cluster_queue(id);
    queues.add(id, node);
    node
}

pub(crate) fn cohort(
    quota: &mut QuotaLayer,
    queues: &mut QueueLayer,
    id: CohortId,
    object: Option<CohortInfo>,
) {
    // A new status alone, such as its share, requeues nothing and restarts no flavor scan.
    let Some((node, former)) = quota.set_cohort(id, object) else {
        return;
    };
    queues.requeue_tree_of(node);
    // Quota that the cohort borrowed is free again in the tree that it leaves.
    if let Some(parent) = former {
        queues.requeue_tree_of(parent);
    }
}

pub(crate) fn cluster_queue(
    quota: &mut QuotaLayer,
    queues: &mut QueueLayer,
    id: QueueId,
    spec: Box<ClusterQueueInfo>,
) {
    let node = queue_record(quota, queues, id);
    // A new status alone requeues nothing. The generation is part of the spec, so any other change
    // of the object does.
    if queues.at(id).spec.as_ref() == Some(&spec) {
        return;
    }
    requeue_former_cohort(quota, queues, node);
    let same_groups = queues.at(id).spec.as_ref().is_some_and(|old| old.groups == spec.groups);
    quota.set_cluster_queue(node, &spec, same_groups);
    let groups = spec.groups.iter().map(|group| slots_of(quota, group)).collect();
    queues.set_spec(id, spec, groups);
    consumption::cluster_queue_changed(queues, id);
    queues.requeue_cohort_tree(id);
}

/// Requeues the cohort tree that a ClusterQueue leaves: quota that it borrowed is free there.
fn requeue_former_cohort(quota: &QuotaLayer, queues: &mut QueueLayer, node: NodeId) {
    if let Some(parent) = quota.tree().parent(node) {
        queues.requeue_tree_of(parent);
    }
}

fn slots_of(quota: &mut QuotaLayer, group: &ResourceGroupSpec) -> GroupSlots {
    let mut slots = Vec::new();
    for one in &group.flavors {
        for &resource in &group.resources {
            slots.push(quota.slot(one.flavor, resource));
        }
    }
    GroupSlots {
        resources: group.resources.clone(),
        flavors: group.flavors.iter().map(|one| one.flavor).collect(),
        slots,
    }
}

pub(crate) fn cluster_queue_gone(quota: &mut QuotaLayer, queues: &mut QueueLayer, id: QueueId) {
    let node = queue_record(quota, queues, id);
    requeue_former_cohort(quota, queues, node);
    quota.remove_cluster_queue(node);
    queues.remove_spec(id);
    consumption::cluster_queue_changed(queues, id);
}

pub(crate) fn local_queue(
    quota: &mut QuotaLayer,
    workloads: &mut WorkloadLayer,
    queues: &mut QueueLayer,
    id: LocalQueueId,
    spec: Option<LocalQueueInfo>,
) {
    if let Some(spec) = &spec {
        queue_record(quota, queues, spec.queue);
    }
    let old = queues.local_queue(id).map(target);
    let new = spec.as_ref().map(target);
    if spec.is_none() {
        // A LocalQueue of the same name starts without consumption.
        consumption::local_queue_gone(workloads, queues, id);
    }
    queues.set_local_queue(id, spec);
    consumption::update_usage(queues, id);
    // Another ClusterQueue, stopped, or resumed: the pending Workloads move.
    if old != new {
        let moved = workloads.iter().filter(|(_, workload)| queued_through(workload, id));
        let moved: Vec<WorkloadId> = moved.map(|(id, _)| id).collect();
        for workload in moved {
            leave_queue(queues, workloads, workload);
            enqueue_active(queues, workloads, workload);
        }
    }
}

/// A change of its LocalQueue does not move a Workload with a reservation.
fn queued_through(workload: &WorkloadRecord, id: LocalQueueId) -> bool {
    workload.local_queue == Some(id) && workload.admission.is_none()
}
