//! Starting a Job, and putting it back as it was (docs/reference/kueue.md §7.7, §7.8).

use super::{Job, pod_set};
use crate::{
    GenericJob, JobGates,
    pod_set_info::{PodSetInfo, StartError},
    pod_sets_info::remove_identity,
};

/// Lets the Job run with what its pod set got. On an error the Job is as it was.
pub(super) fn run_with(
    job: &mut Job,
    infos: &[PodSetInfo],
    gates: JobGates,
) -> Result<(), StartError> {
    let [info] = infos else {
        return Err(StartError::WrongNumber { expected: 1, given: infos.len() });
    };
    let mut template = job.spec.template.clone();
    info.merge_into(&mut template, job.is_elastic(gates))?;
    job.spec.template = template;
    job.spec.suspend = Some(false);
    set_count(job, info.count, gates);
    Ok(())
}

/// Puts the template and the number of pods back; whether anything changed. Where it is not known what was there, only
/// what names the Workload and its queues is taken away: it would contradict the next start.
pub(super) fn restore(job: &mut Job, infos: &[PodSetInfo], gates: JobGates) -> bool {
    let [info] = infos else { return remove_identity(&mut job.spec.template) };
    let resized = set_count(job, info.count, gates);
    info.restore(&mut job.spec.template, pod_set::is_controllers) || resized
}

/// A Job that can do with fewer pods is told how many it has; whether that is news.
fn set_count(job: &mut Job, count: i32, gates: JobGates) -> bool {
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
