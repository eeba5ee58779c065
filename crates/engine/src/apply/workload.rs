//! Events of Workloads: new, changed, released, deleted, and results of writes. Source: docs/reference/kueue.md §2.5.

use crate::flavors::request_order;
use crate::ids::{EquivalenceClassId, TopologyNodeId, WorkloadId};
use crate::pending::{dequeue, enqueue, enqueue_active, replace};
use crate::queues::layer::QueueLayer;
use crate::reservations::{recharge, release_quota, release_usage, reserve};
use crate::settings::EngineSettings;
use crate::slice_changes;
use crate::spec::{AdmissionSpec, PodSetAdmission, QueueEligibility, WorkloadInfo};
use crate::state::State;
use crate::time::Time;
use crate::topology::layer::TopologyLayer;
use crate::workloads::admission::AdmissionRecord;
use crate::workloads::equivalence_class::EquivalenceClass;
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::record::{QueuePosition, WorkloadRecord};

/// A Workload that is new or changed.
pub(crate) fn workload(state: &mut State, id: WorkloadId, spec: WorkloadInfo) {
    let affected = slice_changes::before_change(state, id, Some(&spec));
    update(state, id, spec);
    slice_changes::after_change(state, id, &affected);
}

fn update(state: &mut State, id: WorkloadId, mut spec: WorkloadInfo) {
    state.workloads.set_variant_group(id, spec.variant_of.as_deref());
    let admission = spec.admission.take();
    let class = acquire_class(state, &mut spec);
    let new = record(spec, class);
    let mut was_active = false;
    match state.workloads.get(id) {
        None => state.workloads.insert(id, new),
        Some(old) if old.admission.is_some() => {
            return update_reserving(state, id, new, admission);
        }
        // An equal observation moves nothing: an inadmissible Workload stays inadmissible (§3.4).
        Some(old) if is_unchanged(old, &new) && admission.is_none() => {
            return state.workloads.release_class(class);
        }
        Some(_) => was_active = replace(state, id, new, admission.is_none()),
    }
    match admission {
        Some(admission) => reserve(state, id, admission),
        None if was_active => enqueue_active(&mut state.queues, &mut state.workloads, id),
        None => enqueue(&mut state.queues, &mut state.workloads, id),
    }
}

/// The equivalence class of a Workload, which takes over its pod sets.
fn acquire_class(state: &mut State, spec: &mut WorkloadInfo) -> EquivalenceClassId {
    let mut pod_sets = std::mem::take(&mut spec.pod_sets);
    request_order::sort_requests(&state.names, &mut pod_sets);
    // Without its gate a slice or variant is queued like any other Workload.
    let slices = state.settings.elastic_jobs_via_workload_slices;
    let variants = state.settings.concurrent_admission;
    let replaced_slice = spec.replaced_slice.take().filter(|_| slices);
    let elastic = spec.elastic || replaced_slice.is_some();
    state.workloads.acquire_class(EquivalenceClass {
        priority: spec.priority,
        pod_sets,
        replaced_slice,
        elastic_topology: elastic && state.settings.elastic_jobs_via_workload_slices_with_tas,
        allowed: spec.allowed_flavors.take().filter(|_| variants).map(Into::into),
    })
}

/// The record of a Workload that is in no queue and holds no quota yet.
fn record(spec: WorkloadInfo, class: EquivalenceClassId) -> WorkloadRecord {
    WorkloadRecord {
        uid: spec.uid,
        namespace: spec.namespace,
        local_queue: spec.local_queue,
        queue: None,
        class,
        priority: spec.priority,
        has_priority_class: spec.has_priority_class,
        queued_at: spec.queued_at,
        eligibility: spec.eligibility,
        position: QueuePosition::NotQueued,
        ticket: 0,
        removed: false,
        preemption_gated: spec.preemption_gated,
        settled_penalty: None,
        awaited_capacity: None,
        awaits_quota: false,
        invalid: spec.invalid,
        checks: spec.checks.into(),
        last_assignment: None,
        admission: None,
    }
}

fn is_unchanged(old: &WorkloadRecord, new: &WorkloadRecord) -> bool {
    (old.class, old.queued_at, old.eligibility, old.local_queue, &old.invalid, old.namespace)
        == (new.class, new.queued_at, new.eligibility, new.local_queue, &new.invalid, new.namespace)
        && (&old.uid, &old.checks, old.preemption_gated)
            == (&new.uid, &new.checks, new.preemption_gated)
}

