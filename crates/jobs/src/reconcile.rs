//! Reconciliation of a job and its Workload (docs/reference/kueue.md §7.3, §7.4).
//!
//! Level-triggered: called after every change, it returns the next steps, or none in the desired state. A completed
//! step shows in the objects of the next call, so a restarted process continues where the old one stopped.

mod out_of_sync;
mod pods_ready;
mod reclaimable_pods;
mod slices;
mod steps;
#[cfg(test)]
mod tests;
mod workload_keys;
mod workload_match;

use crds::{
    meta::{find, is_deleting, label},
    names::{RESOURCE_IN_USE_FINALIZER, conditions::EVICTED, labels::MULTI_KUEUE_ORIGIN, reasons},
    v1beta2::Workload,
};

pub(crate) use self::out_of_sync::{may_end, out_of_sync};
pub(crate) use self::reclaimable_pods::clamped_reclaimable_pods;
pub(crate) use self::steps::name;
pub(crate) use self::workload_keys::{follow as follow_keys, update_gates as follow_gates};
pub use self::{
    pods_ready::pods_ready,
    reclaimable_pods::reclaimable_pods_of_copy,
    steps::{JobStep, ReconcileStep, StopReason, WorkloadStep},
};

use jiff::Timestamp;

use self::{
    out_of_sync::without_prebuilt_workload, reclaimable_pods::update_reclaimable_pods,
    workload_match::WorkloadMatch,
};
use crate::{
    GenericJob, JobGates,
    generic_job::{JobOutcome, Stop},
    pod_sets_problem,
    prebuilt::prebuilt_name,
    start::admitted_infos::{self, AssignedFlavors},
    start::pod_set_info::PodSetInfo,
    topology_request,
};

/// The inputs of a reconciliation besides the job.
#[derive(Clone, Copy, Debug)]
pub struct ReconcileContext<'a> {
    /// Workloads that the job controls, ordered by name; or its prebuilt Workload.
    pub workloads: &'a [&'a Workload],
    /// The last Workload of the job, if it was deleted while the job ran.
    pub previous_workload: Option<&'a Workload>,
    /// The job names a prebuilt Workload, which it never creates, changes or deletes.
    pub prebuilt: bool,
    /// All flavors.
    pub flavors: AssignedFlavors<'a>,
    /// Feature gates.
    pub gates: JobGates,
    /// The time.
    pub now: Timestamp,
}

/// Why a job is stopped, in the words of upstream's Events; `workload` is the one that it had.
#[must_use]
pub fn stop_message<J: GenericJob>(
    job: &J,
    workload: Option<&Workload>,
    reason: StopReason,
    gates: JobGates,
) -> String {
    let evicted = workload.and_then(|one| find(&one.status.conditions, EVICTED));
    let is_prebuilt = !prebuilt_name(job, gates).name.is_empty();
    let note = match (reason, workload) {
        (StopReason::NoMatchingWorkload, _) if is_prebuilt => "missing workload",
        (StopReason::NoMatchingWorkload, Some(_)) => {
            "No matching Workload; restoring pod templates according to existent Workload"
        }
        (StopReason::NoMatchingWorkload, None) => {
            "Missing Workload; unable to restore pod templates"
        }
        (StopReason::WorkloadDeleted, _) => "Workload is deleted",
        (StopReason::WorkloadEvicted, _) => evicted.map_or("", |one| one.message.as_str()),
        (StopReason::NotAdmitted, _) => "Not admitted by cluster queue",
    };
    note.to_owned()
}

/// Returns the next steps.
pub fn reconcile<J: GenericJob + Clone>(
    job: &J,
    context: ReconcileContext<'_>,
) -> Vec<ReconcileStep<J>> {
    // Also while it is being deleted (docs/reference/kueue.md §7.3 row 0b).
    if job.is_skipped() {
        let waits = job.never_admissible_reason().filter(|_| !is_deleting(job.metadata()));
        let reason = reasons::ERR_WORKLOAD_COMPOSE;
        return waits
            .map(|message| ReconcileStep::Refuse { reason, message })
            .into_iter()
            .collect();
    }
    // Nothing else is decided about a job that is being deleted (docs/reference/kueue.md §7.3 row
    // 0c).
    if is_deleting(job.metadata()) {
        if job.defers_finalization(context.gates) {
            return vec![];
        }
        let finalized = finalize_workloads(context).into_iter().chain(finalize_job(job));
        return finalized.chain(release_deleted(job, context)).collect();
    }
    if slices::has_slices(job, context)
        && let Some(steps) = slices::reconcile(job, context)
    {
        return steps;
    }
    let WorkloadMatch { workload, others } = workload_match::find_match(job, context);
    let Some(workload) = workload else {
        return without_workload(job, &others, context);
    };
    let mut steps: Vec<ReconcileStep<J>> =
        others.iter().map(|other| WorkloadStep::Delete.of(other)).collect();
    steps.extend(with_workload(job, workload, context));
    steps
}

