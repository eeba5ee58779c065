//! From recording to the end: only the recorded cluster runs the Workload.
//!
//! Only copies with the recorded epoch are adopted. Other copies are removed, and so is a clone whose spec differs
//! from the hub's Workload. A recorded cluster without a clone sets the check to Retry. Source:
//! docs/reference/dispatch.md §5-6, docs/reference/multikueue.md §2.3.

use engine::Time;

use super::{
    DispatchStep, RemoteConnection, RemoteCopy, RemoteJob, RemoteWorkload, RetryReason,
    SlicePredecessor, StampState,
    dispatch_view::{DispatchView, with_deadline},
    nomination, removal,
};

/// Finished reason of a clone whose job differs from it. One of `crds::names::reasons`, on the wire.
const OUT_OF_SYNC: &str = "OutOfSync";

/// Finished reason of a clone without its job. One of `crds::names::reasons`, on the wire.
const OWNER_NOT_FOUND: &str = "OwnerNotFound";

/// Finished reason of the clone of a slice that another one replaces. One of `crds::names::reasons`, on the wire.
const SLICE_REPLACED: &str = "WorkloadSliceReplaced";

/// Steps of a Workload with a recorded cluster.
pub(super) fn follow_recorded(view: &DispatchView<'_>) -> Vec<DispatchStep> {
    let Some(cluster) = view.hub.recorded_cluster else {
        return record_again(view);
    };
    let mut steps =
        removal::removals(view, view.copies.iter().filter(|copy| copy.cluster != cluster));
    steps.extend(view.copy(cluster).map(|copy| follow(view, copy)).unwrap_or_default());
    steps
}

/// Steps of a Workload that has a Ready check and names no cluster: a client has cleared the field, or a manager without that
/// field has dispatched the Workload. It is recorded where it is admitted (docs/reference/multikueue.md §2.3 step 6b).
fn record_again(view: &DispatchView<'_>) -> Vec<DispatchStep> {
    // A cluster that is not reached may run it.
    let hidden = view
        .copies
        .iter()
        .filter(|copy| copy.connection != RemoteConnection::Connected && !view.is_lost(copy));
    if hidden.clone().next().is_some() {
        return with_deadline(Vec::new(), hidden.filter_map(|copy| view.loss_deadline(copy)));
    }
    let all: Vec<&RemoteCopy> = view.copies.iter().collect();
    let with_job: Vec<&RemoteCopy> = view.copies.iter().filter(|copy| view.has_job(copy)).collect();
    // A clone without a job may be left from the race that the other cluster has won.
    match nomination::winner(view, &with_job).or_else(|| nomination::winner(view, &all)) {
        Some(winner) => nomination::record_alone(view, winner, |_| true),
        None => vec![DispatchStep::SetCheckRetry(RetryReason::NoClusterRecorded)],
    }
}

/// Steps of a Workload with a recorded cluster and a check that is not Ready: its ClusterQueue has another check by now, or none, or a
/// client has set the state. The work goes on where it runs, and the check becomes Ready again (docs/reference/multikueue.md
/// §2.3 step 6b).
pub(super) fn follow_unready(view: &DispatchView<'_>) -> Vec<DispatchStep> {
    let copy = view.hub.recorded_cluster.and_then(|cluster| view.copy(cluster));
    let runs = |copy: &&RemoteCopy| {
        view.living_clone(copy).is_some() && nomination::admitted_at(view, copy).is_some()
    };
    let ready = copy.filter(runs).filter(|_| !view.hub.awaits_other_checks);
    let ready = ready.map(|copy| DispatchStep::SetCheckReady(copy.cluster));
    ready.into_iter().chain(follow_recorded(view)).collect()
}

