//! Quota reservations: charging what a Workload gets, releasing it, moving its pods, and marking it as evicted.
//!
//! A reservation charges quota and topology usage, and adds the Workload to its ClusterQueue's reserving ones. A release
//! gives all of that back and requeues the inadmissible Workloads of the cohort tree. Source: docs/reference/kueue.md §2.5.

use crate::admission_fair_sharing::consumption;
use crate::apply::cluster_queue::queue_record;
use crate::ids::WorkloadId;
use crate::queues::layer::QueueLayer;
use crate::quota::layer::QuotaLayer;
use crate::second_pass::needed;
use crate::settings::EngineSettings;
use crate::slice_changes;
use crate::spec::{AdmissionSpec, AssignedResource, PodSetAdmission};
use crate::state::State;
use crate::topology::ReplacementAssignments;
use crate::topology::layer::TopologyLayer;
use crate::workloads::admission::AdmissionRecord;
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::record::QueuePosition;
use crate::workloads::usage::{SlotUsage, charge};

/// Marks a Workload as evicted: it will release its quota.
pub(crate) fn mark_evicted(state: &mut State, id: WorkloadId) {
    if let Some(queue) = state.workloads.mark_evicted(id) {
        state.queues.note_reserving_change(queue);
        slice_changes::evicted(state, id);
    }
}

/// Releases and charges the usage of a reserving Workload that was observed again, as upstream does.
pub(crate) fn recharge(
    quota: &mut QuotaLayer,
    workloads: &WorkloadLayer,
    queues: &QueueLayer,
    id: WorkloadId,
) {
    if let Some(admission) = workloads.admission(id) {
        let node = queues.at(admission.queue).node;
        quota.recharge(node, &admission.usage);
    }
}

pub(crate) fn reserve(state: &mut State, id: WorkloadId, spec: AdmissionSpec) {
    queue_record(&mut state.quota, &mut state.queues, spec.queue);
    let admission = AdmissionRecord {
        queue: spec.queue,
        reserved_at: spec.reserved_at,
        evicted: spec.evicted,
        taken_over: false,
        usage: usage_of(&mut state.quota, &spec.pod_sets),
        pod_sets: spec.pod_sets,
    };
    enter_reservation(state, id, Box::new(admission));
}

/// Usage of admitted pod sets, without finished pods.
pub(crate) fn usage_of(quota: &mut QuotaLayer, pod_sets: &[PodSetAdmission]) -> SlotUsage {
    let mut usage = SlotUsage::new();
    for pod_set in pod_sets {
        for &AssignedResource { resource, flavor, amount } in &pod_set.resources {
            let slot = quota.slot(flavor, resource);
            charge(&mut usage, slot, pod_set.left_of(amount));
        }
    }
    usage
}

/// Enters an admission and charges its usage.
pub(crate) fn enter_reservation(
    state: &mut State,
    id: WorkloadId,
    mut admission: Box<AdmissionRecord>,
) {
    // Sorted, so that the observed admission compares equal to the assumed one.
    admission.pod_sets.iter_mut().for_each(PodSetAdmission::sort);
    let queue = admission.queue;
    state.quota.charge(state.queues.at(queue).node, &admission.usage);
    state.topology.charge_admission(&admission, state.workloads.class(id));
    let priority = state.workloads.at(id).priority;
    let index = state.queues.add_reserving(queue, id, priority);
    state.workloads.set_admission(id, admission, index);
    slice_changes::reserved(state, id);
    needed::update(&mut state.workloads, &state.queues, id);
}

/// Releases the quota of a Workload with its entry penalty, and requeues the cohort tree and the users of the nodes that
/// became free.
pub(crate) fn release_quota(state: &mut State, id: WorkloadId) {
    consumption::drop_penalty(&mut state.queues, id);
    release_usage(state, id);
}

/// Like [`release_quota`], but keeps the entry penalty: for a reservation that another one replaces at once.
pub(crate) fn release_usage(state: &mut State, id: WorkloadId) {
    let workload = state.workloads.at(id);
    let QueuePosition::Reserving { index } = workload.position else {
        return;
    };
    let priority = workload.priority;
    // Without quota there is no topology assignment to find.
    state.workloads.second_passes_mut().remove(id);
    let Some(admission) = state.workloads.take_admission(id) else {
        return;
    };
    state.topology.release_admission(&admission, state.workloads.class(id));
    let queue = admission.queue;
    let node = state.queues.at(queue).node;
    state.quota.uncharge(node, &admission.usage);
    // The last reserving Workload moves to the freed index.
    if let Some(moved) = state.queues.remove_reserving(queue, index, priority) {
        state.workloads.set_position(moved, QueuePosition::Reserving { index });
    }
    // The domains that became free may replace failed nodes.
    state.topology.node_failures_mut().capacity_changed();
    state.queues.requeue_cohort_tree(queue);
    requeue_users_of_domains(&state.settings, &state.topology, &mut state.queues, &admission);
    state.workloads.keep_released(admission);
    slice_changes::released(state, id);
}

/// Requeues the ClusterQueues that assign pods to the nodes of an admission: they may be in other cohort trees. Source:
/// docs/reference/kueue.md §3.6. Cost: nothing without domains, else one look at each ClusterQueue.
pub(crate) fn requeue_users_of_domains(
    settings: &EngineSettings,
    topology: &TopologyLayer,
    queues: &mut QueueLayer,
    admission: &AdmissionRecord,
) {
    let requeues = settings.requeue_over_shared_nodes;
    // Most admissions have no domains, and those of a replaced workload slice are charged to its successor.
    if !requeues
        || admission.taken_over
        || admission.pod_sets.iter().all(|one| one.used_domains().is_empty())
    {
        return;
    }
    // Stale trees do not say which flavors have the nodes.
    if topology.topologies().is_stale() {
        return queues.requeue_where(|_| true);
    }
    let shared = topology.topologies().flavors_over(&admission.pod_sets);
    queues.requeue_where(|queue| {
        let mut flavors = queue.groups.iter().flat_map(|group| &group.flavors);
        flavors.any(|flavor| shared.contains(flavor))
    });
}

/// Replaces the pod sets of an admission; the charged quota stays.
pub(crate) fn set_pod_sets(
    workloads: &mut WorkloadLayer,
    topology: &mut TopologyLayer,
    id: WorkloadId,
    pod_sets: Vec<PodSetAdmission>,
) {
    reassign(workloads, topology, id, |held| *held = pod_sets);
}

/// Changes the pod sets of an admission together with the topology usage that they charge.
fn reassign(
    workloads: &mut WorkloadLayer,
    topology: &mut TopologyLayer,
    id: WorkloadId,
    change: impl FnOnce(&mut Vec<PodSetAdmission>),
) {
    if let Some(admission) = workloads.admission(id) {
        topology.release_admission(admission, workloads.class(id));
    }
    workloads.change_pod_sets(id, change);
    if let Some(admission) = workloads.admission(id) {
        topology.charge_admission(admission, workloads.class(id));
    }
}

/// Replaces topology assignments and charges the difference.
pub(crate) fn move_pods(
    workloads: &mut WorkloadLayer,
    topology: &mut TopologyLayer,
    id: WorkloadId,
    moved: ReplacementAssignments,
) {
    reassign(workloads, topology, id, |pod_sets| {
        for (pod_set, domains) in moved {
            if let Some(one) = pod_sets.get_mut(pod_set) {
                one.domains = domains;
            }
        }
    });
}
