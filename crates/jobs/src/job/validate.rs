//! Validation of batch/v1 Jobs (docs/reference/kueue.md §5.3).

use crds::{
    names::annotations::{JOB_COMPLETIONS_EQUAL_PARALLELISM, JOB_MIN_PARALLELISM},
    validation::{Errors, FieldError, immutable},
};

use super::Job;
use crate::{GenericJob, JobGates, go_parse};

fn min_field() -> String {
    format!("metadata.annotations[{JOB_MIN_PARALLELISM}]")
}

fn sync_field() -> String {
    format!("metadata.annotations[{JOB_COMPLETIONS_EQUAL_PARALLELISM}]")
}

/// Errors of a new Job.
pub(super) fn create(job: &Job, gates: JobGates) -> Errors {
    let mut errors = check_elastic(job, gates);
    errors.extend(check_min_parallelism(job));
    errors.extend(check_sync(job));
    errors
}

/// Errors of an update. Minimum parallelism is validated only if the annotation changes: parallelism may be lowered
/// below it.
pub(super) fn update(job: &Job, old: &Job, gates: JobGates) -> Errors {
    let mut errors = check_elastic(job, gates);
    let minimum = |job: &Job| job.annotation(JOB_MIN_PARALLELISM).unwrap_or_default().to_owned();
    if minimum(job) != minimum(old) {
        errors.extend(check_min_parallelism(job));
    }
    // One that runs with unequal counts, since no webhook saw it, can still be stopped.
    let synced = |job: &Job| {
        let sync = job.annotation(JOB_COMPLETIONS_EQUAL_PARALLELISM).map(str::to_owned);
        (sync, job.is_indexed(), job.parallelism(), job.spec.completions)
    };
    if job.spec_suspended() || synced(job) != synced(old) {
        errors.extend(check_sync(job));
    }
    // Partial admission writes the admitted count into parallelism (docs/reference/kueue.md §7.8),
    // so a running Job keeps it.
    if old.annotation(JOB_MIN_PARALLELISM).is_some()
        && !old.spec_suspended()
        && job.parallelism() != old.parallelism()
    {
        let detail = "cannot change when partial admission is enabled and the job is not suspended";
        errors.push(FieldError::forbidden("spec.parallelism", detail));
    }
    // The start has written the counts by the old value; a restore would go by the new one.
    if !old.spec_suspended()
        && !job.spec_suspended()
        && job.syncs_completions() != old.syncs_completions()
    {
        let detail = "field is immutable while the job is not suspended";
        errors.push(FieldError::forbidden(sync_field(), detail));
    }
    if job.spec.managed_by != old.spec.managed_by {
        errors.push(immutable("spec.managedBy", &job.spec.managed_by));
    }
    errors
}

/// Elastic jobs and partial admission exclude each other.
fn check_elastic(job: &Job, gates: JobGates) -> Errors {
    match job.annotation(JOB_MIN_PARALLELISM) {
        Some(text) if job.is_elastic(gates) => {
            let detail = "partial admission and elastic job cannot be used together";
            vec![FieldError::invalid(min_field(), text, detail)]
        }
        _ => vec![],
    }
}

/// Minimum parallelism is at least 1 and less than the count.
fn check_min_parallelism(job: &Job) -> Errors {
    let Some(text) = job.annotation(JOB_MIN_PARALLELISM) else { return vec![] };
    match go_parse::integer(text) {
        Ok(number) if number > 0 && number < i64::from(job.count()) => vec![],
        Ok(number) => {
            let detail = format!("should be between 0 and {}", job.count() - 1);
            vec![FieldError::invalid(min_field(), number, detail)]
        }
        Err(problem) => vec![FieldError::invalid(min_field(), text, problem)],
    }
}

/// Completions can be kept equal to parallelism if they are equal and the Job is Indexed.
fn check_sync(job: &Job) -> Errors {
    let Some(text) = job.annotation(JOB_COMPLETIONS_EQUAL_PARALLELISM) else { return vec![] };
    let synced = match go_parse::boolean(text) {
        Ok(synced) => synced,
        Err(problem) => return vec![FieldError::invalid(sync_field(), text, problem)],
    };
    let mut errors = Errors::new();
    if synced && !job.is_indexed() {
        let detail = "should not be enabled for NonIndexed jobs";
        errors.push(FieldError::invalid(sync_field(), text, detail));
    }
    if synced && job.parallelism() != job.spec.completions.unwrap_or(1) {
        let detail = format!(
            "should be equal to parallelism when {JOB_COMPLETIONS_EQUAL_PARALLELISM} annotation is true"
        );
        errors.push(FieldError::invalid("spec.completions", job.spec.completions, detail));
    }
    errors
}
