//! Validation that all job kinds share (docs/reference/kueue.md §5.3).

mod elastic;
mod exec_time;
mod pod_index_offset;
mod priority_class;
mod queue_name;
mod slices;
mod template;
#[cfg(test)]
mod tests;
pub(crate) mod topology;

pub use queue_name::{leaves_queue_while_suspended, queue_of_reserved_quota};
pub(crate) use slices::{MAX_LAYERS, layers};
pub use template::AnnotatedTemplate;

use std::collections::BTreeMap;

use crds::{
    meta::controller,
    names::labels::MULTI_KUEUE_ORIGIN,
    v1beta2::MAX_POD_SETS,
    validation::{Errors, FieldError, gated_by, immutable, labels::subdomain_problems},
};

use crate::{GenericJob, JobGates, prebuilt::prebuilt_name};

/// Validation errors of a new job.
pub fn create<J: GenericJob>(job: &J, gates: JobGates) -> Errors {
    if job.is_held_by_other() {
        return vec![];
    }
    if let Some(errors) = job.creation_errors_alone(gates) {
        return errors;
    }
    let mut errors = check_syntax(job, gates);
    errors.extend(check_common(job, gates));
    // What a former version accepted is still dispatched, and its controller still makes its children.
    if is_copy(job) || controller(job.metadata()).is_some() {
        accept_group_of_only_template(&mut errors, job, gates);
    }
    errors.extend(pod_index_offset::check(job, gates));
    errors.extend(job.validate_create(gates));
    errors
}

/// Validation errors of an update. `default_queue`: the namespace has a default LocalQueue.
pub fn update<J: GenericJob>(new: &J, old: &J, default_queue: bool, gates: JobGates) -> Errors {
    // One that is ours does not leave its checks with the change that gives it away.
    let is_left_alone = new.is_held_by_other() && old.is_held_by_other();
    if is_left_alone || !new.checks_update_of(old, gates) {
        return vec![];
    }
    let mut errors = check_changed(new, old, gates);
    errors.extend(pod_index_offset::check_changed(new, old, gates));
    errors.extend(queue_name::check_change(new, old, default_queue));
    errors.extend(check_prebuilt_change(new, old, gates));
    if new.is_job() {
        errors.extend(exec_time::check_change(new, old));
    }
    errors.extend(priority_class::check_change(new, old));
    errors.extend(pod_index_offset::check_change(new, old, gates));
    if new.is_job() {
        errors.extend(elastic::check_change(new, old, gates));
    } else {
        errors.extend(queue_name::check_removal(new, old));
    }
    if gates.admission_gated_by {
        errors.extend(gated_by::check_update(&annotations(new), &annotations(old)));
    }
    errors.extend(new.validate_update(old, gates));
    errors
}

/// Errors of a changed job that a new one may have, too, as far as all kinds share them.
fn check_changed<J: GenericJob>(new: &J, old: &J, gates: JobGates) -> Errors {
    // As in a new job; these errors are those of its kind.
    if new.creation_errors_alone(gates).is_some() {
        return vec![];
    }
    let mut errors = if new.checks().syntax_of_updates { check_syntax(new, gates) } else { vec![] };
    errors.extend(check_common(new, gates));
    // A former version accepted such a group: what has it is still started and stopped.
    accept_group_of_only_template(&mut errors, old, gates);
    errors
}

/// Errors of labels and annotations that upstream does not look at again in updates of some kinds.
fn check_syntax<J: GenericJob>(job: &J, gates: JobGates) -> Errors {
    let mut errors = queue_name::check(job);
    if job.is_job() {
        errors.extend(exec_time::check(job));
    }
    errors.extend(elastic::check_support(job, gates));
    errors
}

