//! Members that request more than their role has quota for (docs/reference/kueue.md §7.9).
//!
//! A pod may name its role itself, and quota is that of the pod that the group was composed with, or of a prebuilt Workload. A member
//! that requests more would run on quota that its group does not have: it keeps its gate, and the others start.

use crds::v1beta2::{PodSet, PodSetAssignment, Workload};

use super::{GroupContext, Steps, members::Members};
use crate::{
    JobGates,
    pods::Pod,
    reconcile::{ReconcileStep, is_clone},
};

/// What a member is compared with.
#[derive(Clone, Copy)]
pub struct RoleQuota<'a> {
    /// The pod set of its role.
    pub set: &'a PodSet,
    /// What was assigned to the pod set; `None` without quota.
    pub assigned: Option<&'a PodSetAssignment>,
}

/// How members are compared with their roles.
#[derive(Clone, Copy)]
pub struct RoleComparison<'a> {
    /// What a pod requests beyond the quota of its role, as text; `None` if nothing.
    pub exceeded: &'a dyn Fn(&Pod, RoleQuota<'_>) -> Option<String>,
    /// Whether a set that is observed controls a pod. Its controller has made the pod from the template that the set has quota for; what
    /// came to it since, a webhook or an autoscaler of the cluster has added.
    pub is_of_set: &'a dyn Fn(&Pod) -> bool,
}

impl RoleComparison<'static> {
    /// Without any knowledge of requests: no member requests too much.
    pub const NONE: Self = Self { exceeded: &|_, _| None, is_of_set: &|_| false };
}

impl RoleComparison<'_> {
    /// What a pod requests beyond the quota that its Workload has for its role. The quota of a clone is decided on by its manager, which
    /// compares requests itself.
    fn exceeded_of(&self, pod: &Pod, workload: &Workload, gates: JobGates) -> Option<String> {
        if !gates.verify_role_requests || is_clone(workload) {
            return None;
        }
        let role = pod.role();
        let set = workload.spec.pod_sets.iter().find(|set| set.name == role)?;
        let admission = workload.status.admission.as_ref();
        let mut assignments = admission.iter().flat_map(|one| &one.pod_set_assignments);
        let assigned = assignments.find(|one| one.name == role);
        (self.exceeded)(pod, RoleQuota { set, assigned })
    }

    /// Whether a member keeps its gate with this Workload.
    #[must_use]
    pub fn is_held(&self, pod: &Pod, workload: &Workload, gates: JobGates) -> bool {
        pod.is_gated()
            && !pod.is_deleting()
            && self.exceeded_of(pod, workload, gates).is_some()
            && !(self.is_of_set)(pod)
    }

    /// Whether a pod requests more than one with this template, and no set is to answer for that.
    pub(super) fn exceeds(&self, pod: &Pod, set: &PodSet, gates: JobGates) -> bool {
        let quota = RoleQuota { set, assigned: None };
        gates.verify_role_requests
            && (self.exceeded)(pod, quota).is_some()
            && !(self.is_of_set)(pod)
    }
}

impl GroupContext<'_> {
    /// Whether a member keeps its gate with this Workload.
    pub(super) fn is_held(&self, pod: &Pod, workload: &Workload) -> bool {
        self.comparison.is_held(pod, workload, self.gates)
    }

    /// The step about a gated member that requests too much.
    pub(super) fn report(&self, pod: &Pod, workload: &Workload) -> Option<ReconcileStep<Pod>> {
        let exceeded = self.comparison.exceeded_of(pod, workload, self.gates)?;
        let role = pod.role();
        let message = format!("Pod requests more than its role {role:?} has quota for: {exceeded}");
        let pod = pod.metadata.name.clone().unwrap_or_default();
        Some(ReconcileStep::ReportExcess { pod, message })
    }
}

/// Steps about the members of a dispatched group that get no copy.
pub(super) fn reports(
    workload: &Workload,
    members: &Members<'_>,
    context: GroupContext<'_>,
) -> Steps {
    // A member with the status of a copy has one. There are thousands, and they stay gated.
    let waits = |pod: &&&Pod| pod.is_gated() && !pod.is_deleting() && !pod.shows_node();
    let waiting = members.kept.iter().filter(waits);
    waiting.filter_map(|pod| context.report(pod, workload)).collect()
}
