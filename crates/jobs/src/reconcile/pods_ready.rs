//! The condition PodsReady of a Workload (docs/reference/kueue.md §7.3, step 5).

use crds::{meta::is_deleting, v1beta2::Workload};

use crate::{GenericJob, JobGates, pod_counts::n_pods};

/// Whether the required pods are ready; `None` for a finished or deleted job, and for one with pods of another program. Of an elastic
/// job they are those of the slice: further ones wait for another slice, and are no reason to evict this one.
pub fn pods_ready<J: GenericJob>(job: &J, workload: &Workload, gates: JobGates) -> Option<bool> {
    let deleting = is_deleting(job.metadata());
    let ready = || {
        if job.is_elastic(gates) {
            job.granted_pods_ready(n_pods(&workload.spec.pod_sets))
        } else {
            job.pods_ready()
        }
    };
    (job.finished().is_none() && !deleting && !job.is_skipped()).then(ready)
}
