//! The end of a prebuilt Workload that differs from its job (docs/reference/kueue.md §7.4 step 1).

use crds::{
    names::{MULTI_KUEUE_CONTROLLER, reasons},
    v1beta2::{PodSet, Workload},
};

use super::{
    JobStep, ReconcileContext, ReconcileStep, StopCause, StopReason, WorkloadStep, is_dispatched,
    stop_of, workload_keys,
};
use crate::{GenericJob, JobGates, StopWrite, pod_counts::count};

/// A prebuilt Workload that differs from its job is finished and never changed; the job is stopped. Unlike upstream's, the Workload
/// keeps its quota until the pods of this cluster are gone (kueue#14395).
pub(super) fn without_prebuilt_workload<J: GenericJob + Clone>(
    job: &J,
    workload: Option<&Workload>,
    context: ReconcileContext<'_>,
) -> Vec<ReconcileStep<J>> {
    let goes_on = job.finished().is_none();
    // A finished Workload keeps its admission, and the stop goes on after its end.
    let started_by = workload.filter(|one| one.has_quota_reservation());
    let runs = goes_on && !job.is_suspended();
    let stop = runs.then(|| stop_out_of_sync(job, started_by, context)).flatten();
    let Some(open) = workload.filter(|one| !one.is_finished()) else {
        return stop.into_iter().collect();
    };
    let is_last = job.spec_suspended() && stop.as_ref().is_some_and(writes_object);
    let pods_active = goes_on && (job.is_active() || (stop.is_some() && !is_last));
    // Such a job shows the pods of its copy, also before the Workload names a cluster.
    let runs_here = job.managed_by() != Some(MULTI_KUEUE_CONTROLLER);
    // The Workload is the job's before it is compared with it.
    let owned = workload_keys::take_ownership(open);
    let end = may_end(open, pods_active && runs_here).then(|| out_of_sync(open));
    // A restored job may match its Workload again, and would start by it: the Workload ends before.
    let stop = stop.filter(|_| !is_last);
    owned.into_iter().chain(end).chain(stop).collect()
}

/// The next write of the stop. The Workload of a job with a new size ends for that, so the size is not undone.
fn stop_out_of_sync<J: GenericJob>(
    job: &J,
    workload: Option<&Workload>,
    context: ReconcileContext<'_>,
) -> Option<ReconcileStep<J>> {
    let resized = workload.is_some_and(|one| is_resized(job, one, context.gates));
    let cause = StopCause { workload, reason: StopReason::NoMatchingWorkload, resized };
    stop_of(job, cause, context.gates, context.now)
}

/// Whether a count of the job is not the admitted one.
fn is_resized<J: GenericJob>(job: &J, workload: &Workload, gates: JobGates) -> bool {
    let admission = workload.status.admission.as_ref();
    let assigned = admission.into_iter().flat_map(|one| &one.pod_set_assignments);
    let differs =
        |(set, admitted): (&PodSet, Option<i32>)| admitted.is_some_and(|one| one != count(set));
    job.pod_sets(gates).iter().zip(assigned.map(|one| one.count)).any(differs)
}

/// Whether a Workload that is out of sync ends now: its quota is held until no pod is active. The copy of a dispatched job is withdrawn
/// once the Workload is finished, and not before.
pub(crate) fn may_end(workload: &Workload, pods_active: bool) -> bool {
    !workload.has_quota_reservation() || !pods_active || is_dispatched(workload)
}

/// Finishes a prebuilt Workload that differs from its job.
pub(crate) fn out_of_sync<J>(workload: &Workload) -> ReconcileStep<J> {
    let message = "The prebuilt workload is out of sync with its user job".to_owned();
    WorkloadStep::Finish { reason: reasons::OUT_OF_SYNC, message }.of(workload)
}

/// Whether a stop writes metadata and spec. Of a job that is suspended this restores what was before the start.
fn writes_object<J>(step: &ReconcileStep<J>) -> bool {
    matches!(step, ReconcileStep::Job(JobStep::Stop(StopWrite::Object(_), _)))
}
