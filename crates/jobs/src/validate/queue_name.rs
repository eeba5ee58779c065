//! Name of the LocalQueue.

use crds::{
    names::labels::QUEUE_NAME,
    validation::{Errors, FieldError, immutable, labels::subdomain_problems},
};

use crate::{GenericJob, JobObject, job};

fn field() -> String {
    format!("metadata.labels[{QUEUE_NAME}]")
}

/// The label is a valid name, and not empty.
pub(super) fn check<J: GenericJob>(job: &J) -> Errors {
    let Some(name) = job.label(QUEUE_NAME) else { return vec![] };
    subdomain_problems(name)
        .into_iter()
        .map(|problem| FieldError::invalid(field(), name, problem))
        .collect()
}

/// Pods that were queued one by one cannot leave their queue.
pub(super) fn check_removal<J: GenericJob>(new: &J, old: &J) -> Option<FieldError> {
    let removed = new.queue_name().is_empty() && !old.queue_name().is_empty();
    // While pods run every change is an error already.
    (removed && new.spec_suspended()).then(|| immutable(field(), ""))
}

/// Whether a Job that is suspended before and after an update gets another queue, or none. It is refused if its Workload holds quota,
/// as while the Job waits for admission checks: the API refuses another queue name on that Workload, so the Job would be charged in
/// its old queue, and without a queue name nothing would start the Job or release its quota. Kueue refuses this for Jobs alone. A
/// request that suspends a running Job may change its queue.
pub fn leaves_queue_while_suspended(new: &JobObject, old: &JobObject) -> bool {
    new.kind() == job::kind()
        && !(new.is_held_by_other() && old.is_held_by_other())
        && old.spec_suspended()
        && new.spec_suspended()
        && new.queue_name() != old.queue_name()
}

/// The error of an update that `leaves_queue_while_suspended` if the Workload holds quota.
pub fn queue_of_reserved_quota(new: &JobObject) -> FieldError {
    immutable(field(), new.queue_name())
}

/// The queue name is immutable while the job runs, and cannot be removed in a namespace with a default LocalQueue.
pub(super) fn check_change<J: GenericJob>(new: &J, old: &J, default_queue: bool) -> Errors {
    let (now, before) = (new.queue_name(), old.queue_name());
    let mut errors = Errors::new();
    if !new.spec_suspended() && now != before {
        errors.push(immutable(field(), now));
    }
    // The defaulting webhook sees creations only, so it would not put the default back.
    if default_queue && now.is_empty() && !before.is_empty() {
        let detail = "queue-name must not be empty in namespace with default queue";
        errors.push(FieldError::invalid(field(), now, detail));
    }
    errors
}
