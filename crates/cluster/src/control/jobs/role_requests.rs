//! How members of groups are compared with the quota of their roles.

use ::jobs::{
    JobObject, Kinds, Pod,
    pods::group::{RoleComparison, RoleQuota},
};
use crds::pod::{Container, PodSpec};
use index::Index;

use super::replica_sets::ReplicaSets;
use crate::control::{job_key::JobKey, key_map::KeyMap, outbox::Tracked};

/// What tells how much quota a role has, and which pods a set controls.
#[derive(Clone, Copy)]
pub(crate) struct RoleRequests<'a> {
    pub(super) index: &'a Index,
    pub(super) kinds: &'a Kinds,
    pub(super) jobs: &'a KeyMap<JobKey, Tracked<JobObject>>,
}

impl RoleRequests<'_> {
    /// Calls a function with the comparison.
    pub(crate) fn with<T>(&self, then: impl FnOnce(RoleComparison<'_>) -> T) -> T {
        let exceeded = |pod: &Pod, quota: RoleQuota<'_>| self.exceeded(pod, quota);
        let is_of_set = |pod: &Pod| self.is_of_set(pod);
        then(RoleComparison { exceeded: &exceeded, is_of_set: &is_of_set })
    }

    /// A pod set without a pod spec has quota for pods without requests.
    fn exceeded(&self, pod: &Pod, quota: RoleQuota<'_>) -> Option<String> {
        let none = PodSpec::default();
        let template = quota.set.template.spec.as_deref().unwrap_or(&none);
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let quota_of_set = (template, quota.assigned);
        let exceeded = self.index.exceeded_requests(namespace, &pod.spec, quota_of_set);
        if exceeded.is_none() || !self.is_of_set(pod) {
            return exceeded;
        }
        let own = without_added(&pod.spec, template);
        self.index.exceeded_requests(namespace, &own, quota_of_set)
    }

    fn is_of_set(&self, pod: &Pod) -> bool {
        ReplicaSets::is_of_observed(pod, self.kinds, self.jobs)
    }
}

/// A pod without the containers that its template does not have: webhooks add them to the pods of every set.
fn without_added(pod: &PodSpec, template: &PodSpec) -> PodSpec {
    let mut own = pod.clone();
    let is_named = |one: &Container, all: &[Container]| all.iter().any(|it| it.name == one.name);
    own.containers.retain(|one| is_named(one, &template.containers));
    own.init_containers.retain(|one| is_named(one, &template.init_containers));
    own
}
