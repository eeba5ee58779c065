//! Workload slices of an elastic job (docs/reference/kueue.md §4.13).
//!
//! The slice with quota, the holder, decides whether the job runs. A job that shrinks shrinks its slice in place; one that
//! grows beyond a slice with quota gets a replacement, which the scheduler admits in its stead. Meanwhile the job runs with the
//! quota of the holder: the scheduling gate of elastic jobs keeps further pods from starting.
//!
//! ```text
//! holder 3 --grow to 5--> holder 3, replacement 5 (pending) --admitted--> 3 finished, holder 5 --shrink--> holder 2
//!                              |  resized again: the replacement is changed in place
//! ```
//! The slices of a dispatched job change hands once the worker has admitted the replacement as well (docs/reference/multikueue.md
//! §2.13). Until then the old slice stays the holder, whichever of both the scheduler charges.

use std::cmp::Reverse;

use crds::{
    meta::{annotation, is_deleting},
    names::{
        EXACTLY_ONCE,
        annotations::{EXECUTION, RAYCLUSTER_GENERATION, WORKLOAD_SLICE_REPLACEMENT_FOR},
        conditions::FINISHED,
        reasons,
    },
    v1beta2::{PodSet, Workload},
};

use super::{
    JobStep, ReconcileContext, ReconcileStep, StopReason, WorkloadStep, finalize_job, finish,
    is_dispatched, name,
    reclaimable_pods::update_reclaimable_pods,
    refuse_pod_sets, refuse_unresolved, remove_finalizer, start_or_move_to_queue, stop,
    stop_or_release, workload_keys,
    workload_match::{waits_for_change, with_job_spec},
};
use crate::{
    GenericJob, JobGates,
    construct_workload::{ReplacedSlice, max_exec_time},
    elastic::elastic_copies::{is_of_elastic_job, shrinks_on_workers},
    equivalence::{equivalent_to_prebuilt, same_work},
    pod_counts::{count, pods_of},
};

/// Message of a slice that is neither the holder nor its replacement.
const OUT_OF_SYNC: &str = "The workload slice is out of sync with its parent job";

/// The slices of a job that are not finished, by what they are for.
#[derive(Debug, Default)]
struct Slices<'a> {
    /// The slice with quota.
    holder: Option<&'a Workload>,
    /// The slice that waits to replace the holder, or to be the first one with quota.
    pending: Option<&'a Workload>,
    /// Slices that are not needed.
    surplus: Vec<&'a Workload>,
    /// Slices that are over.
    finished: Vec<&'a Workload>,
}

/// Whether a job has slices. A copy on a worker changes its size with its original. The original of copies has one slice; it has
/// none if its copies keep their size, because such a job is started and stopped as a whole.
pub(super) fn has_slices<J: GenericJob>(job: &J, context: ReconcileContext<'_>) -> bool {
    let follows = !job.is_managed_elsewhere() || shrinks_on_workers(job, context.gates);
    job.is_elastic(context.gates) && !context.prebuilt && follows
}

/// Whether a slice with quota asks for fewer pods of a pod set than it was admitted with. Only such a pod set may have fewer
/// reclaimable pods than before (docs/reference/kueue.md §5.2).
pub(super) fn has_shrunk(slice: &Workload, pod_set: &str, gates: JobGates) -> bool {
    let assignments = slice.status.admission.iter().flat_map(|one| &one.pod_set_assignments);
    let admitted = assignments.filter(|one| one.name == pod_set).find_map(|one| one.count);
    let wanted = pods_of(&slice.spec.pod_sets, pod_set);
    gates.elastic_jobs
        && is_of_elastic_job(slice)
        && admitted.is_some_and(|admitted| wanted < admitted)
}

