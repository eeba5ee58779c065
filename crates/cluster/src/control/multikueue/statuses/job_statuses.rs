//! The status of the hub's jobs, as that of their copies on a worker, or without any.

use std::sync::Arc;

use ::jobs::{GenericJob, JobObject};

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
    evaluate_when_free(workload, ctx);
    let pairs = free_jobs(workload, ctx).into_iter().filter_map(|(key, job)| {
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

/// A status that was refused, or not stored as it is, is written again although nothing else changes.
fn evaluate_when_free(workload: EvaluatedWorkload<'_>, ctx: &mut Context) {
    let EvaluatedWorkload { key, workloads, jobs, .. } = workload;
    let observed = observed_jobs(key, workloads, jobs).into_iter();
    let times = observed
        .filter(|(job, _)| !jobs.is_free(job, ctx))
        .filter_map(|(job, _)| ctx.outbox.writes().retry_at(&Target::job(job)));
    if let Some(at) = times.min() {
        ctx.agenda.at(at, Reevaluation::Workload(key.clone()));
    }
}

/// Sets the active pods of the hub's jobs to 0.
pub(crate) fn clear_active_pods(
    workload: EvaluatedWorkload<'_>,
    ctx: &Context,
) -> Option<DispatchEffect> {
    let idle = free_jobs(workload, ctx).into_iter().filter_map(|(key, job)| {
        let after = Box::new(workload.jobs.statuses().with_idle_status(&key, &job)?);
        Some((key, JobChange::status(after, Purpose::Idle)))
    });
    let changes: Vec<(JobKey, JobChange)> = idle.collect();
    (!changes.is_empty()).then_some(DispatchEffect::WriteJobs(changes))
}

/// The hub's jobs of the Workload that may be written.
fn free_jobs(workload: EvaluatedWorkload<'_>, ctx: &Context) -> Vec<(JobKey, Arc<JobObject>)> {
    let EvaluatedWorkload { key, workloads, jobs, .. } = workload;
    let observed = observed_jobs(key, workloads, jobs).into_iter();
    let free = observed.filter(|(key, _)| jobs.is_free(key, ctx));
    free.map(|(key, job)| (key.clone(), Arc::clone(job))).collect()
}
