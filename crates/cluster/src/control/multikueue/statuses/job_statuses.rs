//! The status of the hub's jobs, as that of their copies on a worker, or without any.

use std::sync::Arc;

use ::jobs::{GenericJob, JobObject};
use jiff::Timestamp;

use super::status_sync::{StatusNews, StatusSyncThrottle};
use crate::control::{
    context::Context,
    job_key::JobKey,
    jobs::JobChange,
    multikueue::{
        dispatch_effect::DispatchEffect,
        view::{evaluated_workload::EvaluatedWorkload, hub_jobs::observed_jobs},
        workers::worker::Worker,
    },
    outbox::{Purpose, Target},
    timers::Reevaluation,
};

/// Copies the status of a worker's jobs to the hub's jobs, when the throttle allows it.
pub(crate) fn sync_status(
    workload: EvaluatedWorkload<'_>,
    worker: &Worker,
    throttle: &mut StatusSyncThrottle,
    ctx: &mut Context,
) -> Option<DispatchEffect> {
    workload.record()?;
    let copy_of = |job: &JobKey| worker.jobs.get(job).map(|tracked| tracked.object());
    let WritableJobs { free, next_free } = writable_jobs(workload, ctx);
    // A status that was refused, or not stored as it is, is written again although nothing else changes.
    if let Some(at) = next_free {
        ctx.agenda.at(at, Reevaluation::Workload(workload.key.clone()));
    }
    let pairs = free.into_iter().filter_map(|(key, job)| {
        let copy = copy_of(&key)?;
        let is_shown = workload.jobs.statuses().has_status_of(&key, &job, copy);
        let after = (!is_shown).then(|| job.with_remote_status(copy))?;
        Some((key, job, after))
    });
    let pairs: Vec<(JobKey, Arc<JobObject>, JobObject)> = pairs.collect();
    // What is most urgent of any job decides when all are copied.
    let news = pairs.iter().map(|(_, job, after)| StatusNews::between(&**job, after)).min()?;
    if let Some(until) = throttle.keep_back(news, ctx.now) {
        ctx.agenda.at(until, Reevaluation::Workload(workload.key.clone()));
        return None;
    }
    throttle.copied(ctx.now);
    let changes = pairs
        .into_iter()
        .map(|(key, _, after)| (key, JobChange::status(Box::new(after), Purpose::SyncStatus)));
    Some(DispatchEffect::WriteJobs(changes.collect()))
}

/// Sets the active pods of the hub's jobs to 0.
pub(crate) fn clear_active_pods(
    workload: EvaluatedWorkload<'_>,
    ctx: &Context,
) -> Option<DispatchEffect> {
    let idle = writable_jobs(workload, ctx).free.into_iter().filter_map(|(key, job)| {
        let after = Box::new(workload.jobs.statuses().with_idle_status(&key, &job)?);
        Some((key, JobChange::status(after, Purpose::Idle)))
    });
    let changes: Vec<(JobKey, JobChange)> = idle.collect();
    (!changes.is_empty()).then_some(DispatchEffect::WriteJobs(changes))
}

/// The hub's jobs of a Workload, by whether they may be written now.
struct WritableJobs {
    free: Vec<(JobKey, Arc<JobObject>)>,
    /// When the first of the others may be written, if only time allows it.
    next_free: Option<Timestamp>,
}

fn writable_jobs(workload: EvaluatedWorkload<'_>, ctx: &Context) -> WritableJobs {
    let EvaluatedWorkload { key, workloads, jobs, .. } = workload;
    let observed = observed_jobs(key, workloads, jobs).into_iter();
    let (free, others): (Vec<_>, Vec<_>) = observed.partition(|(key, _)| jobs.is_free(key, ctx));
    let times =
        others.iter().filter_map(|(key, _)| ctx.outbox.writes().retry_at(&Target::job(key)));
    WritableJobs {
        next_free: times.min(),
        free: free.into_iter().map(|(key, job)| (key.clone(), Arc::clone(job))).collect(),
    }
}