/// Updates a Workload with a reservation: its priority decides which preemptors may target it, its finished pods free
/// quota.
fn update_reserving(
    state: &mut State,
    id: WorkloadId,
    new: WorkloadRecord,
    admission: Option<AdmissionSpec>,
) {
    let old = state.workloads.at(id);
    let is_another = old.uid != new.uid;
    let (class_changed, before) = (old.class != new.class, old.priority);
    let (class, priority) = (new.class, new.priority);
    let priority_changed = new.has_priority_class && priority != before;
    state.workloads.update_reserving(id, new);
    replace_class(&mut state.workloads, &mut state.topology, id, class);
    let Some(current) = state.workloads.admission(id) else {
        return;
    };
    let queue = current.queue;
    state.queues.change_priority(queue, before, priority);
    let observed = admission
        .map(|observed| complete(&state.workloads, &mut state.topology, id, (current, observed)));
    if let Some(admission) = observed
        && current.pod_sets != admission.pod_sets
    {
        let evicted = current.evicted || admission.evicted;
        // The entry penalty stays until the Workload is admitted or loses its quota.
        release_usage(state, id);
        reserve(state, id, AdmissionSpec { evicted, ..admission });
    } else {
        // Upstream releases and charges every observed Workload, which shows where sums cannot be
        // counted.
        recharge(&mut state.quota, &state.workloads, &state.queues, id);
        if class_changed || is_another {
            state.queues.note_reserving_change(queue);
        }
        if priority_changed {
            // Other Workloads may be able to preempt it now.
            state.queues.requeue_cohort_tree(queue);
        }
    }
    crate::second_pass::needed::update(&mut state.workloads, &state.queues, id);
}

/// The observed admission, with the topology assignments that are decided and not observed yet.
fn complete(
    workloads: &WorkloadLayer,
    topology: &mut TopologyLayer,
    id: WorkloadId,
    (current, mut observed): (&AdmissionRecord, AdmissionSpec),
) -> AdmissionSpec {
    observed.pod_sets.iter_mut().for_each(PodSetAdmission::sort);
    let observed = workloads.second_passes().complete(id, current, observed);
    topology.node_failures_mut().complete(id, current, observed)
}

/// Replaces the class of a reserving Workload. Topology usage is charged per class, so that of the old class is
/// released first.
fn replace_class(
    workloads: &mut WorkloadLayer,
    topology: &mut TopologyLayer,
    id: WorkloadId,
    class: EquivalenceClassId,
) {
    if let Some(admission) = workloads.admission(id) {
        topology.release_admission(admission, workloads.class(id));
        topology.charge_admission(admission, workloads.class_at(class));
    }
    workloads.set_class(id, class);
}

pub(crate) fn unhealthy_nodes(
    settings: &EngineSettings,
    workloads: &WorkloadLayer,
    topology: &mut TopologyLayer,
    id: WorkloadId,
    hosts: Vec<TopologyNodeId>,
) {
    // Only the pods of a reserving Workload are on nodes.
    let holds = workloads.get(id).is_some_and(|one| one.admission.is_some());
    if holds && settings.tas_failed_node_replacement {
        let is_delayed = settings.node_replacement_delay > 0;
        topology.node_failures_mut().set(id, hosts.into(), is_delayed);
    }
}

pub(crate) fn workload_gone(state: &mut State, id: WorkloadId) {
    let affected = slice_changes::before_change(state, id, None);
    remove(state, id);
    slice_changes::after_change(state, id, &affected);
}

fn remove(state: &mut State, id: WorkloadId) {
    let Some(workload) = state.workloads.get(id) else {
        return;
    };
    let queue = workload.queue;
    state.topology.node_failures_mut().remove(id);
    state.workloads.set_variant_group(id, None);
    dequeue(&mut state.queues, &mut state.workloads, id);
    release_quota(state, id);
    if let Some(queue) = queue {
        state.queues.change_pending(queue, |pending| pending.clear_preemptor(id));
        state.queues.requeue_cohort_tree(queue);
    }
    // A what-if restores the Workload under its id, so the id stays in use.
    if state.workloads.remove(id) && !state.workloads.is_in_what_if() {
        state.names.workloads.forget(id);
    }
}

pub(crate) fn released(
    state: &mut State,
    id: WorkloadId,
    eligibility: QueueEligibility,
    queued_at: Time,
) {
    if state.workloads.get(id).is_none_or(|workload| workload.admission.is_none()) {
        return;
    }
    state.topology.node_failures_mut().remove(id);
    release_quota(state, id);
    state.workloads.set_eligibility(id, eligibility, queued_at);
    enqueue(&mut state.queues, &mut state.workloads, id);
}

/// What is written counts as observed; later observations are taken as they are.
pub(crate) fn written(workloads: &mut WorkloadLayer, topology: &mut TopologyLayer, id: WorkloadId) {
    workloads.second_passes_mut().written(id);
    topology.node_failures_mut().written(id);
}

/// Gives back a reservation that is not written, with the topology assignment of its second pass. A Workload that was put on hold
/// meanwhile, say, does not go back into its queue.
pub(crate) fn reservation_withdrawn(state: &mut State, id: WorkloadId) {
    let known = state.workloads.get(id).map(|one| (one.eligibility, one.queued_at));
    if let Some((eligibility, queued_at)) = known {
        released(state, id, eligibility, queued_at);
    }
}

/// The placer may have capacity for the Workloads that wait under `key`: they are requeued.
pub(crate) fn cluster_capacity(
    workloads: &mut WorkloadLayer,
    queues: &mut QueueLayer,
    key: crate::ids::RequeueKey,
) {
    for id in workloads.end_waits(key) {
        dequeue(queues, workloads, id);
        enqueue(queues, workloads, id);
    }
}
