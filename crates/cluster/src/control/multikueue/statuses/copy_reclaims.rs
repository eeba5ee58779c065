//! Reclaimable pods of a Workload that was dispatched before (docs/reference/dispatch.md §5).
//!
//! The hub's Job may show the counts of an earlier copy, so its own counts do not say which pods have ended. Those of the present
//! copy on the recorded cluster do. Nothing is reclaimed by the counts of a copy of another epoch or of another Workload, or of
//! one that the hub does not observe: a Job that was made again may find the copy of the earlier one under its name.

use ::jobs::{JobObject, reconcile::reclaimable_pods_of_copy};
use dispatch::{
    CopyHistory, Fleet,
    workload::{DispatchCheckState, LocalWorkload, RemoteConnection, RemoteCopy, RemoteJob},
};

use crate::control::{
    job_key::JobKey,
    multikueue::{
        dispatch_effect::DispatchEffect, view::evaluated_workload::EvaluatedWorkload,
        workers::worker::Worker,
    },
};

/// The reclaimable pods of a Workload, when the hub's Job shows the status that they follow from.
pub(crate) fn reclaim(
    workload: EvaluatedWorkload<'_>,
    fleet: &Fleet,
    hub: &LocalWorkload,
    copies: &[RemoteCopy],
) -> Option<DispatchEffect> {
    let recorded = copies.iter().find(|copy| Some(copy.cluster) == hub.recorded_cluster)?;
    let runs = hub.exists && !hub.evicted && !hub.finished;
    let follows = runs
        && hub.check == DispatchCheckState::Ready
        && recorded.connection == RemoteConnection::Connected
        && !recorded.missing_job
        && recorded.jobs.iter().all(|job| is_present(job, hub));
    let worker = workload.worker(recorded.cluster, fleet).filter(|_| follows)?;
    let record = workload.record()?;
    let pods = workload.hub_jobs().into_iter().find_map(|(key, job)| {
        let copy = own_copy(workload, key, worker)?;
        reclaimable_pods_of_copy(job, copy, record.object(), workload.jobs.gates())
    })?;
    Some(DispatchEffect::Reclaim(pods))
}

/// The copy under the name of a job; `None` if it belongs to another Workload.
fn own_copy<'w>(
    workload: EvaluatedWorkload<'_>,
    key: &JobKey,
    worker: &'w Worker,
) -> Option<&'w JobObject> {
    let copy = worker.jobs.get(key)?.object();
    let is_named = worker.clone_of(key) == Some(workload.key);
    // The copy of an elastic job may still name an earlier slice.
    let is_own = is_named || workload.heirs().heir(key, copy, worker) == Some(workload.key);
    is_own.then_some(&**copy)
}

/// Whether a copy is of the present dispatch, runs, and has no status that is not copied yet.
fn is_present(job: &RemoteJob, hub: &LocalWorkload) -> bool {
    let is_own = job.epoch == hub.epoch && job.history == CopyHistory::Known;
    is_own && job.status_synced && !job.deleting && !job.finished
}
