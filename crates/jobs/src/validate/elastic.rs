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

/// The first topology that an elastic job asks for and cannot have.
pub(super) fn check_topology<J: GenericJob>(job: &J, gates: JobGates) -> Option<FieldError> {
    if !gates.topology || !job.is_elastic(gates) || !job.checks().elastic_topology {
        return None;
    }
    job.templates().iter().find_map(|template| {
        let (key, name) = UNSUPPORTED.iter().find(|(key, _)| template.get(key).is_some())?;
        let detail = format!("{name} topology is not supported with elastic jobs");
        Some(FieldError::forbidden(format!("{}.{key}", template.field()), detail))
    })
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{job::Job, validate};

    fn errors(topology: &Value, gates: JobGates) -> Vec<String> {
        let job = json!({
            "metadata": {
                "name": "train", "annotations": {ELASTIC_JOB: "true"},
                "labels": {"kueue.x-k8s.io/queue-name": "lq"},
            },
            "spec": {"template": {"metadata": {"annotations": topology}}},
        });
        let job: Job = serde_json::from_value(job).expect("a Job decodes");
        validate::create(&job, gates).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_elastic_job_has_no_required_or_preferred_topology() {
        let refused = |mode: &str| {
            let key = format!("kueue.x-k8s.io/podset-{mode}-topology");
            let field = format!("spec.template.metadata.annotations.{key}");
            (
                json!({key: "rack"}),
                [format!("{field}: Forbidden: {mode} topology is not supported with elastic jobs")],
            )
        };
        for (topology, expected) in [refused("required"), refused("preferred")] {
            assert_eq!(errors(&topology, JobGates::default()), expected);
            let off = JobGates { topology: false, ..JobGates::default() };
            assert_eq!(errors(&topology, off), [""; 0], "without topologies they mean nothing");
        }
        let unconstrained = json!({"kueue.x-k8s.io/podset-unconstrained-topology": "true"});
        assert_eq!(errors(&unconstrained, JobGates::default()), [""; 0]);
    }

    #[test]
    fn the_first_topology_of_an_elastic_job_is_the_only_error() {
        let both =
            json!({POD_SET_REQUIRED_TOPOLOGY: "rack", POD_SET_PREFERRED_TOPOLOGY: "not a key!"});
        let found = errors(&both, JobGates::default());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("required topology is not supported"), "{found:?}");
    }
}
