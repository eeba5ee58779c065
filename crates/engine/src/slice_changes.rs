//! Keeps charges and pending queues right when claims between slices of elastic jobs change.
//!
//! Quota is charged to the replacement once it has a reservation, and to the older slice otherwise; an evicted slice is charged in
//! any case. Every change of a slice checks the whole chain of replacements. Source: docs/reference/kueue.md §4.13.

use crate::ids::WorkloadId;
use crate::pending::{dequeue, enqueue};
use crate::queues::layer::QueueLayer;
use crate::reservations::{requeue_users_of_domains, usage_of};
use crate::slices::SliceClaims;
use crate::spec::{QueueEligibility, WorkloadInfo};
use crate::state::State;
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::record::QueuePosition;
use crate::workloads::slice_replacements::AffectedSlices;
use crate::workloads::usage::SlotUsage;

/// Called before a Workload changes or is removed (without a spec): removes its former claim. Returns the Workloads
/// that [`after_change`] has to check.
pub(crate) fn before_change(
    state: &mut State,
    id: WorkloadId,
    spec: Option<&WorkloadInfo>,
) -> AffectedSlices {
    let new = spec.and_then(|spec| spec.replaced_slice.as_deref());
    let new = new.filter(|_| state.settings.elastic_jobs_via_workload_slices);
    if !state.workloads.has_claims() && new.is_none() {
        return AffectedSlices::new();
    }
    let affected = SliceClaims::new(&state.names, &state.workloads).claim_chain(id);
    // Before the change, because the former claim is read from the former class.
    state.workloads.remove_claim(id, new);
    affected
}

/// Called after a Workload changed or was removed: records its claim, and updates charges and pending queues of the
/// affected Workloads.
pub(crate) fn after_change(state: &mut State, id: WorkloadId, before: &AffectedSlices) {
    state.workloads.add_claim(id);
    if before.is_empty() && !state.workloads.has_claims() {
        return;
    }
    let after = SliceClaims::new(&state.names, &state.workloads).claim_chain(id);
    for &one in before.iter().chain(&after) {
        update_charge(state, one);
        // Only a replacement that replaces another slice now may fit better than before.
        if *before != after {
            requeue_after_slice_change(&mut state.workloads, &mut state.queues, one);
        }
    }
}

/// Updates charges and pending queues after a reservation.
pub(crate) fn reserved(state: &mut State, id: WorkloadId) {
    if !state.workloads.has_claims() {
        return;
    }
    update_charges(state, id);
    let name = state.names.workloads.name(id);
    let waiting: AffectedSlices = state.workloads.claims_on(name).collect();
    // Their requests are charged beyond this reservation now, so they may fit.
    for one in waiting {
        requeue_after_slice_change(&mut state.workloads, &mut state.queues, one);
    }
}

/// Updates charges after a release.
pub(crate) fn released(state: &mut State, id: WorkloadId) {
    if state.workloads.has_claims() {
        update_charges(state, id);
    }
}

/// Updates the charge of a slice that is evicted now.
pub(crate) fn evicted(state: &mut State, id: WorkloadId) {
    if state.workloads.has_claims() {
        update_charge(state, id);
    }
}

/// Updates the charges of a whole chain of slices.
fn update_charges(state: &mut State, id: WorkloadId) {
    for one in SliceClaims::new(&state.names, &state.workloads).claim_chain(id) {
        update_charge(state, one);
    }
}

/// Charges a reserving Workload for its admission, or for nothing if a replacement took it over.
fn update_charge(state: &mut State, id: WorkloadId) {
    let Some(admission) = state.workloads.admission(id) else {
        return;
    };
    let (queue, charged) = (admission.queue, !admission.usage.is_empty());
    // Charged in full without a replacement, and not at all with one: nothing to change.
    let claims = SliceClaims::new(&state.names, &state.workloads);
    if claims.quota_successor(id).is_some() != charged {
        return;
    }
    let usage =
        if charged { SlotUsage::new() } else { usage_of(&mut state.quota, &admission.pod_sets) };
    let taken_over = charged && state.settings.elastic_jobs_via_workload_slices_with_tas;
    let State { settings, workloads, quota, topology, queues, .. } = state;
    let node = queues.at(queue).node;
    if let Some(before) = workloads.admission(id) {
        topology.release_admission(before, workloads.class(id));
        quota.uncharge(node, &before.usage);
        if taken_over {
            // The replacement may have fewer domains.
            requeue_users_of_domains(settings, topology, queues, before);
        }
    }
    workloads.set_charge(id, usage, taken_over);
    if let Some(after) = workloads.admission(id) {
        topology.charge_admission(after, workloads.class(id));
        quota.charge(node, &after.usage);
    }
    queues.note_reserving_change(queue);
    if charged {
        // The replacement may have less of a resource.
        queues.requeue_cohort_tree(queue);
    }
}

/// Requeues an inadmissible replacement whose old slice changed.
fn requeue_after_slice_change(
    workloads: &mut WorkloadLayer,
    queues: &mut QueueLayer,
    id: WorkloadId,
) {
    let is_inadmissible = workloads.get(id).is_some_and(|workload| {
        matches!(workload.position, QueuePosition::Inadmissible { .. })
            && workload.eligibility == QueueEligibility::Eligible
            && workload.awaited_capacity.is_none()
    });
    if is_inadmissible {
        dequeue(queues, workloads, id);
        enqueue(queues, workloads, id);
    }
}
