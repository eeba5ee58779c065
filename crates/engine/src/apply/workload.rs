//! Events of Workloads: new, changed, released, deleted, and results of writes. Source: docs/reference/kueue.md §2.5.

use crate::equivalence_class::EquivalenceClass;
use crate::flavors::request_order;
use crate::ids::{EquivalenceClassId, TopologyNodeId, WorkloadId};
use crate::pending::{dequeue, enqueue, enqueue_active, replace};
use crate::reservations::{recharge, release_quota, reserve};
use crate::spec::{AdmissionSpec, PodSetAdmission, QueueEligibility, WorkloadSpec};
use crate::state::State;
use crate::time::Time;
use crate::workloads::record::{QueuePosition, WorkloadRecord};

pub(crate) fn workload(state: &mut State, id: WorkloadId, mut spec: WorkloadSpec) {
    request_order::sort_requests(&state.names, &mut spec.pod_sets);
    let replaced_slice =
        spec.replaced_slice.filter(|_| state.settings.elastic_jobs_via_workload_slices);
    let allowed = spec.allowed_flavors.filter(|_| state.settings.concurrent_admission);
    let allowed = allowed.map(Into::into);
    let class = EquivalenceClass {
        priority: spec.priority,
        pod_sets: spec.pod_sets,
        replaced_slice,
        allowed,
    };
    state.variant_groups.tell(id, spec.variant_of.as_deref());
    let class = state.classes.acquire(class);
    let new = WorkloadRecord {
        uid: spec.uid,
        namespace: spec.namespace,
        local_queue: spec.local_queue,
        queue: None,
        class,
        priority: spec.priority,
        has_priority_class: spec.has_priority_class,
        queued_at: spec.queued_at,
        eligibility: spec.eligibility,
        place: QueuePosition::Out,
        ticket: 0,
        hidden: false,
        preemption_gated: spec.preemption_gated,
        awaited_capacity: None,
        invalid: spec.invalid,
        checks: spec.checks.into(),
        scan: None,
        admission: None,
    };
    let mut awake = false;
    match state.workloads.get(id) {
        None => state.workloads.insert(id, new),
        Some(old) if old.admission.is_some() => {
            return update_reserving(state, id, new, spec.admission);
        }
        Some(old) if is_unchanged(old, &new) && spec.admission.is_none() => {
            return state.classes.release(class);
        }
        Some(_) => awake = replace(state, id, new, spec.admission.is_none()),
    }
    match spec.admission {
        Some(admission) => reserve(state, id, admission),
        None if awake => enqueue_active(state, id),
        None => enqueue(state, id),
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
    let old = state.workloads.at_mut(id);
    let changed = old.class != new.class;
    let (reserving_queue, before) = (old.admission.as_deref().map(|held| held.queue), old.priority);
    let reweighed = new.has_priority_class && new.priority != before;
    (old.priority, old.has_priority_class) = (new.priority, new.has_priority_class);
    (old.eligibility, old.queued_at) = (new.eligibility, new.queued_at);
    (old.local_queue, old.invalid, old.checks) = (new.local_queue, new.invalid, new.checks);
    old.preemption_gated = new.preemption_gated;
    if let Some(queue) = reserving_queue {
        let priorities = &mut state.queue_mut(queue).priorities;
        priorities.remove(before);
        priorities.add(new.priority);
    }
    replace_class(state, id, new.class);
    let Some(current) = state.workloads.at(id).admission.as_deref() else {
        return;
    };
    let queue = current.queue;
    let observed = admission.map(|mut observed| {
        observed.pod_sets.iter_mut().for_each(PodSetAdmission::sort);
        let observed = state.second_passes.complete(id, current, observed);
        state.node_failures.complete(id, current, observed)
    });
    if let Some(admission) = observed
        && current.pod_sets != admission.pod_sets
    {
        let evicted = current.evicted || admission.evicted;
        release_quota(state, id);
        reserve(state, id, AdmissionSpec { evicted, ..admission });
    } else {
        recharge(state, id);
        if changed {
            state.queue_mut(queue).generation += 1;
        }
        if reweighed {
            // Other Workloads may be able to preempt it now.
            state.requeue_cohort_tree(queue);
        }
    }
    crate::delayed_topology::update(state, id);
}

/// Replaces the class of a reserving Workload. Topology usage is charged per class, so that of the old class is
/// released first.
fn replace_class(state: &mut State, id: WorkloadId, class: EquivalenceClassId) {
    let workload = state.workloads.at_mut(id);
    let old = std::mem::replace(&mut workload.class, class);
    if let Some(admission) = workload.admission.as_deref() {
        state.topologies.release_admission(admission, &old, &state.classes);
        state.topologies.charge_admission(admission, &class, &state.classes);
    }
    state.classes.release(old);
}

pub(crate) fn unhealthy_nodes(state: &mut State, id: WorkloadId, hosts: Vec<TopologyNodeId>) {
    let holds = state.workloads.get(id).is_some_and(|one| one.admission.is_some());
    if holds && state.settings.tas_failed_node_replacement {
        state.node_failures.set(id, hosts.into());
    }
}

pub(crate) fn workload_gone(state: &mut State, id: WorkloadId) {
    let Some(workload) = state.workloads.get(id) else {
        return;
    };
    let queue = workload.queue;
    state.node_failures.remove(id);
    state.variant_groups.tell(id, None);
    dequeue(state, id);
    release_quota(state, id);
    if let Some(queue) = queue {
        state.queue_mut(queue).pending.clear_preemptor(id);
        state.requeue_cohort_tree(queue);
    }
    if let Some(workload) = state.workloads.remove(id) {
        state.classes.release(workload.class);
        if !state.workloads.is_watched() {
            state.names.workloads.forget(id);
        }
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
    state.node_failures.remove(id);
    release_quota(state, id);
    let workload = state.workloads.at_mut(id);
    (workload.eligibility, workload.queued_at) = (eligibility, queued_at);
    enqueue(state, id);
}

pub(crate) fn write_failed(state: &mut State, id: WorkloadId) {
    if crate::delayed_topology::roll_back(state, id) || crate::node_moves::roll_back(state, id) {
        return;
    }
    if state.workloads.get(id).is_some_and(|workload| workload.admission.is_some()) {
        let queued_at = state.workloads.at(id).queued_at;
        released(state, id, QueueEligibility::Eligible, queued_at);
    }
}

/// The placer may have capacity for the Workloads that wait under `key`: they are requeued.
pub(crate) fn cluster_capacity(state: &mut State, key: crate::ids::RequeueKey) {
    for id in state.workloads.end_waits(key) {
        dequeue(state, id);
        enqueue(state, id);
    }
}
