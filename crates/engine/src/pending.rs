//! Moves Workloads into and out of pending queues, and keeps queue positions when Workloads change.
//!
//! Source: docs/reference/kueue.md §2.5, §3.4.

use crate::ids::{EquivalenceClassId, QueueId, WorkloadId};
use crate::queues::layer::QueueLayer;
use crate::queues::pending_queue::PendingQueue;
use crate::settings::EngineSettings;
use crate::spec::{LocalQueueInfo, QueueEligibility};
use crate::state::State;
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::record::{QueuePosition, ScanProgress, WorkloadRecord};

/// The ClusterQueue of a LocalQueue; `None` while the LocalQueue is stopped.
pub(crate) fn target(spec: &LocalQueueInfo) -> Option<QueueId> {
    (!spec.stopped).then_some(spec.queue)
}

/// Removes a pending Workload from its pending queue.
pub(crate) fn dequeue(queues: &mut QueueLayer, workloads: &mut WorkloadLayer, id: WorkloadId) {
    let workload = workloads.at(id);
    let Some(queue) = workload.queue else {
        return;
    };
    if matches!(
        workload.position,
        QueuePosition::Pending { .. } | QueuePosition::Inadmissible { .. }
    ) {
        queues.change_pending(queue, |pending| pending.remove(id, workloads));
    }
}

/// Removes a pending Workload from its ClusterQueue, with its preemptor mark.
pub(crate) fn leave_queue(queues: &mut QueueLayer, workloads: &mut WorkloadLayer, id: WorkloadId) {
    dequeue(queues, workloads, id);
    if let Some(queue) = workloads.at(id).queue {
        queues.change_pending(queue, |pending| pending.clear_preemptor(id));
    }
}

/// Queues a Workload without quota.
pub(crate) fn enqueue(queues: &mut QueueLayer, workloads: &mut WorkloadLayer, id: WorkloadId) {
    push_pending(queues, workloads, id, PendingQueue::push);
}

/// Queues a Workload as active even if its class is inadmissible. Upstream checks for an inadmissible class only when
/// a Workload is added that was not active.
pub(crate) fn enqueue_active(
    queues: &mut QueueLayer,
    workloads: &mut WorkloadLayer,
    id: WorkloadId,
) {
    push_pending(queues, workloads, id, PendingQueue::push_active);
}

fn push_pending(
    queues: &mut QueueLayer,
    workloads: &mut WorkloadLayer,
    id: WorkloadId,
    push: fn(&mut PendingQueue, WorkloadId, &mut WorkloadLayer),
) {
    let workload = workloads.at(id);
    let local = workload.local_queue.and_then(|one| queues.local_queue(one));
    // A Workload of a missing or stopped LocalQueue is in no pending queue (§3.1).
    let queue = local.and_then(target);
    let eligibility = workload.eligibility;
    workloads.set_queue(id, queue);
    let Some(queue) = queue else { return };
    queues.change_pending(queue, |pending| match eligibility {
        QueueEligibility::Eligible => push(pending, id, workloads),
        QueueEligibility::AwaitsRequeue => pending.push_inadmissible(id, workloads),
        QueueEligibility::Excluded => {}
    });
}

/// Replaces a pending Workload that changed. In the same ClusterQueue it keeps the preemptor mark and, if it requests
/// the same, the progress of its flavor scan. Returns whether it was active.
pub(crate) fn replace(
    state: &mut State,
    id: WorkloadId,
    new: WorkloadRecord,
    pending: bool,
) -> bool {
    let State { settings, queues, workloads, .. } = state;
    let old = workloads.at(id);
    // A Workload that moves to another ClusterQueue, or leaves its queue, starts there without
    // marks.
    let stays = pending
        && old.local_queue == new.local_queue
        && new.eligibility != QueueEligibility::Excluded;
    let was_active =
        stays && old.queue.is_some_and(|queue| queues.at(queue).pending.is_active(old));
    if stays {
        dequeue(queues, workloads, id);
    } else {
        leave_queue(queues, workloads, id);
    }
    let scan_progress = if stays && keeps_scan_progress(settings, workloads.at(id), new.class) {
        ScanProgress::Kept
    } else {
        ScanProgress::Dropped
    };
    alter_preemptor(queues, workloads, id, new.class);
    workloads.replace(id, new, scan_progress);
    was_active
}

/// Whether an update keeps the progress of the flavor scan. Without the gate FlavorFungibilityPreserveScanProgress it never
/// does; with it, unless the equivalence class changes. Without SchedulingEquivalenceHashing classes do not count.
fn keeps_scan_progress(
    settings: &EngineSettings,
    old: &WorkloadRecord,
    class: EquivalenceClassId,
) -> bool {
    let same = old.class == class || !settings.scheduling_equivalence_hashing;
    same && settings.flavor_fungibility_preserve_scan_progress
}

/// Notes that the preemptor's requests changed. Upstream compares the generation of the object, which finished pods
/// do not change.
fn alter_preemptor(
    queues: &mut QueueLayer,
    workloads: &WorkloadLayer,
    id: WorkloadId,
    class: EquivalenceClassId,
) {
    let Some(queue) = workloads.at(id).queue else { return };
    let is_preemptor = queues.at(queue).pending.is_preemptor(id);
    if is_preemptor && !workloads.class(id).is_same_but_for_finished_pods(workloads.class_at(class))
    {
        queues.change_pending(queue, |pending| pending.alter_preemptor(id));
    }
}
