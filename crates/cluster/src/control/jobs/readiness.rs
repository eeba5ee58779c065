//! Whether the pods of a Workload are ready, by its job, group or set.

use std::sync::Arc;

use ::jobs::{
    GenericJob, JobGates, JobObject, Pod,
    generic_job::SetSize,
    pods::group::{self, ReplacementCondition},
    reconcile,
};
use crds::{meta::is_true, names::conditions::EVICTED, v1beta2::Workload};

use super::{role_requests::RoleRequests, workload_jobs::WorkloadJobs};

/// What the pods of a Workload are known by.
pub(super) struct ObservedPods<'a> {
    /// The pods of its group; `None` if it is not that of a group.
    pub(super) group: Option<Vec<&'a Pod>>,
    pub(super) gates: JobGates,
}

impl ObservedPods<'_> {
    /// Whether the pods of the job of a Workload are ready. `completed` is the job with the objects that its pod sets need.
    pub(super) fn are_ready(
        &self,
        jobs: WorkloadJobs<'_, '_>,
        completed: impl FnOnce() -> Option<Arc<JobObject>>,
    ) -> Option<bool> {
        let workload: &Workload = jobs.workload;
        let set = jobs.first_dispatched().and_then(|job| job.set_size());
        match (set, &self.group) {
            // What a set that was scaled to zero was before stays: its pods do not come back by themselves.
            (Some(SetSize::Group { pods: 0 }), _) => None,
            (_, Some(pods)) => group::pods_ready(pods, workload),
            // The pods of an evicted set are gone when its quota is released.
            (Some(SetSize::Group { .. }), None) => {
                is_true(&workload.status.conditions, EVICTED).then_some(false)
            }
            // A replica without pods has not begun.
            (Some(SetSize::Replicas { .. }), None) => None,
            (None, None) => reconcile::pods_ready(&*completed()?, workload, self.gates),
        }
    }

    /// The condition `WaitingForReplacementPods` of the Workload of a group, if it changes.
    pub(super) fn replacement(
        &self,
        workload: &Workload,
        requests: RoleRequests<'_>,
    ) -> Option<ReplacementCondition> {
        let pods = self.group.as_deref().filter(|pods| !pods.is_empty())?;
        requests.with(|all| group::waiting_for_replacement(pods, workload, all, self.gates))
    }
}
