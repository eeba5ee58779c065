//! Keeps charges and pending queues right when claims between slices of elastic jobs change.
//!
//! Quota is charged to the replacement once it has a reservation, and to the older slice otherwise. Every change of a slice
//! checks the whole chain of replacements. Source: docs/reference/kueue.md §4.13.

use crate::ids::WorkloadId;
use crate::pending::{dequeue, enqueue};
use crate::reservations::usage_of;
use crate::slices::{claim_chain, replacement_slice};
use crate::spec::{QueueEligibility, WorkloadSpec};
use crate::state::State;
use crate::workloads::record::QueuePosition;
use crate::workloads::slice_replacements::AffectedSlices;

/// Called before a Workload changes or is removed (without a spec): removes its former claim. Returns the Workloads
/// that [`after_change`] has to check.
pub(crate) fn before_change(
    state: &mut State,
    id: WorkloadId,
    spec: Option<&WorkloadSpec>,
) -> AffectedSlices {
    let new = spec.and_then(|spec| spec.replaced_slice.as_deref());
    let new = new.filter(|_| state.settings.elastic_jobs_via_workload_slices);
    if state.slices.is_empty() && new.is_none() {
        return AffectedSlices::new();
    }
    let affected = claim_chain(state, id);
    if let Some(workload) = state.workloads.get(id)
        && let Some(old) = &state.classes.at(workload.class).replaced_slice
        && new != Some(old)
    {
        state.slices.remove(old, id);
    }
    affected
}

/// Called after a Workload changed or was removed: records its claim, and updates charges and pending queues of the
/// affected Workloads.
pub(crate) fn after_change(state: &mut State, id: WorkloadId, before: &AffectedSlices) {
    if let Some(workload) = state.workloads.get(id)
        && let Some(old) = &state.classes.at(workload.class).replaced_slice
    {
        state.slices.add(old, id);
    }
    if before.is_empty() && state.slices.is_empty() {
        return;
    }
    let after = claim_chain(state, id);
    for &one in before.iter().chain(&after) {
        update_charge(state, one);
        if *before != after {
            requeue_after_slice_change(state, one);
        }
    }
}

/// Updates charges and pending queues after a reservation.
pub(crate) fn reserved(state: &mut State, id: WorkloadId) {
    if state.slices.is_empty() {
        return;
    }
    update_charges(state, id);
    let name = state.names.workloads.name(id);
    let waiting: AffectedSlices = state.slices.of(name).collect();
    for one in waiting {
        requeue_after_slice_change(state, one);
    }
}

/// Updates charges after a release.
pub(crate) fn released(state: &mut State, id: WorkloadId) {
    if !state.slices.is_empty() {
        update_charges(state, id);
    }
}

/// Updates the charges of a whole chain of slices.
fn update_charges(state: &mut State, id: WorkloadId) {
    for one in claim_chain(state, id) {
        update_charge(state, one);
    }
}

/// Charges a reserving Workload for its admission, or for nothing if a replacement took it over.
fn update_charge(state: &mut State, id: WorkloadId) {
    let Some(admission) = state.workloads.get(id).and_then(|one| one.admission.as_deref()) else {
        return;
    };
    let (queue, charged) = (admission.queue, !admission.usage.is_empty());
    if replacement_slice(state, id).is_some() != charged {
        return;
    }
    let node = state.queue(queue).node;
    let workload = state.workloads.at_mut(id);
    let class = workload.class;
    let Some(mut admission) = workload.admission.take() else {
        return;
    };
    state.topologies.release_admission(&admission, &class, &state.classes);
    admission.taken_over = charged && state.settings.elastic_jobs_via_workload_slices_with_tas;
    state.topologies.charge_admission(&admission, &class, &state.classes);
    if charged {
        state.tree.uncharge(node, &admission.usage);
        admission.usage.clear();
        // The replacement may have less of a resource.
        state.requeue_cohort_tree(queue);
    } else {
        admission.usage = usage_of(state, &admission.pod_sets);
        state.tree.charge(node, &admission.usage);
    }
    state.workloads.at_mut(id).admission = Some(admission);
    state.queue_mut(queue).generation += 1;
}

/// Requeues an inadmissible replacement whose old slice changed.
fn requeue_after_slice_change(state: &mut State, id: WorkloadId) {
    let waits = state.workloads.get(id).is_some_and(|one| {
        matches!(one.place, QueuePosition::Inadmissible { .. })
            && one.eligibility == QueueEligibility::Eligible
            && one.awaited_capacity.is_none()
    });
    if waits {
        dequeue(state, id);
        enqueue(state, id);
    }
}
