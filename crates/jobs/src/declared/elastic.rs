//! Scheduling gates of elastic jobs of a declared kind (docs/reference/kueue.md §4.13, §5.3).

use crds::validation::{Errors, FieldError};

use super::{declared_pod_set::DeclaredPodSet, fields::JobFields};
use crate::{
    defaulting::PatchAdd, elastic::elastic_job_gate, start::pod_set_info::SCHEDULING_GATES,
};

/// The gates that templates of an elastic job lack.
pub(super) fn missing_gates(
    fields: Option<&JobFields>,
    pod_sets: &[DeclaredPodSet],
) -> Vec<PatchAdd> {
    let sets = gated_sets(fields, pod_sets).into_iter();
    sets.filter_map(|set| elastic_job_gate::add(&set.at.to_string(), &set.template)).collect()
}

/// Errors of templates of an elastic job without the gate: their pods would run without quota.
pub(super) fn check_gates(fields: Option<&JobFields>, pod_sets: &[DeclaredPodSet]) -> Errors {
    if fields.is_none_or(|fields| !fields.checks.elastic_gates) {
        return Errors::new();
    }
    let sets = gated_sets(fields, pod_sets).into_iter();
    let open = sets.filter(|set| !elastic_job_gate::is_in(&set.template));
    let error = |set: &DeclaredPodSet| {
        let listed = set.template.spec.as_ref().and_then(|spec| spec.rest.get(SCHEDULING_GATES));
        let field = format!("{}.spec.{SCHEDULING_GATES}", set.path);
        FieldError::invalid(field, listed, "an elastic job must have the ElasticJobSchedulingGate")
    };
    open.map(error).collect()
}

/// Pod sets with templates of the job that have the gate, the head of a RayCluster last, as upstream lists errors.
fn gated_sets<'a>(
    fields: Option<&JobFields>,
    pod_sets: &'a [DeclaredPodSet],
) -> Vec<&'a DeclaredPodSet> {
    let Some(fields) = fields.filter(|fields| !fields.gated_elsewhere) else {
        return Vec::new();
    };
    // A template in another object belongs to many jobs.
    let mut sets: Vec<&DeclaredPodSet> = pod_sets.iter().filter(|set| set.base.is_none()).collect();
    if fields.ray.is_some() && !sets.is_empty() {
        sets.rotate_left(1);
    }
    sets
}