/// Removes the finalizers of the Workloads of a deleted job.
pub fn finalize_workloads<J>(context: ReconcileContext<'_>) -> Vec<ReconcileStep<J>> {
    // The job did not make a prebuilt Workload, so its finalizer is not the job's to remove.
    if context.prebuilt {
        return vec![];
    }
    context.workloads.iter().filter_map(|workload| remove_finalizer(workload)).collect()
}

/// Quota of a job that is being deleted returns with the end of its pods, whatever keeps the object itself: that of an evicted job, and
/// that of a job which is out of sync with its prebuilt Workload.
fn release_deleted<J: GenericJob>(job: &J, context: ReconcileContext<'_>) -> Vec<ReconcileStep<J>> {
    let is_over = job.released_at(context.now, context.gates).is_some_and(|at| at <= context.now);
    if !is_over {
        return vec![];
    }
    let holds_quota = |workload: &&&Workload| {
        let ended = workload.is_finished() || is_deleting(&workload.metadata);
        !ended && workload.has_quota_reservation()
    };
    let holders = context.workloads.iter().filter(holds_quota);
    if context.prebuilt && workload_match::find_match(job, context).workload.is_none() {
        return holders.map(|workload| out_of_sync(workload)).collect();
    }
    let evicted = holders.filter(|workload| workload.is_evicted());
    evicted.map(|workload| WorkloadStep::ReleaseQuota.of(workload)).collect()
}

fn without_workload<J: GenericJob + Clone>(
    job: &J,
    others: &[&Workload],
    context: ReconcileContext<'_>,
) -> Vec<ReconcileStep<J>> {
    if context.prebuilt {
        return without_prebuilt_workload(job, others.first().copied(), context);
    }
    // A Workload that differs from its job may still hold quota; it finishes with the job.
    if let Some(outcome) = job.finished() {
        let finished = others.iter().flat_map(|other| finish(other, &outcome));
        return finished
            // Not before all of them are finished: a finalized pod may vanish, and its result with it.
            .chain(finalize_job(job).filter(|_| !others.iter().any(|one| !one.is_finished())))
            .collect();
    }
    match others {
        [first, rest @ ..]
            if job.is_suspended()
                && !first.has_quota_reservation()
                && !first.is_finished()
                && !job.pod_sets(context.gates).is_empty() =>
        {
            if let Some(refused) = refuse_pod_sets(job, context.gates) {
                return vec![refused];
            }
            // A Workload without quota is updated in place and keeps its queue-order timestamp.
            let update = workload_match::with_job_spec(job, first, context.gates);
            let delete = rest.iter().map(|other| WorkloadStep::Delete.of(other));
            std::iter::once(ReconcileStep::UpdateWorkload(Box::new(update))).chain(delete).collect()
        }
        // A job runs only with a matching Workload (docs/reference/kueue.md §7.4 step 5).
        _ if !job.is_suspended() => stop_and_delete(job, others, context),
        // Active pods of the last run have to be gone before the next Workload is created.
        [] if job.is_active() => vec![],
        [] if job.unresolved().is_some() => refuse_unresolved(job).into_iter().collect(),
        [] => vec![create(job, context.gates)],
        // The next call creates the Workload, once these are gone (docs/reference/kueue.md §7.4
        // step 6).
        _ => others.iter().map(|other| WorkloadStep::Delete.of(other)).collect(),
    }
}

/// Stops a job that runs without a matching Workload, and deletes the others.
fn stop_and_delete<J: GenericJob + Clone>(
    job: &J,
    others: &[&Workload],
    context: ReconcileContext<'_>,
) -> Vec<ReconcileStep<J>> {
    // With several Workloads it is unknown which one started the job, so the templates cannot be restored from it.
    let started_by = match others {
        [] => context.previous_workload,
        [only] => Some(*only),
        _ => None,
    };
    let stop = stop(job, started_by, StopReason::NoMatchingWorkload, context);
    let delete = others.iter().map(|other| WorkloadStep::Delete.of(other));
    stop.into_iter().chain(delete).collect()
}

