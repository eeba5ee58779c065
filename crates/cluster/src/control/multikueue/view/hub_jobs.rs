//! The jobs of a Workload on the hub, and its MultiKueue check.

use std::sync::Arc;

use ::jobs::{GenericJob, JobGates, JobObject};
use crds::{meta::is_deleting, v1beta2::Workload};
use dispatch::workload::{DispatchCheckState, LocalJob};
use runtime::watch::Key;

use crate::control::{
    job_key::JobKey,
    jobs::Jobs,
    scheduling::Scheduler,
    workloads::{TrackedWorkload, Workloads},
};

/// A job of the hub.
pub(crate) type HubJob<'a> = (&'a JobKey, &'a JobObject);

/// What the jobs of a Workload say together.
pub(crate) fn local_job(jobs: &[HubJob<'_>], all_jobs: &Jobs) -> LocalJob {
    // The status of a set is that of its own cluster, and says nothing about its copy.
    let shown = || jobs.iter().filter(|(_, job)| job.set_size().is_none());
    let any = |holds: fn(&JobObject) -> bool| shown().any(|(_, job)| holds(job));
    LocalJob {
        exists: !jobs.is_empty(),
        // A gated pod shows the status of its copy.
        suspended: any(|job| job.spec_suspended() && !job.stays_gated_when_dispatched()),
        active: shown()
            .any(|(key, job)| job.is_active() || all_jobs.statuses().shows_copy(key, job)),
        open: shown().any(|(_, job)| shows_no_end(job)),
        ended: jobs.iter().all(|(_, job)| job.finished().is_some() || is_deleting(job.metadata())),
        started: any(JobObject::has_started),
    }
}

/// Whether a job shows no end, and could get one from its copy. That of a set, and of a job that another program runs, is not in
/// its status.
pub(crate) fn shows_no_end(job: &JobObject) -> bool {
    let goes_on = job.finished().is_none() && !is_deleting(job.metadata());
    goes_on && !job.is_skipped() && job.set_size().is_none()
}

/// The state of the check of this name.
pub(crate) fn check_state(workload: &Workload, name: Option<&str>) -> DispatchCheckState {
    let checks = workload.status.admission_checks.iter();
    let mut checks = checks.filter(|check| Some(check.name.as_str()) == name);
    match checks.next().map(|check| check.state.as_str()) {
        Some("Ready") => DispatchCheckState::Ready,
        Some("Retry") => DispatchCheckState::Retry,
        Some("Rejected") => DispatchCheckState::Rejected,
        _ => DispatchCheckState::Pending,
    }
}

/// The hub's job with the key of a copy.
pub(crate) fn hub_job_of<'a>(copy: &JobKey, jobs: &[HubJob<'a>]) -> Option<&'a JobObject> {
    jobs.iter().find(|(hub, _)| *hub == copy).map(|(_, job)| *job)
}

/// Whether a job of the hub is a member of a group, and being deleted. The finalizer keeps it until another one stands in for it.
pub(crate) fn is_deleted_member(job: &JobObject, gates: JobGates) -> bool {
    job.metadata().deletion_timestamp.is_some() && job.is_group_member(gates)
}

/// Whether a copy outlives the member of a group that it is the copy of.
pub(crate) fn is_abandoned(copy: &JobObject, hub: Option<&JobObject>, gates: JobGates) -> bool {
    copy.is_group_member(gates) && hub.is_none_or(|hub| is_deleted_member(hub, gates))
}

/// Why a Workload with quota and without a cluster cannot be dispatched at all.
pub(crate) fn undispatchable(key: &Key, record: &TrackedWorkload, jobs: &Jobs) -> Option<String> {
    let workload = record.object();
    // With a recorded cluster the Workload was dispatched already, and its copies must be followed.
    if !record.phase().holds_quota() || workload.status.cluster_name.is_some() {
        return None;
    }
    jobs.undispatchable(key, workload)
}

/// The hub's jobs of a Workload, which may be gone already.
pub(crate) fn observed_jobs<'a>(
    key: &Key,
    workloads: &Workloads,
    jobs: &'a Jobs,
) -> Vec<(&'a JobKey, &'a Arc<JobObject>)> {
    match workloads.get(key) {
        Some(record) => jobs.dispatched(key, record.object()),
        None => jobs.orphan_of(key).and_then(|orphan| jobs.get(&orphan.job)).into_iter().collect(),
    }
}

/// The hub's jobs of a Workload.
pub(crate) fn jobs_of<'a>(key: &Key, workloads: &Workloads, jobs: &'a Jobs) -> Vec<HubJob<'a>> {
    let observed = observed_jobs(key, workloads, jobs).into_iter();
    observed.map(|(key, job)| (key, &**job)).collect()
}

/// The MultiKueue check of a Workload that holds quota.
pub(crate) fn multikueue_check(record: &TrackedWorkload, scheduler: &Scheduler) -> Option<String> {
    let admission = record.object().status.admission.as_ref();
    let admission = admission.filter(|_| record.phase().holds_quota())?;
    scheduler.multikueue_check(&admission.cluster_queue).map(str::to_owned)
}
