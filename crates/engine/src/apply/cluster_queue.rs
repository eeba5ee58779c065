//! Events of cohorts, ClusterQueues and LocalQueues.
//!
//! A change of quotas or of the tree's structure is noted here and takes effect when the next cycle begins. It requeues the
//! inadmissible Workloads of the cohort trees that the node is in and was in. Source: docs/reference/kueue.md §2.5, §3.6.

use std::sync::Arc;

use crate::admission_fair_sharing::consumption;
use crate::dense_table::put;
use crate::ids::{CohortId, LocalQueueId, NodeId, QueueId, WorkloadId};
use crate::pending::{enqueue_active, leave_queue, target};
use crate::queues::cluster_queue::{ClusterQueueRecord, GroupSlots};
use crate::queues::pending_queue::PendingQueue;
use crate::queues::priority_counts::PriorityCounts;
use crate::quota::tree::SlotQuota;
use crate::spec::{
    ClusterQueueSpec, CohortSpec, FungibilitySpec, NamespaceSelector, PreemptionSpec,
    QueueingStrategy, ResourceGroup,
};
use crate::state::State;
use crate::workloads::record::WorkloadRecord;

/// The tree node of a ClusterQueue; its record is created on first reference.
pub(crate) fn queue_record(state: &mut State, id: QueueId) -> NodeId {
    state.queues.reach(id.index() + 1);
    if let Some(queue) = &state.queues[id.index()] {
        return queue.node;
    }
    let node = state.tree.add_node(Some(id));
    state.queues[id.index()] = Some(ClusterQueueRecord {
        node,
        spec: None,
        active: false,
        in_cycle: false,
        stopped: false,
        ready: false,
        listed: false,
        strategy: QueueingStrategy::default(),
        preemption: PreemptionSpec::default(),
        flavor_fungibility: FungibilitySpec::default(),
        namespaces: NamespaceSelector::Nothing,
        groups: Arc::default(),
        covers_pods: false,
        topology_only: false,
        generation: 0,
        pending: PendingQueue::default(),
        reserving: Vec::new(),
        priorities: PriorityCounts::default(),
    });
    node
}

fn cohort_node(state: &mut State, id: CohortId) -> NodeId {
    if let Some(&Some(node)) = state.cohorts.get(id.index()) {
        return node;
    }
    let node = state.tree.add_node(None);
    put(&mut state.cohorts, id.index(), Some(node));
    node
}

fn note_change(state: &mut State, node: NodeId) {
    state.changes.node_changed(node);
}

/// Notes that quotas or parent of a node change: flavor scans start again, also in the tree that it leaves.
fn note_quota_change(state: &mut State, node: NodeId) {
    state.changes.quotas_changed(node, state.tree.parent(node));
}

fn quotas(state: &mut State, groups: &[ResourceGroup]) -> Vec<SlotQuota> {
    let flavors = groups.iter().flat_map(|group| &group.flavors);
    let lines = flavors.flat_map(|one| one.resources.iter().map(|quota| (one.flavor, *quota)));
    let mut quotas = Vec::new();
    for (flavor, quota) in lines {
        quotas.push(SlotQuota {
            slot: state.tree.slot(flavor, quota.resource),
            nominal: quota.nominal,
            borrowing_limit: quota.borrowing_limit,
            lending_limit: quota.lending_limit,
        });
    }
    quotas
}

pub(crate) fn cohort(state: &mut State, id: CohortId, spec: &CohortSpec) {
    let node = cohort_node(state, id);
    state.requeue_requests.add(node);
    if let Some(parent) = state.tree.parent(node) {
        state.requeue_requests.add(parent);
        state.changes.child_left(parent);
    }
    let parent = spec.parent.map(|parent| cohort_node(state, parent));
    let quotas = quotas(state, &spec.groups);
    note_quota_change(state, node);
    state.tree.set_quotas(node, spec.weight, &quotas);
    state.tree.set_parent(node, parent);
    note_change(state, node);
}

