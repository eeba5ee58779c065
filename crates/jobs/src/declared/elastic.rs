//! Scheduling gates of elastic jobs of a declared kind (docs/reference/kueue.md §4.13, §5.3).

use crds::validation::{Errors, FieldError};

use super::{DeclaredJob, declared_pod_set::DeclaredPodSet};
use crate::{
    GenericJob, JobGates, defaulting::PatchAdd, elastic_job_gate, pod_set_info::SCHEDULING_GATES,
};

impl DeclaredJob {
    /// The gates that templates lack.
    pub(super) fn missing_gates(&self, gates: JobGates) -> Vec<PatchAdd> {
        let sets = self.gated_sets(gates).into_iter();
        sets.filter_map(|set| elastic_job_gate::add(&set.at.to_string(), &set.template)).collect()
    }

    /// Errors of templates without the gate: their pods would run without quota.
    pub(super) fn check_gates(&self, gates: JobGates) -> Errors {
        if self.fields().is_none_or(|fields| !fields.checks.elastic_gates) {
            return Errors::new();
        }
        let sets = self.gated_sets(gates).into_iter();
        let open = sets.filter(|set| !elastic_job_gate::is_in(&set.template));
        let error = |set: &DeclaredPodSet| {
            let listed =
                set.template.spec.as_ref().and_then(|spec| spec.rest.get(SCHEDULING_GATES));
            let field = format!("{}.spec.{SCHEDULING_GATES}", set.path);
            FieldError::invalid(
                field,
                listed,
                "an elastic job must have the ElasticJobSchedulingGate",
            )
        };
        open.map(error).collect()
    }

    /// Pod sets with templates of the job that have the gate, the head of a RayCluster last, as upstream lists errors.
    fn gated_sets(&self, gates: JobGates) -> Vec<&DeclaredPodSet> {
        let has_gates = self.fields().is_some_and(|fields| !fields.gated_elsewhere);
        if !self.is_elastic(gates) || !has_gates {
            return Vec::new();
        }
        // A template in another object belongs to many jobs.
        let mut sets: Vec<&DeclaredPodSet> =
            self.pod_sets.iter().filter(|set| set.base.is_none()).collect();
        if self.ray().is_some() && !sets.is_empty() {
            sets.rotate_left(1);
        }
        sets
    }
}
