//! The condition PodsReady of a Workload (docs/reference/kueue.md §7.3, step 5).

use crate::GenericJob;

/// Whether the required pods are ready; `None` for a finished or deleted job, and for one with pods of another program.
pub fn pods_ready<J: GenericJob>(job: &J) -> Option<bool> {
    let deleting = job.metadata().deletion_timestamp.is_some();
    (job.finished().is_none() && !deleting && !job.is_skipped()).then(|| job.pods_ready())
}
