//! Start and restore of a Job with pod set infos (docs/reference/kueue.md §7.7, §7.8).

use super::{Job, pod_set};
use crate::{
    GenericJob, JobGates,
    start::admitted_infos::remove_identity,
    start::pod_set_info::{PodSetInfo, StartError},
};

/// Unsuspends the Job with the info of its pod set. On an error the Job is unchanged.
pub(super) fn run_with(
    job: &mut Job,
    infos: &[PodSetInfo],
    gates: JobGates,
) -> Result<(), StartError> {
    let [info] = infos else {
        return Err(StartError::WrongNumber { expected: 1, admitted: infos.len() });
    };
    let mut template = job.spec.template.clone();
    info.merge_into(&mut template, job.is_elastic(gates))?;
    job.spec.template = template;
    job.spec.suspend = Some(false);
    set_count(job, info.count, gates);
    Ok(())
}

/// Restores template and counts. Returns whether anything changed. Without an info only the identity labels are
/// removed: they would conflict with the next start.
pub(super) fn restore(job: &mut Job, infos: &[PodSetInfo], gates: JobGates) -> bool {
    let count_changed = match infos {
        [info] => set_count(job, info.count, gates),
        _ => false,
    };
    restore_template(job, infos) || count_changed
}

/// The same of the template alone.
pub(super) fn restore_template(job: &mut Job, infos: &[PodSetInfo]) -> bool {
    let template = &mut job.spec.template;
    match infos {
        [info] => info.restore(template, pod_set::is_controllers),
        _ => remove_identity(template),
    }
}

/// Sets the admitted count of a Job with partial admission. Returns whether it changed.
fn set_count(job: &mut Job, count: i32, gates: JobGates) -> bool {
    // Only partial admission changes counts. Those of other Jobs are the user's alone.
    if job.min_parallelism().is_none() || !gates.partial_admission {
        return false;
    }
    let before = (job.spec.parallelism, job.spec.completions);
    job.spec.parallelism = Some(count);
    if job.syncs_completions() {
        job.spec.completions = Some(count);
    }
    before != (job.spec.parallelism, job.spec.completions)
}