/// The next steps of a job with slices. `None` if its pod sets are others than those of its slices: such a job is not resized
/// but recreated.
pub(super) fn reconcile<J: GenericJob + Clone>(
    job: &J,
    context: ReconcileContext<'_>,
) -> Option<Vec<ReconcileStep<J>>> {
    if let Some(annotated) = annotated(job, context) {
        return Some(vec![ReconcileStep::Job(JobStep::Annotate(Box::new(annotated)))]);
    }
    let slices = Slices::of(context.workloads);
    if let Some(outcome) = job.finished() {
        let open = slices.unfinished();
        let steps = open.iter().flat_map(|slice| finish(slice, &outcome));
        let over = slices.finished.iter().filter_map(|slice| remove_finalizer(slice));
        let finalized = finalize_job(job).filter(|_| open.is_empty());
        return Some(steps.chain(over).chain(finalized).collect());
    }
    if waits_for_change(job) && !slices.have_ended() {
        return Some(without_sizes(job, &slices));
    }
    let sets = job.pod_sets(context.gates);
    let current = slices.pending.or(slices.holder);
    let Some(current) = current else {
        return without_slice(job, &slices);
    };
    // Without the objects that it needs, nothing is known of the pod sets of a job.
    if job.unresolved().is_none() && !same_names(&sets, &current.spec.pod_sets) {
        return None;
    }
    if slices.holder.is_some_and(|holder| must_be_recreated(job, &sets, holder, context.gates)) {
        return None;
    }
    let mut steps: Vec<ReconcileStep<J>> =
        slices.surplus.iter().map(|one| drop_slice(one)).collect();
    steps.extend(slices.leaving());
    match slices.holder {
        Some(holder) => {
            steps.extend(with_holder(job, holder, context));
            steps.extend(resize(job, &sets, holder, slices.pending, context));
        }
        None => steps.extend(without_holder(job, current, context)),
    }
    Some(steps)
}

/// A job that contradicts itself never starts: no slice of it stays in a queue or keeps quota. Those that were replaced are its past.
fn without_sizes<J: GenericJob>(job: &J, slices: &Slices<'_>) -> Vec<ReconcileStep<J>> {
    let open = slices.unfinished();
    let refused = refuse_unresolved(job).filter(|_| open.is_empty());
    let delete = |slice: &&Workload| WorkloadStep::Delete.of(slice);
    let deleted = open.iter().map(delete);
    deleted.chain(slices.leaving()).chain(refused).collect()
}

/// The job with the generation of the object that it has its size from; `None` if it has that.
fn annotated<J: GenericJob + Clone>(job: &J, context: ReconcileContext<'_>) -> Option<J> {
    let generation = job.live_generation(context.gates)?;
    if job.finished().is_some() || job.annotation(RAYCLUSTER_GENERATION) == Some(&generation) {
        return None;
    }
    let mut annotated = job.clone();
    let annotations = annotated.metadata_mut().annotations.get_or_insert_default();
    annotations.insert(RAYCLUSTER_GENERATION.to_owned(), generation);
    Some(annotated)
}

/// A job without a slice that is not over: `None` if it needs one.
fn without_slice<J: GenericJob>(job: &J, slices: &Slices<'_>) -> Option<Vec<ReconcileStep<J>>> {
    if !slices.have_ended() {
        return None;
    }
    let over = slices.finished.iter().filter_map(|slice| remove_finalizer(slice));
    Some(over.chain(finalize_job(job)).collect())
}

/// What the slice with quota means for the job.
fn with_holder<J: GenericJob + Clone>(
    job: &J,
    holder: &Workload,
    context: ReconcileContext<'_>,
) -> Vec<ReconcileStep<J>> {
    if is_deleting(&holder.metadata) {
        return with_deleted(job, holder, context).into_iter().collect();
    }
    let mut steps = workload_keys::steps(job, holder, context);
    steps.extend(update_reclaimable_pods(job, holder, context.gates));
    if holder.is_evicted() {
        steps.extend(stop_or_release(job, holder, context));
    } else if job.is_suspended() {
        steps.extend(start_or_move_to_queue(job, holder, context));
    } else if job.is_managed_elsewhere() && !holder.is_admitted() {
        // No gate holds the pods of its copy.
        steps.extend(stop(job, Some(holder), StopReason::NotAdmitted, context));
    }
    // A holder that is not admitted yet replaces one that was: the pods of that one go on, and the gate holds further ones.
    steps
}

/// What a slice means for a job without quota.
fn without_holder<J: GenericJob + Clone>(
    job: &J,
    slice: &Workload,
    context: ReconcileContext<'_>,
) -> Vec<ReconcileStep<J>> {
    if is_deleting(&slice.metadata) {
        return with_deleted(job, slice, context).into_iter().collect();
    }
    let mut steps = workload_keys::steps(job, slice, context);
    if slice.is_evicted() && !job.is_suspended() {
        steps.extend(stop_or_release(job, slice, context));
    } else if job.is_suspended() {
        steps.extend(update(job, slice, context));
        steps.extend(start_or_move_to_queue(job, slice, context));
    } else {
        // Its pods may have lost their gate under an earlier slice.
        steps.extend(stop(job, Some(slice), StopReason::NotAdmitted, context));
    }
    steps
}