fn follow(view: &DispatchView<'_>, copy: &RemoteCopy) -> Vec<DispatchStep> {
    match copy.connection {
        // A clone that is not listed yet must not count as missing.
        RemoteConnection::NotSynced { .. } | RemoteConnection::Disconnected { .. }
            if !view.is_lost(copy) =>
        {
            with_deadline(Vec::new(), view.loss_deadline(copy))
        }
        RemoteConnection::NotSynced { .. } | RemoteConnection::Disconnected { .. } => {
            vec![DispatchStep::SetCheckRetry(RetryReason::RemoteLost)]
        }
        RemoteConnection::Connected => {
            let steps = follow_live(view, copy).into_iter().collect();
            let timeouts = start_deadline(view, copy).into_iter().chain(end_deadline(view, copy));
            let due = timeouts.chain(view.hub.drained_at);
            with_deadline(steps, due.filter(|due| view.now < *due))
        }
    }
}

fn follow_live(view: &DispatchView<'_>, copy: &RemoteCopy) -> Option<DispatchStep> {
    let Some(clone) = &copy.clone else {
        return Some(DispatchStep::SetCheckRetry(RetryReason::RemoteMissing));
    };
    // A copy of another epoch is removed, never adopted (docs/reference/dispatch.md §6).
    if view.has_stale_job(copy) || !view.carries(clone.epoch, clone.history) {
        return removal::removal(view, copy);
    }
    // Nothing more comes of it, and a finalizer may keep it for ever.
    if clone.deleting {
        return Some(DispatchStep::SetCheckRetry(RetryReason::RemoteMissing));
    }
    match &clone.finished {
        // OutOfSync is no result of the job: the Workload is dispatched again and does not
        // finish (docs/reference/multikueue.md §2.3 step 3).
        Some((reason, _)) if **reason == *OUT_OF_SYNC => {
            Some(DispatchStep::SetCheckRetry(RetryReason::OutOfSync(copy.cluster)))
        }
        // Nor is OwnerNotFound. The worker may take a job for missing that is there.
        Some((reason, _)) if **reason == *OWNER_NOT_FOUND && is_to_run(view, copy) => {
            Some(DispatchStep::SetCheckRetry(RetryReason::OwnerNotFound(copy.cluster)))
        }
        // The jobs run on until the later slice takes them over.
        Some((reason, _)) if **reason == *SLICE_REPLACED && view.hub.has_successor => {
            run(view, copy, clone)
        }
        // That slice was withdrawn again. Without its clone the job has no Workload on the worker.
        Some((reason, _)) if **reason == *SLICE_REPLACED => {
            Some(DispatchStep::SetCheckRetry(RetryReason::RemoteMissing))
        }
        Some((reason, message)) => finish(view, copy, clone, (reason, message)),
        // Its eviction says why the worker has deactivated it (docs/reference/multikueue.md §2.3 step 4b, before step 5).
        None if !clone.same_spec && !clone.evicted => removal::removal(view, copy),
        None => run(view, copy, clone),
    }
}

/// Whether jobs of the hub have not ended, and no copy of the cluster has an end for them.
fn is_to_run(view: &DispatchView<'_>, copy: &RemoteCopy) -> bool {
    let job = &view.hub.job;
    let mut copies = copy.jobs.iter();
    // An end that the hub does not store is one all the same.
    job.exists
        && !job.ended
        && !copies.any(|job| job.finished && (!job.status_synced || job.end_refused))
}

/// Copies the final status before finishing the Workload on the hub. If a clone finished for a reason other than
/// the end of its job, the job never ends and is not waited for. Nor is a copy that was deleted on the worker, or an end that
/// the hub's API server does not take: the end of the job is not invented, and the step says that it stays open. A copy may
/// be there as long as its create has no answer: it is read first, unless the worker refuses that for too long.
fn finish(
    view: &DispatchView<'_>,
    copy: &RemoteCopy,
    clone: &RemoteWorkload,
    (reason, message): (&str, &str),
) -> Option<DispatchStep> {
    let job_ends = clone.job_ended();
    let mut jobs = copy.jobs.iter();
    let status_copied = jobs.all(|job| job.status_synced && (job.finished || !job_ends));
    let is_late = end_deadline(view, copy).is_some_and(|deadline| view.now >= deadline);
    let may_exist = copy.awaits_end() && !is_late;
    if status_copied && !may_exist || !view.hub.job.exists {
        let lacks_end = copy.missing_job || copy.jobs.iter().any(|job| job.end_refused);
        let without_end = (view.hub.job.open && lacks_end).then_some(copy.cluster);
        let (reason, message) = (reason.into(), message.into());
        return Some(DispatchStep::Finish { reason, message, without_end });
    }
    sync(view, copy)
}

