//! What webhooks refuse about a RayCluster in a queue, and about a RayJob in a queue (docs/reference/kueue.md §5.3).

use crds::{
    names::MULTI_KUEUE_CONTROLLER,
    v1beta2::MAX_POD_SETS,
    validation::{Errors, FieldError},
};
use serde_json::Value;

use super::{AUTOSCALING, HEAD, RaySpec, WORKER_GROUPS};
use crate::{GenericJob, JobGates, declared::DeclaredJob};

/// Refusal of an autoscaler in a RayCluster of its own.
const NOT_ELASTIC: &str = "a kueue-managed RayCluster can use autoscaling only as an elastic job: enable the \
                           ElasticJobsViaWorkloadSlices feature gate and set the \"kueue.x-k8s.io/elastic-job\": \
                           \"true\" annotation";

/// Refusal of an autoscaler in the RayCluster of another job.
const NO_SLICES: &str =
    "a kueue managed job should only use autoscaling when workload slicing is enabled";

/// Refusal of an autoscaler in an elastic RayCluster for a worker cluster.
const NOT_COPIED: &str =
    "in-tree autoscaling is not supported for a MultiKueue-managed elastic RayCluster";

impl RaySpec {
    /// Errors of a job in a queue.
    pub(in crate::declared) fn check(&self, job: &DeclaredJob, gates: JobGates) -> Errors {
        let object = &job.object;
        let Some(cluster) = self.cluster.get(object) else {
            return self.check_selection(object).into_iter().collect();
        };
        let mut errors = self.check_job(object);
        let path = self.path();
        if cluster[AUTOSCALING] == true {
            errors.extend(self.check_autoscaling(job, gates));
        }
        let groups = cluster[WORKER_GROUPS].as_array().map(Vec::as_slice).unwrap_or_default();
        // Workers and head; the submitter of a RayJob is not counted.
        let n_sets = groups.len() + 1;
        if n_sets > MAX_POD_SETS {
            let field = format!("{path}.{WORKER_GROUPS}");
            errors.push(FieldError::too_many(field, n_sets, MAX_POD_SETS));
        }
        for (index, _) in groups.iter().enumerate().filter(|(_, one)| one["groupName"] == HEAD) {
            let field = format!("{path}.{WORKER_GROUPS}[{index}].groupName");
            let detail = format!("{HEAD:?} is reserved for the head group");
            errors.push(FieldError::forbidden(field, detail));
        }
        errors
    }

    fn check_autoscaling(&self, job: &DeclaredJob, gates: JobGates) -> Option<FieldError> {
        let is_cluster = self.cluster.parents().is_empty();
        let field = format!("{}.{AUTOSCALING}", self.path());
        if !job.is_elastic(gates) {
            // A container more takes quota that the Workload does not have, and more workers do as well.
            let detail = if is_cluster { NOT_ELASTIC } else { NO_SLICES };
            return Some(FieldError::invalid(field, true, detail));
        }
        // The autoscaler of a worker cluster changes a copy, of which the manager knows nothing.
        let is_copied = is_cluster && job.managed_by() == Some(MULTI_KUEUE_CONTROLLER);
        is_copied.then(|| FieldError::forbidden(field, NOT_COPIED))
    }

    /// A RayJob without a RayCluster names one that is there, and Kueue leaves it alone.
    fn check_selection(&self, object: &Value) -> Option<FieldError> {
        let job = self.job.as_ref()?;
        let is_selected = selector(job.get(object)?).is_some();
        let detail =
            "rayClusterSpec is required for Kueue-managed jobs that don't use clusterSelector";
        (!is_selected).then(|| FieldError::required(self.path(), detail))
    }

    fn check_job(&self, object: &Value) -> Errors {
        let Some((at, job)) = self.job.as_ref().and_then(|at| Some((at, at.get(object)?))) else {
            return Errors::new();
        };
        let (path, mut errors) = (at.field_path(), Errors::new());
        // The cluster of a finished RayJob would run on without quota.
        if job["shutdownAfterJobFinishes"] != true {
            let detail = "a kueue managed job should delete the cluster after finishing";
            let field = format!("{path}.shutdownAfterJobFinishes");
            errors.push(FieldError::invalid(field, false, detail));
        }
        if let Some(selector) = selector(job) {
            let detail = "a kueue managed job should not use an existing cluster";
            errors.push(FieldError::invalid(format!("{path}.clusterSelector"), selector, detail));
        }
        errors
    }
}

fn selector(job: &Value) -> Option<&Value> {
    let selector = &job["clusterSelector"];
    selector.as_object().is_some_and(|labels| !labels.is_empty()).then_some(selector)
}