fn with_deleted<J: GenericJob>(
    job: &J,
    slice: &Workload,
    context: ReconcileContext<'_>,
) -> Option<ReconcileStep<J>> {
    let stop = stop(job, Some(slice), StopReason::WorkloadDeleted, context);
    // The finalizer holds the slice, and with it the quota, until the pods are gone.
    stop.or_else(|| remove_finalizer(slice).filter(|_| !job.is_active()))
}

/// The steps towards a slice of the size of the job.
fn resize<J: GenericJob>(
    job: &J,
    sets: &[PodSet],
    holder: &Workload,
    pending: Option<&Workload>,
    context: ReconcileContext<'_>,
) -> Vec<ReconcileStep<J>> {
    if let Some(step) = follow_time_limit(job, holder) {
        return vec![step];
    }
    let Some(pending) = pending else {
        return resize_holder(job, sets, holder, context.gates).into_iter().collect();
    };
    if is_deleting(&pending.metadata) {
        return remove_finalizer(pending).into_iter().collect();
    }
    if is_unneeded(job, sets, holder, pending) {
        return vec![drop_slice(pending)];
    }
    let mut steps = workload_keys::steps(job, pending, context);
    steps.extend(if pending.has_quota_reservation() {
        follow_time_limit(job, pending).or_else(|| resize_reserved(job, sets, pending))
    } else {
        update(job, pending, context)
    });
    steps
}

/// Whether a replacement without quota is dropped.
fn is_unneeded<J: GenericJob>(
    job: &J,
    sets: &[PodSet],
    holder: &Workload,
    pending: &Workload,
) -> bool {
    // Without pod sets no size is known that would be another one.
    if pending.has_quota_reservation() || job.unresolved().is_some() {
        return false;
    }
    // A replacement that was deactivated waits for its activation. The next size gets another one.
    if pending.is_evicted() {
        return !same_counts(sets, &pending.spec.pod_sets);
    }
    // The pods that are not wanted any more run on a worker, which may take long to admit another slice.
    job.is_managed_elsewhere() && !leaves(holder) && !grows(sets, &holder.spec.pod_sets)
}

/// A slice with quota takes the time limit of its job until it is admitted: the API server keeps the limit of an admitted one. Its
/// size follows later.
fn follow_time_limit<J: GenericJob>(job: &J, slice: &Workload) -> Option<ReconcileStep<J>> {
    let limit = max_exec_time(job);
    let is_open = !slice.is_admitted() && !leaves(slice);
    let differs = is_open && slice.spec.maximum_execution_time_seconds != limit;
    differs.then(|| {
        let mut limited = slice.clone();
        limited.spec.maximum_execution_time_seconds = limit;
        ReconcileStep::ResizeSlice(Box::new(limited))
    })
}

/// The step towards a replacement with quota of the size of the job: it may shrink only.
fn resize_reserved<J: GenericJob>(
    job: &J,
    sets: &[PodSet],
    pending: &Workload,
) -> Option<ReconcileStep<J>> {
    if pending.is_evicted() {
        // Nothing runs with it: its clone is withdrawn, the job goes on.
        return Some(WorkloadStep::ReleaseQuota.of(pending));
    }
    let wanted = &pending.spec.pod_sets;
    let differs = job.unresolved().is_none() && !same_counts(sets, wanted);
    let shrinks = differs && !grows(sets, wanted);
    shrinks.then(|| ReconcileStep::ResizeSlice(Box::new(with_counts(pending, sets))))
}

fn with_counts(slice: &Workload, sets: &[PodSet]) -> Workload {
    let mut resized = slice.clone();
    for set in &mut resized.spec.pod_sets {
        if let Some(wanted) = sets.iter().find(|wanted| wanted.name == set.name) {
            set.count = wanted.count;
        }
    }
    resized
}

fn resize_holder<J: GenericJob>(
    job: &J,
    sets: &[PodSet],
    holder: &Workload,
    gates: JobGates,
) -> Option<ReconcileStep<J>> {
    // A job that stops has the size of its next start only after that.
    let held = &holder.spec.pod_sets;
    if leaves(holder) || job.unresolved().is_some() || same_counts(sets, held) {
        return None;
    }
    if grows(sets, held) {
        return match job.is_managed_elsewhere() {
            // It is about to stop.
            true if !holder.is_admitted() => None,
            true if !grows_on_workers(holder) => Some(refuse_growth(holder)),
            _ => {
                let create = || ReconcileStep::CreateSlice(ReplacedSlice::of(holder));
                Some(refuse_pod_sets(job, gates).unwrap_or_else(create))
            }
        };
    }
    Some(ReconcileStep::ResizeSlice(Box::new(with_counts(holder, sets))))
}

