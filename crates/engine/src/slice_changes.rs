//! Keeps charges and pending queues right when claims between slices of elastic jobs change.
//!
//! Quota is charged to the replacement once it has a reservation, and to the older slice otherwise. Every change of a slice
//! checks the whole chain of replacements. Source: docs/reference/kueue.md §4.13.

use crate::ids::WorkloadId;
use crate::pending::{dequeue, enqueue};
use crate::reservations::usage_of;
use crate::slices::{chain, replacement_slice};
use crate::spec::{QueueEligibility, WorkloadSpec};
use crate::state::State;
use crate::workloads::record::QueuePosition;
use crate::workloads::slice_replacements::AffectedSlices;

/// Before a Workload is told, or gone (without a spec): forgets whom it replaced, if that is another now. Returns what
/// [`told`] has to know.
pub(crate) fn telling(
    state: &mut State,
    id: WorkloadId,
    spec: Option<&WorkloadSpec>,
) -> AffectedSlices {
    let new = spec.and_then(|spec| spec.replaced_slice.as_deref());
    let new = new.filter(|_| state.settings.elastic_jobs_via_workload_slices);
    if state.slices.is_empty() && new.is_none() {
        return AffectedSlices::new();
    }
    let touched = chain(state, id);
    if let Some(workload) = state.workloads.get(id)
        && let Some(old) = &state.classes.at(workload.class).replaced_slice
        && new != Some(old)
    {
        state.slices.remove(old, id);
    }
    touched
}

/// After a Workload was told, or is gone: notes whom it replaces, and brings up to date whoever that concerns.
pub(crate) fn told(state: &mut State, id: WorkloadId, before: &AffectedSlices) {
    if let Some(workload) = state.workloads.get(id)
        && let Some(old) = &state.classes.at(workload.class).replaced_slice
    {
        state.slices.add(old, id);
    }
    if before.is_empty() && state.slices.is_empty() {
        return;
    }
    let after = chain(state, id);
    for &one in before.iter().chain(&after) {
        settle(state, one);
        if *before != after {
            requeue_after_slice_change(state, one);
        }
    }
}

/// A Workload holds quota now.
pub(crate) fn started(state: &mut State, id: WorkloadId) {
    if state.slices.is_empty() {
        return;
    }
    settle_all(state, id);
    let name = state.names.workloads.name(id);
    let waiting: AffectedSlices = state.slices.of(name).collect();
    for one in waiting {
        requeue_after_slice_change(state, one);
    }
}

/// A Workload holds quota no more.
pub(crate) fn ended(state: &mut State, id: WorkloadId) {
    if !state.slices.is_empty() {
        settle_all(state, id);
    }
}

/// Everybody whose quota may be another's since a Workload holds quota, or none.
fn settle_all(state: &mut State, id: WorkloadId) {
    for one in chain(state, id) {
        settle(state, one);
    }
}

/// Charges a holder for what it holds, or for nothing if another took that over.
fn settle(state: &mut State, id: WorkloadId) {
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
        // The replacement may have less of something.
        state.requeue_cohort_tree(queue);
    } else {
        admission.usage = usage_of(state, &admission.pod_sets);
        state.tree.charge(node, &admission.usage);
    }
    state.workloads.at_mut(id).admission = Some(admission);
    state.queue_mut(queue).generation += 1;
}

/// A replacement that was refused gets another turn, for the one that it replaces is not what it was.
fn requeue_after_slice_change(state: &mut State, id: WorkloadId) {
    let waits = state.workloads.get(id).is_some_and(|one| {
        matches!(one.place, QueuePosition::Inadmissible { .. })
            && one.eligibility == QueueEligibility::Eligible
            && one.wake.is_none()
    });
    if waits {
        dequeue(state, id);
        enqueue(state, id);
    }
}