fn run(view: &DispatchView<'_>, copy: &RemoteCopy, clone: &RemoteWorkload) -> Option<DispatchStep> {
    // With a Ready check an eviction on the worker evicts here as well
    // (docs/reference/multikueue.md §2.3 step 4b).
    if clone.evicted || clone.refused.is_some() || clone.stamp == StampState::Ended {
        return Some(DispatchStep::SetCheckRetry(RetryReason::EvictedOnWorker(copy.cluster)));
    }
    // A member that a user deletes ends where it runs. One that takes long to end holds up no other.
    let outlives = |job: &RemoteJob| job.abandoned && !job.deleting && !job.finished;
    if copy.jobs.iter().any(|job| outlives(job) && view.carries(job.epoch, job.history)) {
        return Some(DispatchStep::DeleteMembers(copy.cluster));
    }
    if copy.jobs.iter().any(|job| job.deleting && !job.abandoned) {
        return None;
    }
    if view.hub.drained_at.is_some_and(|deadline| view.now >= deadline) {
        return Some(DispatchStep::SetCheckRetry(RetryReason::Drained(copy.cluster)));
    }
    if start_deadline(view, copy).is_some_and(|deadline| view.now >= deadline) {
        return Some(DispatchStep::SetCheckRetry(RetryReason::NotStarted(copy.cluster)));
    }
    // Until the earlier slice is over, its jobs run.
    if !copy.missing_job || view.hub.predecessor != SlicePredecessor::Absent {
        return sync(view, copy);
    }
    // A status was copied before, so the remote job existed and was deleted on the worker
    // (docs/reference/multikueue.md §2.12). A group gets further members while it runs.
    if copy.jobs.is_empty() && view.hub.job.started {
        return Some(DispatchStep::SetCheckRetry(RetryReason::RemoteMissing));
    }
    if copy.refused.is_some() {
        return Some(DispatchStep::SetCheckRetry(RetryReason::RefusedByWorker(copy.cluster)));
    }
    // The name of a replacement may be held for long, while the other members of its group run.
    if let Some(sync) = sync(view, copy).filter(|_| copy.name_held) {
        return Some(sync);
    }
    // After a race between several clusters the jobs are created only now
    // (docs/reference/dispatch.md §5).
    copy.creates_answered.then_some(DispatchStep::CreateJobs(copy.cluster))
}

/// Until when a worker that has admitted the Workload may leave its job suspended, or without an answer to its create: its
/// Kueue or agent may be dead while its API server answers (docs/reference/dispatch.md §7).
fn start_deadline(view: &DispatchView<'_>, copy: &RemoteCopy) -> Option<Time> {
    let since = view.hub.start_awaited_since.filter(|_| copy.awaits_start(&view.hub.job))?;
    Some(Time(since.0.saturating_add(view.settings.start_timeout)))
}

/// Until when a finished clone may wait for the answer to a create of its job: the worker may refuse every read, or the lease
/// that the read follows, for ever.
fn end_deadline(view: &DispatchView<'_>, copy: &RemoteCopy) -> Option<Time> {
    let since = view.hub.end_awaited_since.filter(|_| copy.awaits_end())?;
    Some(Time(since.0.saturating_add(view.settings.start_timeout)))
}

/// Copies a status that the hub's job does not have yet. The API refuses the status of a suspended Job: it is
/// resumed first.
fn sync(view: &DispatchView<'_>, copy: &RemoteCopy) -> Option<DispatchStep> {
    let has_new_status = copy.jobs.iter().any(|job| !job.status_synced);
    let accepts_status = view.hub.job.exists && !view.hub.job.suspended;
    (has_new_status && accepts_status).then_some(DispatchStep::SyncStatus(copy.cluster))
}