/// Whether another slice may replace one on its worker. Under ExactlyOnce a copy belongs to one Workload for good.
fn grows_on_workers(holder: &Workload) -> bool {
    annotation(&holder.metadata, EXECUTION) != Some(EXACTLY_ONCE)
}

/// Whether a dispatched job has to be recreated: it was edited before its start, or has a larger size and does not run, or each
/// further pod is further work.
fn must_be_recreated<J: GenericJob>(
    job: &J,
    sets: &[PodSet],
    holder: &Workload,
    gates: JobGates,
) -> bool {
    if !job.is_managed_elsewhere() || job.unresolved().is_some() || leaves(holder) {
        return false;
    }
    let is_amount = || job.copied_size().is_some_and(|size| size.is_amount_of_work());
    // Counts of elastic jobs are not compared here.
    let is_edited = || !equivalent_to_prebuilt(job, holder, None, gates);
    if grows(sets, &holder.spec.pod_sets) {
        job.is_suspended() || is_amount()
    } else {
        job.is_suspended() && is_edited()
    }
}

fn refuse_growth<J>(holder: &Workload) -> ReconcileStep<J> {
    let pods: i32 = holder.spec.pod_sets.iter().map(count).sum();
    let cluster = holder.status.cluster_name.as_deref().unwrap_or_default();
    let message = format!(
        "The job runs on worker cluster \"{cluster}\" with {pods} pods, and under execution {EXACTLY_ONCE} does not grow there; its next start has the larger size"
    );
    ReconcileStep::Refuse { reason: reasons::SIZE_KEPT, message }
}

/// A slice without quota follows its job in everything but pod sets that it cannot have.
fn update<J: GenericJob>(
    job: &J,
    slice: &Workload,
    context: ReconcileContext<'_>,
) -> Option<ReconcileStep<J>> {
    let differs = job.unresolved().is_none() && !same_work(job, slice, None, context.gates);
    differs.then(|| {
        let updated = || with_job_spec(job, slice, context.gates);
        let resize = || ReconcileStep::ResizeSlice(Box::new(updated()));
        refuse_pod_sets(job, context.gates).unwrap_or_else(resize)
    })
}

/// Ends a slice that is not needed.
fn drop_slice<J>(slice: &Workload) -> ReconcileStep<J> {
    let gone = remove_finalizer(slice).filter(|_| is_deleting(&slice.metadata));
    let (reason, message) = (reasons::OUT_OF_SYNC, OUT_OF_SYNC.to_owned());
    gone.unwrap_or_else(|| WorkloadStep::Finish { reason, message }.of(slice))
}

impl<'a> Slices<'a> {
    fn of(workloads: &[&'a Workload]) -> Self {
        let (finished, mut open): (Vec<&Workload>, Vec<&Workload>) =
            workloads.iter().copied().partition(|one| one.is_finished());
        let all = open.clone();
        // Two slices may be of the same second: then the replacement is the later one.
        open.sort_by_key(|one| (created(one), n_predecessors(one, &all)));
        let holder = holder(&open);
        let pending = pending(&open, holder);
        let is_kept = |one: &Workload| {
            let kept = [holder, pending].into_iter().flatten();
            kept.into_iter().any(|kept| std::ptr::eq(kept, one)) || is_taken_over(one, &open)
        };
        // Before the holder has left, nothing is decided about the others: the next one may be among them.
        let waits = holder.is_some_and(leaves);
        let surplus = open.iter().copied().filter(|one| !waits && !is_kept(one)).collect();
        Self { holder, pending, surplus, finished }
    }

    /// Whether one has ended for good, for instance because the job could not be started: that is the end of the job.
    fn have_ended(&self) -> bool {
        let is_replaced = |slice: &&Workload| {
            let finished = crds::meta::find(&slice.status.conditions, FINISHED);
            let reason = finished.map_or("", |one| one.reason.as_str());
            [reasons::WORKLOAD_SLICE_REPLACED, reasons::OUT_OF_SYNC].contains(&reason)
        };
        !self.finished.iter().all(is_replaced)
    }

    /// The steps that let those go that are over and being deleted.
    fn leaving<J>(&self) -> impl Iterator<Item = ReconcileStep<J>> {
        let leaving = self.finished.iter().filter(|one| is_deleting(&one.metadata));
        leaving.filter_map(|one| remove_finalizer(one))
    }

    fn unfinished(&self) -> Vec<&'a Workload> {
        let kept = [self.holder, self.pending].into_iter().flatten();
        kept.chain(self.surplus.iter().copied()).collect()
    }
}

