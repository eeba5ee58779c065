//! What is to be done about a job and its Workload now (docs/reference/kueue.md §7.3, §7.4).
//!
//! Level-triggered: asked again after every change, it answers with the next steps and with none when all is as it should
//! be. A step that was taken shows in the objects of the next question, so that a process that dies in between goes on
//! where it stopped.

mod pods_ready;
#[cfg(test)]
mod tests;
mod workload_match;

use crds::{
    meta::is_true,
    names::{
        RESOURCE_IN_USE_FINALIZER,
        conditions::{ADMITTED, EVICTED, FINISHED, QUOTA_RESERVED},
        reasons,
    },
    v1beta2::{ReclaimablePod, Workload},
};

pub use self::pods_ready::pods_ready;

use self::workload_match::WorkloadMatch;
use crate::{
    GenericJob, JobGates, StopWrite,
    generic_job::JobOutcome,
    pod_set_info::PodSetInfo,
    pod_sets_info::{self, FlavorsByName, PodSetsInfoError},
};

/// What is known beside the job itself.
#[derive(Clone, Copy, Debug)]
pub struct ReconcileContext<'a> {
    /// The Workloads that the job controls, in the order of their names; or the one that it names instead.
    pub workloads: &'a [&'a Workload],
    /// The Workload that the job had last, if that was taken away while it ran.
    pub previous_workload: Option<&'a Workload>,
    /// The job names its Workload. It neither makes nor changes nor deletes it.
    pub prebuilt: bool,
    /// All flavors.
    pub flavors: &'a FlavorsByName,
    /// Feature gates.
    pub gates: JobGates,
}

/// Why a job is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It runs without a Workload that is its own.
    NoMatchingWorkload,
    /// Its Workload is being deleted.
    WorkloadDeleted,
    /// Its Workload is evicted.
    WorkloadEvicted,
    /// Its Workload is not admitted.
    NotAdmitted,
}

/// One thing to do. Workloads are named; they are in the job's namespace.
#[derive(Clone, Debug, PartialEq)]
pub enum ReconcileStep<J> {
    /// Make a Workload.
    CreateWorkload,
    /// Write this spec in place of the Workload's, which holds nothing.
    UpdateWorkload(Box<Workload>),
    /// Delete a Workload that is not, or no longer, the job's.
    DeleteWorkload(String),
    /// Note that the Workload is over.
    FinishWorkload {
        /// The Workload.
        workload: String,
        /// Reason of the condition.
        reason: &'static str,
        /// Message of the condition.
        message: String,
    },
    /// Take our finalizer away.
    RemoveFinalizer(String),
    /// Note pods that will never run again.
    UpdateReclaimablePods(String, Vec<ReclaimablePod>),
    /// Let the job run.
    StartJob(Box<J>),
    /// Hold the job back, one write of several.
    StopJob(StopWrite<J>, StopReason),
    /// Nothing of an evicted job runs any more: its quota can go.
    ReleaseQuota(String),
    /// The queue of a pending Workload follows that of its job.
    UpdateQueueName(String),
}

/// The next steps.
pub fn reconcile<J: GenericJob + Clone>(
    job: &J,
    around: ReconcileContext<'_>,
) -> Vec<ReconcileStep<J>> {
    if job.metadata().deletion_timestamp.is_some() {
        return finalize_workloads(around);
    }
    let WorkloadMatch { workload, others } = workload_match::find_match(job, around);
    let Some(workload) = workload else {
        return without_workload(job, &others, around);
    };
    let mut steps: Vec<ReconcileStep<J>> =
        others.iter().map(|other| ReconcileStep::DeleteWorkload(name(other))).collect();
    steps.extend(with_workload(job, workload, around));
    steps
}

/// Of a job that is gone or going: its Workloads need not be kept.
pub fn finalize_workloads<J>(around: ReconcileContext<'_>) -> Vec<ReconcileStep<J>> {
    if around.prebuilt {
        return vec![];
    }
    around.workloads.iter().filter_map(|workload| unfinalize(workload)).collect()
}

fn without_workload<J: GenericJob + Clone>(
    job: &J,
    others: &[&Workload],
    around: ReconcileContext<'_>,
) -> Vec<ReconcileStep<J>> {
    let finished = job.finished().is_some();
    if around.prebuilt {
        let stop = stop(job, None, StopReason::NoMatchingWorkload, around);
        let unlike = others.iter().filter(|other| !is(other, FINISHED)).map(|other| {
            ReconcileStep::FinishWorkload {
                workload: name(other),
                reason: reasons::OUT_OF_SYNC,
                message: "The prebuilt workload is out of sync with its user job".to_owned(),
            }
        });
        let stops = stop.into_iter().filter(|_| !finished && !job.is_suspended());
        return unlike.chain(stops).collect();
    }
    if let Some(outcome) = job.finished() {
        return others.iter().flat_map(|other| finish(other, &outcome)).collect();
    }
    match others {
        [first, rest @ ..]
            if job.is_suspended() && !is(first, QUOTA_RESERVED) && !is(first, FINISHED) =>
        {
            let update = workload_match::with_job_spec(job, first, around.gates);
            let delete = rest.iter().map(|other| ReconcileStep::DeleteWorkload(name(other)));
            std::iter::once(ReconcileStep::UpdateWorkload(Box::new(update))).chain(delete).collect()
        }
        _ if !job.is_suspended() => {
            let sole = match others {
                [] => around.previous_workload,
                [sole] => Some(*sole),
                _ => None,
            };
            let stop = stop(job, sole, StopReason::NoMatchingWorkload, around);
            let delete = others.iter().map(|other| ReconcileStep::DeleteWorkload(name(other)));
            stop.into_iter().chain(delete).collect()
        }
        [] if job.is_active() => vec![],
        [] => vec![ReconcileStep::CreateWorkload],
        _ => others.iter().map(|other| ReconcileStep::DeleteWorkload(name(other))).collect(),
    }
}

