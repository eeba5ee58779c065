//! Results of a Job's status (docs/reference/kueue.md §7.8).

use crds::{meta::Condition, v1beta2::ReclaimablePod};

use super::{Job, pod_set::MAIN};
use crate::generic_job::JobOutcome;

/// Result of a finished Job.
pub(super) fn outcome(job: &Job) -> Option<JobOutcome> {
    let mut conditions = job.status.conditions.iter().flatten();
    conditions.find_map(|condition| {
        let success = success_of(condition)?;
        let message = condition.message.clone();
        (condition.status == "True").then_some(JobOutcome { success, message })
    })
}

/// Whether a condition is about the success of a Job that is over, or about its failure.
pub(super) fn success_of(condition: &Condition) -> Option<bool> {
    match condition.r#type.as_str() {
        "Complete" => Some(true),
        "Failed" => Some(false),
        _ => None,
    }
}

/// Whether this number of pods is ready or has succeeded.
pub(super) fn pods_ready(job: &Job, required: i32) -> bool {
    let status = &job.status;
    // A pod that has succeeded is no longer ready, and the Job controller counts it later.
    let uncounted = status.uncounted_terminated_pods.as_ref();
    let uncounted = uncounted.and_then(|pods| pods.succeeded.as_ref()).map_or(0, Vec::len);
    let ready = i64::from(status.succeeded.unwrap_or(0)) + i64::from(status.ready.unwrap_or(0));
    ready + i64::try_from(uncounted).unwrap_or(i64::MAX) >= i64::from(required)
}

/// Reclaimable pods: those of the pod set less the remaining completions. The pod set has no pods for parallelism beyond the
/// completions, so none of those can be reclaimed while the others run.
pub(super) fn reclaimable(job: &Job) -> Vec<ReclaimablePod> {
    // Without completions no pod is replaced once one has succeeded, so each is free when it ends.
    let completions = i64::from(job.spec.completions.unwrap_or(job.parallelism()));
    let remaining = (completions - terminal(job, completions)).max(0);
    let count = i32::try_from(i64::from(job.count()) - remaining).unwrap_or(0);
    // A Job with one pod at a time needs it until the end (docs/reference/kueue.md §7.8).
    if job.parallelism() <= 1 || count <= 0 {
        return vec![];
    }
    vec![ReclaimablePod { name: MAIN.to_owned(), count }]
}

/// Finished completions. An index can be in both lists, and above completions that were lowered.
fn terminal(job: &Job, completions: i64) -> i64 {
    let status = &job.status;
    if !job.is_indexed() {
        return i64::from(status.succeeded.unwrap_or(0));
    }
    let lists = [&status.completed_indexes, &status.failed_indexes].into_iter().flatten();
    let mut ranges: Vec<(i64, i64)> =
        lists.flat_map(|list| list.split(',')).filter_map(range).collect();
    ranges.sort_unstable();
    let mut next = 0;
    let mut n_terminal = 0;
    for (first, last) in ranges {
        let first = first.max(next);
        let end = (last + 1).min(completions);
        n_terminal += (end - first).max(0);
        next = next.max(end);
    }
    n_terminal
}

/// `3` or `3-5`.
fn range(text: &str) -> Option<(i64, i64)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
    Some((first.into(), last.into()))
}