pub(crate) fn cluster_queue(state: &mut State, id: QueueId, spec: Box<ClusterQueueSpec>) {
    let node = queue_record(state, id);
    if state.queue(id).spec.as_ref() == Some(&spec) {
        return;
    }
    let parent = spec.cohort.map(|cohort| cohort_node(state, cohort));
    let quotas = quotas(state, &spec.groups);
    requeue_former_cohort(state, id);
    let same_groups = state.queue(id).spec.as_ref().is_some_and(|old| old.groups == spec.groups);
    if !same_groups || state.tree.parent(node) != parent {
        note_quota_change(state, node);
    }
    state.tree.set_quotas(node, spec.weight, &quotas);
    if state.tree.parent(node) != parent {
        state.tree.set_parent(node, parent);
    }
    let groups = spec.groups.iter().map(|group| slots_of(state, group)).collect();
    let pods = state.pods;
    let queue = state.queue_mut(id);
    queue.stopped = spec.stopped;
    queue.ready = spec.ready;
    queue.strategy = spec.strategy;
    queue.preemption = spec.preemption;
    queue.flavor_fungibility = spec.flavor_fungibility;
    queue.namespaces.clone_from(&spec.namespaces);
    queue.covers_pods = spec.groups.iter().any(|group| group.resources.contains(&pods));
    queue.groups = Arc::new(groups);
    queue.spec = Some(spec);
    consumption::cluster_queue_changed(state, id);
    note_change(state, node);
    state.requeue_cohort_tree(id);
    requeue_former_cohort(state, id);
}

/// Requeues the cohort tree that a ClusterQueue leaves: quota that it borrowed is free there.
fn requeue_former_cohort(state: &mut State, id: QueueId) {
    if let Some(parent) = state.tree.parent(state.queue(id).node) {
        state.requeue_requests.add(parent);
        state.changes.child_left(parent);
    }
}

fn slots_of(state: &mut State, group: &ResourceGroup) -> GroupSlots {
    let mut slots = Vec::new();
    for one in &group.flavors {
        for &resource in &group.resources {
            slots.push(state.tree.slot(one.flavor, resource));
        }
    }
    GroupSlots {
        resources: group.resources.clone(),
        flavors: group.flavors.iter().map(|one| one.flavor).collect(),
        slots,
    }
}

pub(crate) fn cluster_queue_gone(state: &mut State, id: QueueId) {
    let node = queue_record(state, id);
    requeue_former_cohort(state, id);
    note_quota_change(state, node);
    state.tree.set_quotas(node, crate::spec::FairSharingWeight::default(), &[]);
    state.tree.set_parent(node, None);
    let queue = state.queue_mut(id);
    queue.spec = None;
    queue.groups = Arc::default();
    // A new ClusterQueue of this name does not inherit the preemptor mark.
    queue.pending.forget_preemptor();
    consumption::cluster_queue_changed(state, id);
    note_change(state, node);
}

pub(crate) fn local_queue(
    state: &mut State,
    id: LocalQueueId,
    spec: Option<crate::spec::LocalQueueSpec>,
) {
    if let Some(spec) = &spec {
        queue_record(state, spec.queue);
    }
    let old = state.local_queues.get(id.index()).and_then(Option::as_ref).map(target);
    let new = spec.as_ref().map(target);
    if spec.is_none() {
        state.ledger.remove(id);
    }
    put(&mut state.local_queues, id.index(), spec);
    consumption::update_usage(state, id);
    if old != new {
        let moved: Vec<WorkloadId> = (0..state.names.workloads.len())
            .map(WorkloadId::from)
            .filter(|&one| state.workloads.get(one).is_some_and(|w| queued_through(w, id)))
            .collect();
        for workload in moved {
            leave_queue(state, workload);
            enqueue_active(state, workload);
        }
    }
}

/// A change of its LocalQueue does not move a Workload with a reservation.
fn queued_through(workload: &WorkloadRecord, id: LocalQueueId) -> bool {
    workload.local_queue == Some(id) && workload.admission.is_none()
}
