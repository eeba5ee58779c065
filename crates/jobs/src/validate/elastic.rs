//! Elastic jobs: no required or preferred topology; the annotation is immutable.

use crds::{
    names::annotations::{ELASTIC_JOB, POD_SET_PREFERRED_TOPOLOGY, POD_SET_REQUIRED_TOPOLOGY},
    validation::{Errors, FieldError, immutable},
};

use crate::{GenericJob, JobGates};

/// Topology annotations that elastic jobs do not support.
const UNSUPPORTED: [(&str, &str); 2] =
    [(POD_SET_REQUIRED_TOPOLOGY, "required"), (POD_SET_PREFERRED_TOPOLOGY, "preferred")];

/// A kind without slices has no elastic jobs.
pub(super) fn check_support<J: GenericJob>(job: &J, gates: JobGates) -> Errors {
    if !job.asks_for_elasticity(gates) || job.kind().supports_elastic() {
        return vec![];
    }
    let detail = format!("elastic job is not supported for \"{}\"", job.kind().gvk());
    vec![FieldError::forbidden(field(), detail)]
}

pub(super) fn check_topology<J: GenericJob>(job: &J, gates: JobGates) -> Errors {
    if !job.is_elastic(gates) || gates.elastic_jobs_with_topology || !job.checks_elastic_topology()
    {
        return vec![];
    }
    let mut errors = Errors::new();
    for template in job.templates() {
        for (key, name) in UNSUPPORTED.iter().filter(|(key, _)| template.get(key).is_some()) {
            errors.push(FieldError::forbidden(
                format!("{}.{key}", template.field()),
                format!("{name} topology is not supported with elastic jobs"),
            ));
        }
    }
    errors
}

pub(super) fn check_change<J: GenericJob>(new: &J, old: &J, gates: JobGates) -> Errors {
    let now = new.asks_for_elasticity(gates);
    if now == old.asks_for_elasticity(gates) {
        return vec![];
    }
    vec![immutable(field(), now)]
}

fn field() -> String {
    format!("metadata.annotations[{ELASTIC_JOB}]")
}