fn with_workload<J: GenericJob + Clone>(
    job: &J,
    workload: &Workload,
    context: ReconcileContext<'_>,
) -> Vec<ReconcileStep<J>> {
    if workload.is_finished() {
        return remove_finalizer(workload).into_iter().chain(finalize_job(job)).collect();
    }
    if is_deleting(&workload.metadata) {
        let stop = stop(job, Some(workload), StopReason::WorkloadDeleted, context);
        // The finalizer holds the Workload, and with it the quota, until the pods are gone.
        let pods_active = stop.is_some() || job.is_active();
        return stop
            .or_else(|| remove_finalizer(workload).filter(|_| !pods_active))
            .into_iter()
            .collect();
    }
    if let Some(outcome) = job.finished() {
        return finish(workload, &outcome);
    }
    let mut steps: Vec<ReconcileStep<J>> = workload_keys::steps(job, workload, context);
    steps.extend(update_reclaimable_pods(job, workload, context.gates));
    if workload.is_evicted() {
        steps.extend(stop_or_release(job, workload, context));
    } else if job.is_suspended() || (workload.is_admitted() && job.keeps_additions()) {
        steps.extend(start_or_move_to_queue(job, workload, context));
    } else if !workload.is_admitted() {
        // Reserved quota alone lets no job run (docs/reference/kueue.md §7.3 row 8).
        steps.extend(stop(job, Some(workload), StopReason::NotAdmitted, context));
    }
    steps
}

/// Quota is released only after the pods are gone.
fn stop_or_release<J: GenericJob>(
    job: &J,
    workload: &Workload,
    context: ReconcileContext<'_>,
) -> Option<ReconcileStep<J>> {
    let stop = stop(job, Some(workload), StopReason::WorkloadEvicted, context);
    let reserved = workload.has_quota_reservation() && !job.is_active();
    stop.or_else(|| reserved.then(|| WorkloadStep::ReleaseQuota.of(workload)))
}

fn start_or_move_to_queue<J: GenericJob + Clone>(
    job: &J,
    workload: &Workload,
    context: ReconcileContext<'_>,
) -> Option<ReconcileStep<J>> {
    if workload.is_admitted() {
        // A gated pod has no field that names another controller: a start would run it here beside its copy.
        let runs_elsewhere = job.stays_gated_when_dispatched() && is_dispatched(workload);
        return if runs_elsewhere { None } else { start(job, workload, context) };
    }
    // The API refuses another queue name while quota is reserved (docs/reference/kueue.md §1.2).
    // A clone belongs to its manager.
    let moved = !is_clone(workload)
        && !workload.has_quota_reservation()
        && workload.spec.queue_name != job.queue_name();
    moved.then(|| WorkloadStep::UpdateQueueName(job.queue_name().to_owned()).of(workload))
}

/// Whether the Workload is the clone of that of another cluster.
#[must_use]
pub fn is_clone(workload: &Workload) -> bool {
    label(&workload.metadata, MULTI_KUEUE_ORIGIN).is_some()
}

/// Whether a worker cluster runs the Workload.
pub(crate) fn is_dispatched(workload: &Workload) -> bool {
    workload.status.cluster_name.is_some()
}

/// Conflicting pod set infos are permanent; a missing flavor may still be created.
fn start<J: GenericJob + Clone>(
    job: &J,
    workload: &Workload,
    context: ReconcileContext<'_>,
) -> Option<ReconcileStep<J>> {
    let failed = |message: String| {
        let reason = reasons::FAILED_TO_START;
        Some(WorkloadStep::Finish { reason, message }.of(workload))
    };
    if let Some(message) = job.unresolved() {
        // A copy contradicts itself on every worker cluster: a refusal alone would move it from one to the next.
        let is_permanent = context.prebuilt && job.contradicts_itself();
        return if is_permanent { failed(message.to_owned()) } else { refuse_unresolved(job) };
    }
    let infos = match admitted_infos::startable_infos(workload, context.flavors, context.gates) {
        Ok(Some(infos)) => infos,
        Ok(None) => return None,
        Err(error) => return failed(error.to_string()),
    };
    let mut started = job.clone();
    match started.run_with_pod_sets_info(&infos, context.gates) {
        Ok(()) => {
            let next = job.next_start_write(started)?;
            Some(ReconcileStep::Job(JobStep::Start(Box::new(next))))
        }
        Err(error) => failed(error.to_string()),
    }
}

