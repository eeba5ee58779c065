//! Name of the LocalQueue.

use crds::{
    names::labels::QUEUE_NAME,
    validation::{Errors, FieldError, immutable, labels::subdomain_problems},
};

use crate::GenericJob;

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
