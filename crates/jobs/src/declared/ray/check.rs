//! What webhooks refuse about a RayCluster in a queue, and about a RayJob in a queue (docs/reference/kueue.md §5.3).

use crds::{
    json::items,
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

/// Refusal of a head without containers, in the words of the operator.
const NO_CONTAINERS: &str = "headGroupSpec should have at least one container";

impl RaySpec {
    /// Errors of a job in a queue.
    pub(in crate::declared) fn check(&self, job: &DeclaredJob, gates: JobGates) -> Errors {
        let object = &job.object;
        if let Some(errors) = self.check_cluster_choice(object) {
            return errors;
        }
        let Some(cluster) = self.cluster.get(object) else {
            return Errors::new();
        };
        let mut errors: Errors = self.check_shutdown(object).into_iter().collect();
        let path = self.path();
        if cluster[AUTOSCALING] == true {
            errors.extend(self.check_autoscaling(job, gates));
        }
        errors.extend(self.check_head(cluster));
        let groups = items(&cluster[WORKER_GROUPS]);
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

    /// The error that an update does not add: Kueue has this check since 0.19.6, and a job from before has to be stoppable.
    pub(in crate::declared) fn check_accepted(&self, object: &Value) -> Option<FieldError> {
        self.check_head(self.cluster.get(object)?)
    }

    /// The operator makes no pod of such a cluster, so its Workload would hold quota until the job is deleted.
    fn check_head(&self, cluster: &Value) -> Option<FieldError> {
        let containers = &cluster["headGroupSpec"]["template"]["spec"]["containers"];
        if !items(containers).is_empty() {
            return None;
        }
        let field = format!("{}.headGroupSpec.template.spec.containers", self.path());
        Some(FieldError::required(field, NO_CONTAINERS))
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

    /// The errors of a RayJob that selects a RayCluster, or has none: nothing else of it is checked. `None` for every other job.
    ///
    /// One that only selects a RayCluster has no errors, because Kueue leaves it alone.
    pub(in crate::declared) fn check_cluster_choice(&self, object: &Value) -> Option<Errors> {
        let at = self.job.as_ref()?;
        let selector = selector(at.get(object)?);
        let detail = match (selector, self.cluster.get(object)) {
            (None, Some(_)) => return None,
            (Some(_), None) => return Some(Errors::new()),
            (None, None) => {
                let detail = "rayClusterSpec is required for Kueue-managed jobs that don't use clusterSelector";
                return Some(vec![FieldError::required(self.path(), detail)]);
            }
            (Some(_), Some(_)) => "a kueue managed job should not use an existing cluster",
        };
        let field = format!("{}.clusterSelector", at.field_path());
        Some(vec![FieldError::invalid(field, selector?, detail)])
    }

    /// The cluster of a finished RayJob would run on without quota.
    fn check_shutdown(&self, object: &Value) -> Option<FieldError> {
        let at = self.job.as_ref()?;
        let shuts_down = at.get(object)?["shutdownAfterJobFinishes"] == true;
        let detail = "a kueue managed job should delete the cluster after finishing";
        let field = format!("{}.shutdownAfterJobFinishes", at.field_path());
        (!shuts_down).then(|| FieldError::invalid(field, false, detail))
    }
}

fn selector(job: &Value) -> Option<&Value> {
    let selector = &job["clusterSelector"];
    selector.as_object().is_some_and(|labels| !labels.is_empty()).then_some(selector)
}