fn with_workload<J: GenericJob + Clone>(
    job: &J,
    workload: &Workload,
    around: ReconcileContext<'_>,
) -> Vec<ReconcileStep<J>> {
    if is(workload, FINISHED) {
        return unfinalize(workload).into_iter().filter(|_| !around.prebuilt).collect();
    }
    if workload.metadata.deletion_timestamp.is_some() {
        let stop = stop(job, Some(workload), StopReason::WorkloadDeleted, around);
        let still = stop.is_some() || job.is_active();
        return stop.or_else(|| unfinalize(workload).filter(|_| !still)).into_iter().collect();
    }
    if let Some(outcome) = job.finished() {
        return finish(workload, &outcome);
    }
    let mut steps: Vec<ReconcileStep<J>> = reclaim(job, workload).into_iter().collect();
    if is(workload, EVICTED) {
        steps.extend(evicted(job, workload, around));
    } else if job.is_suspended() {
        steps.extend(held_back(job, workload, around));
    } else if !is(workload, ADMITTED) {
        steps.extend(stop(job, Some(workload), StopReason::NotAdmitted, around));
    }
    steps
}

/// Quota goes only when the pods are gone.
fn evicted<J: GenericJob>(
    job: &J,
    workload: &Workload,
    around: ReconcileContext<'_>,
) -> Option<ReconcileStep<J>> {
    let stop = stop(job, Some(workload), StopReason::WorkloadEvicted, around);
    let holds = is(workload, QUOTA_RESERVED) && !job.is_active();
    stop.or_else(|| holds.then(|| ReconcileStep::ReleaseQuota(name(workload))))
}

fn held_back<J: GenericJob + Clone>(
    job: &J,
    workload: &Workload,
    around: ReconcileContext<'_>,
) -> Option<ReconcileStep<J>> {
    if is(workload, ADMITTED) {
        return start(job, workload, around);
    }
    let moved = !around.prebuilt
        && !is(workload, QUOTA_RESERVED)
        && workload.spec.queue_name != job.queue_name();
    moved.then(|| ReconcileStep::UpdateQueueName(name(workload)))
}

/// A contradiction is for good, a missing flavor may come.
fn start<J: GenericJob + Clone>(
    job: &J,
    workload: &Workload,
    around: ReconcileContext<'_>,
) -> Option<ReconcileStep<J>> {
    let failed = |message: String| {
        let workload = name(workload);
        Some(ReconcileStep::FinishWorkload { workload, reason: reasons::FAILED_TO_START, message })
    };
    let infos = match pod_sets_info::pod_sets_info(workload, around.flavors, around.gates) {
        Ok(infos) => infos,
        Err(PodSetsInfoError::Start(error)) => return failed(error.to_string()),
        Err(PodSetsInfoError::NotAdmitted { .. } | PodSetsInfoError::NoFlavor { .. }) => {
            return None;
        }
    };
    let mut started = job.clone();
    match started.run_with_pod_sets_info(&infos, around.gates) {
        Ok(()) => Some(ReconcileStep::StartJob(Box::new(started))),
        Err(error) => failed(error.to_string()),
    }
}

fn stop<J: GenericJob>(
    job: &J,
    workload: Option<&Workload>,
    reason: StopReason,
    around: ReconcileContext<'_>,
) -> Option<ReconcileStep<J>> {
    let sets = workload.map(|workload| workload.spec.pod_sets.as_slice()).unwrap_or_default();
    let infos: Vec<PodSetInfo> = sets.iter().map(PodSetInfo::of).collect();
    job.next_stop_write(&infos, around.gates).map(|step| ReconcileStep::StopJob(step, reason))
}

fn finish<J>(workload: &Workload, outcome: &JobOutcome) -> Vec<ReconcileStep<J>> {
    if is(workload, FINISHED) {
        return unfinalize(workload).into_iter().collect();
    }
    let reason = if outcome.success { reasons::SUCCEEDED } else { reasons::FAILED };
    let message = outcome.message.clone();
    vec![ReconcileStep::FinishWorkload { workload: name(workload), reason, message }]
}

/// No more pods of a pod set can go than it has.
fn reclaim<J: GenericJob>(job: &J, workload: &Workload) -> Option<ReconcileStep<J>> {
    let size = |name: &str| {
        let set = workload.spec.pod_sets.iter().find(|set| set.name == name);
        set.map_or(0, |set| set.count.unwrap_or(1))
    };
    let reclaimable: Vec<ReclaimablePod> = job
        .reclaimable_pods()
        .into_iter()
        .map(|pod| ReclaimablePod { count: pod.count.min(size(&pod.name)), ..pod })
        .collect();
    let news = !reclaimable.is_empty() && reclaimable != workload.status.reclaimable_pods;
    (news && is(workload, QUOTA_RESERVED))
        .then(|| ReconcileStep::UpdateReclaimablePods(name(workload), reclaimable))
}

fn unfinalize<J>(workload: &Workload) -> Option<ReconcileStep<J>> {
    let mut finalizers = workload.metadata.finalizers.iter().flatten();
    let kept = finalizers.any(|finalizer| finalizer == RESOURCE_IN_USE_FINALIZER);
    kept.then(|| ReconcileStep::RemoveFinalizer(name(workload)))
}

fn is(workload: &Workload, condition: &str) -> bool {
    is_true(&workload.status.conditions, condition)
}

fn name(workload: &Workload) -> String {
    workload.metadata.name.clone().unwrap_or_default()
}
