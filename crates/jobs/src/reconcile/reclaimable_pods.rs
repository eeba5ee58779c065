//! Pods of a Workload that need no quota any more, because they have ended.
//!
//! They follow from the counts of the job. The counts of a job on workers may be those of an earlier copy
//! ([`GenericJob::with_counts_of`]); while such a job holds quota, they follow from the counts of the present copy.

use crds::v1beta2::{ReclaimablePod, Workload};

use super::{ReconcileStep, WorkloadStep, slices};
use crate::{GenericJob, JobGates, dispatch::remote_objects, pod_counts::pods_of};

pub(super) fn update_reclaimable_pods<J: GenericJob>(
    job: &J,
    workload: &Workload,
    gates: JobGates,
) -> Option<ReconcileStep<J>> {
    let other_copies = counts_other_copies(job, workload);
    if other_copies && workload.has_quota_reservation() {
        return None;
    }
    let counted = if other_copies { vec![] } else { job.reclaimable_pods() };
    let pods = of_slice(counted, job, workload, gates);
    let pods = clamped_reclaimable_pods(pods, workload, gates)?;
    Some(WorkloadStep::UpdateReclaimablePods(pods).of(workload))
}

/// The reclaimable pods of a Workload with a job that may show the counts of an earlier copy: those that have ended in its
/// present copy. `None` if the Workload has them, or if the job shows the counts of the present copy alone.
#[must_use]
pub fn reclaimable_pods_of_copy<J: GenericJob>(
    job: &J,
    copy: &J,
    workload: &Workload,
    gates: JobGates,
) -> Option<Vec<ReclaimablePod>> {
    let follows_copy = counts_other_copies(job, workload) && workload.has_quota_reservation();
    let counted = job.with_counts_of(copy).filter(|_| follows_copy)?.reclaimable_pods();
    clamped_reclaimable_pods(of_slice(counted, job, workload, gates), workload, gates)
}

/// Whether the counts of a job may be those of an earlier copy. The present one began at zero, so the job says nothing about the
/// pods that have ended in it.
fn counts_other_copies<J: GenericJob>(job: &J, workload: &Workload) -> bool {
    job.keeps_counts_of_copies() && remote_objects::epoch(&workload.metadata) > 1
}

/// Reclaimable pods of a slice that is smaller than its job: the job needs all others of its own size first.
fn of_slice<J: GenericJob>(
    pods: Vec<ReclaimablePod>,
    job: &J,
    workload: &Workload,
    gates: JobGates,
) -> Vec<ReclaimablePod> {
    if pods.is_empty() || !job.is_elastic(gates) {
        return pods;
    }
    let sets = job.pod_sets(gates);
    let less = |name: &str| (pods_of(&sets, name) - pods_of(&workload.spec.pod_sets, name)).max(0);
    let pods = pods.into_iter();
    let pods = pods.map(|pod| ReclaimablePod { count: pod.count - less(&pod.name), ..pod });
    pods.filter(|pod| pod.count > 0).collect()
}

/// Reclaimable pods, at most the count of each pod set; `None` if the Workload has them.
pub(crate) fn clamped_reclaimable_pods(
    pods: Vec<ReclaimablePod>,
    workload: &Workload,
    gates: JobGates,
) -> Option<Vec<ReclaimablePod>> {
    if !gates.reclaimable_pods {
        return None;
    }
    let count_of = |name: &str| pods_of(&workload.spec.pod_sets, name);
    let reclaimable: Vec<ReclaimablePod> = pods
        .into_iter()
        // The webhook refuses more reclaimable pods than the count (docs/reference/kueue.md §5.2).
        .map(|pod| ReclaimablePod { count: pod.count.min(count_of(&pod.name)), ..pod })
        .collect();
    let known = &workload.status.reclaimable_pods;
    if !workload.has_quota_reservation() {
        // The pods of the next start count from zero, unless the job has still done their work.
        let left: Vec<ReclaimablePod> =
            reclaimable.into_iter().filter(|pod| pod.count > 0).collect();
        return (left != *known).then_some(left);
    }
    // The webhook refuses fewer than before while quota is reserved (docs/reference/kueue.md §5.2).
    let keeps = |known: &ReclaimablePod| {
        let of_set = reclaimable.iter().find(|pod| pod.name == known.name);
        of_set.is_some_and(|pod| pod.count >= known.count)
    };
    let may_change =
        known.iter().all(|pod| keeps(pod) || slices::has_shrunk(workload, &pod.name, gates));
    (reclaimable != *known && may_change).then_some(reclaimable)
}