/// Errors that apply to new and changed jobs.
fn check_common<J: GenericJob>(job: &J, gates: JobGates) -> Errors {
    let mut errors = check_prebuilt(job, gates);
    if gates.admission_gated_by {
        errors.extend(gated_by::check(&annotations(job)));
    }
    // As upstream, which looks at no other topology annotation then.
    if let Some(error) = elastic::check_topology(job, gates) {
        errors.push(error);
    } else {
        errors.extend(check_topology(job, gates));
    }
    errors.extend(check_number_of_pod_sets(job));
    errors
}

/// Errors of the pod templates.
pub fn of_templates<J: GenericJob>(job: &J, gates: JobGates) -> Errors {
    let mut errors = check_topology(job, gates);
    errors.extend(check_number_of_pod_sets(job));
    errors
}

fn check_topology<J: GenericJob>(job: &J, gates: JobGates) -> Errors {
    if !gates.topology || !job.checks().topology {
        return vec![];
    }
    let templates = job.templates();
    let found = topology::check(&templates, gates).into_iter();
    let mut errors: Errors = found.map(|error| error.with_advice(job.topology_advice())).collect();
    if job.checks().pod_set_groups {
        errors.extend(topology::check_groups(&templates));
    }
    errors
}

/// Removes the errors that `job` has because its only template is in a pod set group: former versions accepted such a job.
fn accept_group_of_only_template<J: GenericJob>(errors: &mut Errors, job: &J, gates: JobGates) {
    let checks = gates.topology && job.checks().topology && job.checks().pod_set_groups;
    if errors.is_empty() || !checks {
        return;
    }
    let templates = job.templates();
    if templates.len() == 1 {
        let accepted = topology::check_groups(&templates);
        errors.retain(|error| !accepted.contains(error));
    }
}

fn annotations<J: GenericJob>(job: &J) -> BTreeMap<String, String> {
    job.metadata().annotations.clone().unwrap_or_default()
}

/// Whether a job is the copy of one of a manager cluster.
fn is_copy<J: GenericJob>(job: &J) -> bool {
    job.label(MULTI_KUEUE_ORIGIN).is_some()
}

fn check_prebuilt<J: GenericJob>(job: &J, gates: JobGates) -> Errors {
    let prebuilt = prebuilt_name(job, gates);
    // The copy of a dispatched job names the clone, whatever its kind is.
    let refused = !job.kind().supports_prebuilt() && job.refuses_prebuilt() && !is_copy(job);
    // On other kinds the label has no effect (docs/reference/kueue.md §5.3).
    if prebuilt.name.is_empty() || !(job.kind().supports_prebuilt() || refused) {
        return vec![];
    }
    let problems = subdomain_problems(prebuilt.name).into_iter();
    let mut errors: Errors = problems
        .map(|problem| FieldError::invalid(prebuilt.field(), prebuilt.name, problem))
        .collect();
    if refused {
        let detail = format!("Is not supported for \"{}\"", job.kind().gvk());
        errors.push(FieldError::forbidden(prebuilt.field(), detail));
    }
    errors
}

fn check_prebuilt_change<J: GenericJob>(new: &J, old: &J, gates: JobGates) -> Errors {
    let prebuilt = prebuilt_name(new, gates);
    // Of a kind that has none, only one that refuses the name looks at a change of it.
    if !(new.kind().supports_prebuilt() || new.refuses_prebuilt())
        || new.spec_suspended()
        // Each size of an elastic job has a Workload of its own.
        || new.is_elastic(gates)
        || prebuilt.name == prebuilt_name(old, gates).name
    {
        return vec![];
    }
    vec![immutable(prebuilt.field(), prebuilt.name)]
}

fn check_number_of_pod_sets<J: GenericJob>(job: &J) -> Errors {
    let n_templates = job.templates().len();
    if !job.checks().number_of_pod_sets || n_templates <= MAX_POD_SETS {
        return vec![];
    }
    vec![FieldError::invalid(
        "spec",
        n_templates,
        format!("must have at most {MAX_POD_SETS} pod sets"),
    )]
}
