//! Quota reservations: charging what a Workload gets, releasing it, and marking it as evicted.
//!
//! A reservation charges quota and topology usage, and adds the Workload to its ClusterQueue's reserving ones. A release
//! gives all of that back and requeues the inadmissible Workloads of the cohort tree. Source: docs/reference/kueue.md §2.5.

use crate::admission_fair_sharing::consumption;
use crate::apply::cluster_queue::queue_record;
use crate::ids::WorkloadId;
use crate::slice_changes;
use crate::spec::{AdmissionSpec, PodSetAdmission};
use crate::state::State;
use crate::workloads::admission::Admission;
use crate::workloads::record::QueuePosition;
use crate::workloads::usage::{SlotUsage, charge};

/// Marks a Workload as evicted: it will release its quota.
pub(crate) fn mark_evicted(state: &mut State, id: WorkloadId) {
    let admission = state.workloads.get_mut(id).and_then(|one| one.admission.as_deref_mut());
    if let Some(admission) = admission {
        admission.evicted = true;
        let queue = admission.queue;
        state.queue_mut(queue).generation += 1;
    }
}

/// Releases and charges the usage of a reserving Workload that was observed again, as upstream does.
pub(crate) fn recharge(state: &mut State, id: WorkloadId) {
    if let Some(admission) = state.workloads.at(id).admission.as_deref() {
        let node = state.queue(admission.queue).node;
        state.tree.recharge(node, &admission.usage);
    }
}

pub(crate) fn reserve(state: &mut State, id: WorkloadId, spec: AdmissionSpec) {
    queue_record(state, spec.queue);
    let admission = Admission {
        queue: spec.queue,
        reserved_at: spec.reserved_at,
        evicted: spec.evicted,
        taken_over: false,
        usage: usage_of(state, &spec.pod_sets),
        pod_sets: spec.pod_sets,
    };
    enter_reservation(state, id, Box::new(admission));
}

/// Usage of admitted pod sets, without finished pods.
pub(crate) fn usage_of(state: &mut State, pod_sets: &[PodSetAdmission]) -> SlotUsage {
    let mut usage = SlotUsage::new();
    for pod_set in pod_sets {
        for &(resource, flavor, total) in &pod_set.resources {
            let slot = state.tree.slot(flavor, resource);
            charge(&mut usage, slot, pod_set.left_of(total));
        }
    }
    usage
}

/// Enters an admission and charges its usage.
pub(crate) fn enter_reservation(state: &mut State, id: WorkloadId, mut admission: Box<Admission>) {
    admission.pod_sets.iter_mut().for_each(PodSetAdmission::sort);
    let queue = admission.queue;
    state.tree.charge(state.queue(queue).node, &admission.usage);
    state.topologies.charge_admission(&admission, &state.workloads.at(id).class, &state.classes);
    let reserving = &mut state.queue_mut(queue).reserving;
    reserving.push(id);
    let place = u32::try_from(reserving.len() - 1).expect("invariant: fewer than 2^32 Workloads");
    let workload = state.workloads.at_mut(id);
    workload.queue = Some(queue);
    workload.place = QueuePosition::Reserving { place };
    workload.admission = Some(admission);
    let priority = workload.priority;
    let queue = state.queue_mut(queue);
    queue.priorities.add(priority);
    queue.pending.clear_preemptor(id);
    queue.generation += 1;
    slice_changes::reserved(state, id);
    crate::delayed_topology::update(state, id);
}

/// Releases the quota of a Workload, and requeues the cohort tree.
pub(crate) fn release_quota(state: &mut State, id: WorkloadId) {
    let workload = state.workloads.at_mut(id);
    let (Some(_), QueuePosition::Reserving { place }) = (&workload.admission, workload.place)
    else {
        return;
    };
    workload.place = QueuePosition::Out;
    let (class, priority) = (workload.class, workload.priority);
    state.second_passes.remove(id);
    consumption::drop_penalty(state, id);
    let Some(admission) = state.workloads.at_mut(id).admission.take() else {
        return;
    };
    state.topologies.release_admission(&admission, &class, &state.classes);
    let queue = admission.queue;
    let node = state.queue(queue).node;
    for &(slot, amount) in &admission.usage {
        state.tree.remove_usage(node, slot, amount);
    }
    state.queue_mut(queue).priorities.remove(priority);
    let reserving = &mut state.queue_mut(queue).reserving;
    reserving.swap_remove(place as usize);
    // The last one was moved to the free position.
    if let Some(&moved) = reserving.get(place as usize) {
        state.workloads.at_mut(moved).place = QueuePosition::Reserving { place };
    }
    state.workloads.keep_released(admission);
    state.queue_mut(queue).generation += 1;
    state.node_failures.capacity_changed();
    state.requeue_cohort_tree(queue);
    slice_changes::released(state, id);
}
