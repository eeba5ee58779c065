//! Moves Workloads into and out of pending queues, and keeps queue positions when Workloads change.
//!
//! Source: docs/reference/kueue.md §2.5, §3.4.

use crate::ids::{EquivalenceClassId, QueueId, WorkloadId};
use crate::queues::pending_queue::PendingQueue;
use crate::spec::{LocalQueueSpec, QueueEligibility};
use crate::state::State;
use crate::workloads::record::{QueuePosition, WorkloadRecord};
use crate::workloads::table::WorkloadTable;

/// The ClusterQueue of a LocalQueue; `None` while the LocalQueue is stopped.
pub(crate) fn target(spec: &LocalQueueSpec) -> Option<QueueId> {
    (!spec.stopped).then_some(spec.queue)
}

/// Removes a pending Workload from its pending queue.
pub(crate) fn dequeue(state: &mut State, id: WorkloadId) {
    let Some(queue) = state.workloads.at(id).queue else {
        return;
    };
    if matches!(
        state.workloads.at(id).place,
        QueuePosition::Pending { .. } | QueuePosition::Inadmissible { .. }
    ) {
        let pending =
            &mut state.queues[queue.index()].as_mut().expect("invariant: known queue").pending;
        pending.remove(id, &mut state.workloads);
    }
}

/// Removes a pending Workload from its ClusterQueue, with its preemptor mark.
pub(crate) fn leave_queue(state: &mut State, id: WorkloadId) {
    dequeue(state, id);
    if let Some(queue) = state.workloads.at(id).queue {
        state.queue_mut(queue).pending.clear_preemptor(id);
    }
}

/// Queues a Workload without quota.
pub(crate) fn enqueue(state: &mut State, id: WorkloadId) {
    push_pending(state, id, PendingQueue::push);
}

/// Queues a Workload as active even if its class is inadmissible. Upstream checks for an inadmissible class only when
/// a Workload is added that was not active.
pub(crate) fn enqueue_active(state: &mut State, id: WorkloadId) {
    push_pending(state, id, PendingQueue::push_active);
}

fn push_pending(
    state: &mut State,
    id: WorkloadId,
    push: fn(&mut PendingQueue, WorkloadId, &mut WorkloadTable),
) {
    let workload = state.workloads.at(id);
    let local = workload.local_queue.and_then(|one| state.local_queues.get(one.index()));
    let queue = local.and_then(Option::as_ref).and_then(target);
    let eligibility = workload.eligibility;
    state.workloads.at_mut(id).queue = queue;
    let Some(queue) = queue else { return };
    let pending =
        &mut state.queues[queue.index()].as_mut().expect("invariant: known queue").pending;
    match eligibility {
        QueueEligibility::Eligible => push(pending, id, &mut state.workloads),
        QueueEligibility::AwaitsRequeue => pending.push_inadmissible(id, &mut state.workloads),
        QueueEligibility::Excluded => return,
    }
    state.list_if_head(queue);
}

/// Replaces a pending Workload that changed. In the same ClusterQueue it keeps the preemptor mark and, if it requests
/// the same, the progress of its flavor scan. Returns whether it was active.
pub(crate) fn replace(
    state: &mut State,
    id: WorkloadId,
    new: WorkloadRecord,
    pending: bool,
) -> bool {
    let old = state.workloads.at(id);
    let stays = pending
        && old.local_queue == new.local_queue
        && new.eligibility != QueueEligibility::Excluded;
    let awake = stays && old.queue.is_some_and(|queue| state.queue(queue).pending.is_active(old));
    if stays {
        dequeue(state, id);
    } else {
        leave_queue(state, id);
    }
    let goes_on = stays && keeps_scan_progress(state, id, new.class);
    alter_preemptor(state, id, new.class);
    let old = state.workloads.at_mut(id);
    let (old_class, scan) = (old.class, old.scan.take());
    state.workloads.insert(id, WorkloadRecord { scan: scan.filter(|_| goes_on), ..new });
    state.classes.release(old_class);
    awake
}

/// Whether an update keeps the progress of the flavor scan. Without the gate FlavorFungibilityPreserveScanProgress it never
/// does; with it, unless the equivalence class changes. Without SchedulingEquivalenceHashing classes do not count.
fn keeps_scan_progress(state: &State, id: WorkloadId, class: EquivalenceClassId) -> bool {
    let same =
        state.workloads.at(id).class == class || !state.settings.scheduling_equivalence_hashing;
    same && state.settings.flavor_fungibility_preserve_scan_progress
}

/// Notes that the preemptor's requests changed. Upstream compares the generation of the object, which finished pods
/// do not change.
fn alter_preemptor(state: &mut State, id: WorkloadId, class: EquivalenceClassId) {
    let old = state.workloads.at(id);
    let Some(queue) = old.queue.filter(|&queue| state.queue(queue).pending.is_preemptor(id)) else {
        return;
    };
    let (old, new) = (state.classes.at(old.class), state.classes.at(class));
    if !old.is_same_but_for_finished_pods(new) {
        state.queue_mut(queue).pending.alter_preemptor(id);
    }
}