/// An object that the pod sets need may still be created. A job that needs none has pod sets that contradict themselves.
fn refuse_unresolved<J: GenericJob>(job: &J) -> Option<ReconcileStep<J>> {
    let message = job.unresolved()?.to_owned();
    let reason = if job.contradicts_itself() {
        reasons::ERR_WORKLOAD_COMPOSE
    } else {
        reasons::NEEDED_OBJECT_MISSING
    };
    Some(ReconcileStep::Refuse { reason, message })
}

/// Creates the Workload of a job, or refuses its pod sets.
pub(crate) fn create<J: GenericJob>(job: &J, gates: JobGates) -> ReconcileStep<J> {
    refuse_pod_sets(job, gates).unwrap_or(ReconcileStep::CreateWorkload)
}

/// A job with pod sets that no Workload can have waits until it is mended, and so does one with a topology that cannot be read: it is
/// not placed without it.
pub(crate) fn refuse_pod_sets<J: GenericJob>(job: &J, gates: JobGates) -> Option<ReconcileStep<J>> {
    let of_sets = pod_sets_problem::problem(&job.pod_sets(gates)).map(|one| one.to_string());
    let message = of_sets.or_else(|| topology_request::problem(job, gates))?;
    Some(ReconcileStep::Refuse { reason: reasons::ERR_WORKLOAD_COMPOSE, message })
}

fn stop<J: GenericJob>(
    job: &J,
    workload: Option<&Workload>,
    reason: StopReason,
    context: ReconcileContext<'_>,
) -> Option<ReconcileStep<J>> {
    let cause = StopCause { workload, reason, resized: false };
    stop_of(job, cause, context.gates, context.now)
}

/// Why a job is stopped, and what it was started by.
#[derive(Clone, Copy)]
pub(crate) struct StopCause<'a> {
    /// The Workload that started the job, if it is known.
    pub(crate) workload: Option<&'a Workload>,
    pub(crate) reason: StopReason,
    /// The job has another size than it was started with, which stays.
    pub(crate) resized: bool,
}

/// The next write of a stop.
pub(crate) fn stop_of<J: GenericJob>(
    job: &J,
    StopCause { workload, reason, resized }: StopCause<'_>,
    gates: JobGates,
    now: Timestamp,
) -> Option<ReconcileStep<J>> {
    let sets = workload.map(|workload| workload.spec.pod_sets.as_slice()).unwrap_or_default();
    let infos: Vec<PodSetInfo> = sets.iter().map(PodSetInfo::of).collect();
    let evicted = workload.and_then(|workload| find(&workload.status.conditions, EVICTED));
    // An evicted Workload may be deleted before its job has stopped; the stop names what is asked for now.
    let evicted = evicted.filter(|_| reason == StopReason::WorkloadEvicted);
    let cause = match evicted {
        Some(one) => format!("WorkloadEvictedDueTo{}", one.reason),
        None => format!("{reason:?}"),
    };
    let message = stop_message(job, workload, reason, gates);
    let stop = Stop {
        infos: &infos,
        reason: &cause,
        message: &message,
        at: Some(now),
        for_good: reason == StopReason::WorkloadDeleted,
        resized,
    };
    job.next_stop_write(&stop, gates).map(|write| ReconcileStep::Job(JobStep::Stop(write, reason)))
}

/// A job that its Workload needs no longer.
fn finalize_job<J: GenericJob>(job: &J) -> Option<ReconcileStep<J>> {
    job.finalized().map(|job| ReconcileStep::Job(JobStep::Finalize(Box::new(job))))
}

pub(crate) fn finish<J>(workload: &Workload, outcome: &JobOutcome) -> Vec<ReconcileStep<J>> {
    if workload.is_finished() {
        return remove_finalizer(workload).into_iter().collect();
    }
    let reason = if outcome.success { reasons::SUCCEEDED } else { reasons::FAILED };
    let message = outcome.message.clone();
    vec![WorkloadStep::Finish { reason, message }.of(workload)]
}

pub(crate) fn remove_finalizer<J>(workload: &Workload) -> Option<ReconcileStep<J>> {
    let mut finalizers = workload.metadata.finalizers.iter().flatten();
    let has_finalizer = finalizers.any(|finalizer| finalizer == RESOURCE_IN_USE_FINALIZER);
    has_finalizer.then(|| WorkloadStep::RemoveFinalizer.of(workload))
}
