//! Whether the pods of a Workload are ready, by its job, group or set.

use ::jobs::{
    GenericJob,
    generic_job::SetSize,
    pods::group::{self, ReplacementCondition},
    reconcile,
};
use crds::{meta::is_true, names::conditions::EVICTED, v1beta2::Workload};
use index::Index;
use runtime::watch::Key;

use super::Jobs;

impl Jobs {
    /// Whether the pods of the job of a Workload are ready.
    pub(crate) fn pods_ready(&self, key: &Key, workload: &Workload) -> Option<bool> {
        let first = self.of_workload(key, workload).first_dispatched();
        match first.and_then(|job| job.set_size()) {
            // What a set that was scaled to zero was before stays: its pods do not come back by themselves.
            Some(SetSize::Group { pods: 0 }) => None,
            _ if self.groups.contains(key) => {
                group::pods_ready(&self.pods_of(self.groups.members(key)), workload)
            }
            // The pods of an evicted set are gone when its quota is released.
            Some(SetSize::Group { .. }) => {
                is_true(&workload.status.conditions, EVICTED).then_some(false)
            }
            // A replica without pods has not begun.
            Some(SetSize::Replicas { .. }) => None,
            None => {
                let job = self.completed(key, workload);
                job.and_then(|job| reconcile::pods_ready(&*job, workload, self.config.gates))
            }
        }
    }

    /// The condition `WaitingForReplacementPods` of the Workload of a group, if it changes.
    pub(crate) fn replacement(
        &self,
        key: &Key,
        workload: &Workload,
        index: &Index,
    ) -> Option<ReplacementCondition> {
        let pods = self.pods_of(self.groups.members(key));
        let gates = self.config.gates;
        if pods.is_empty() {
            return None;
        }
        let requests = self.role_requests(index);
        requests.with(|all| group::waiting_for_replacement(&pods, workload, all, gates))
    }
}
