//! What a Workload is told about the pods of its job (docs/reference/kueue.md §7.3, step 5).

use crate::GenericJob;

/// Whether the pods that the job needs are ready. None of a job whose end is told instead, or that is on its way out.
pub fn pods_ready<J: GenericJob>(job: &J) -> Option<bool> {
    let going = job.metadata().deletion_timestamp.is_some();
    (job.finished().is_none() && !going).then(|| job.pods_ready())
}