/// Whether a slice has quota and is not admitted, while the one that it replaces is evicted or runs on a worker; or is not admitted
/// any more, while that one runs on a worker. An eviction ends with the quota of the old slice, or with the admission of the new one.
fn waits_to_replace(slice: &Workload, open: &[&Workload]) -> bool {
    let (admitted, evicted) = (slice.is_admitted(), slice.is_evicted());
    let waits_for = |old: &&Workload| {
        let waits =
            if is_dispatched(old) { !admitted || evicted } else { !admitted && old.is_evicted() };
        waits && old.has_quota_reservation() && replaces(slice, old)
    };
    slice.has_quota_reservation() && open.iter().any(waits_for)
}

/// The slice that the pods have their quota from. One that is about to lose it comes first: its pods end before anything else.
fn holder<'a>(open: &[&'a Workload]) -> Option<&'a Workload> {
    let holds = |one: &&Workload| {
        one.has_quota_reservation() && !is_taken_over(one, open) && !waits_to_replace(one, open)
    };
    let mut slices_with_quota = open.iter().copied().filter(holds);
    slices_with_quota.clone().find(|one| leaves(one)).or_else(|| slices_with_quota.next_back())
}

/// The direct replacement of the holder; without a holder the latest slice, an evicted one last.
fn pending<'a>(open: &[&'a Workload], holder: Option<&Workload>) -> Option<&'a Workload> {
    let waits = |one: &&Workload| !one.has_quota_reservation() || waits_to_replace(one, open);
    let mut waiting = open.iter().copied().filter(waits);
    match holder {
        Some(holder) => waiting.rfind(|one| replaces(one, holder)),
        None => waiting
            .enumerate()
            .max_by_key(|(at, one)| (Reverse(one.is_evicted()), *at))
            .map(|(_, one)| one),
    }
}

/// Whether a slice is about to lose its quota.
fn leaves(slice: &Workload) -> bool {
    slice.is_evicted() || is_deleting(&slice.metadata)
}

/// Whether another slice has the quota of this one. It is finished once the API shows that.
fn is_taken_over(slice: &Workload, open: &[&Workload]) -> bool {
    let takes_over = |one: &&Workload| {
        let stays = one.has_quota_reservation() && !one.is_evicted();
        stays && replaces(one, slice) && !waits_to_replace(one, open)
    };
    slice.has_quota_reservation() && open.iter().any(takes_over)
}

fn replaces(slice: &Workload, old: &Workload) -> bool {
    let annotations = slice.metadata.annotations.as_ref();
    let claim = annotations.and_then(|all| all.get(WORKLOAD_SLICE_REPLACEMENT_FOR));
    let namespace = old.metadata.namespace.as_deref().unwrap_or_default();
    claim.is_some_and(|claim| *claim == format!("{namespace}/{}", name(old)))
}

/// The length of the chain of slices before this one.
fn n_predecessors(slice: &Workload, all: &[&Workload]) -> usize {
    let (mut at, mut n) = (slice, 0);
    while let Some(before) = all.iter().find(|one| replaces(at, one)) {
        n += 1;
        // Slices that name each other are a ring.
        if n > all.len() {
            break;
        }
        at = before;
    }
    n
}

fn created(slice: &Workload) -> Option<jiff::Timestamp> {
    slice.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// Whether both have pod sets of the same names. A job may list its groups in another order than its slice, which keeps its own.
fn same_names(left: &[PodSet], right: &[PodSet]) -> bool {
    sorted_names(left) == sorted_names(right)
}

fn sorted_names(sets: &[PodSet]) -> Vec<&str> {
    let mut names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
    names.sort_unstable();
    names
}

fn grows(wanted: &[PodSet], held: &[PodSet]) -> bool {
    wanted.iter().any(|wanted| count(wanted) > pods_of(held, &wanted.name))
}

fn same_counts(left: &[PodSet], right: &[PodSet]) -> bool {
    left.len() == right.len() && left.iter().all(|set| count(set) == pods_of(right, &set.name))
}
