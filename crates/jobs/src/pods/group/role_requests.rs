//! Members that request more than their role has quota for (docs/reference/kueue.md §7.9).
//!
//! A pod may name its role itself, and quota is that of the oldest pod of the role, or of a prebuilt Workload. A member that requests
//! more would run on quota that its group does not have: it keeps its gate, and the others start.

use crds::v1beta2::{PodSet, Workload};

use super::{GroupContext, Steps, members::Members};
use crate::{JobGates, pods::Pod, reconcile::ReconcileStep};

/// Why a pod may not run with the quota of its role; `None` if it may, or if no pod set is of its role. `exceeded` is what a pod
/// requests beyond the template of a pod set.
#[must_use]
pub fn role_excess(
    pod: &Pod,
    pod_sets: &[PodSet],
    exceeded: &dyn Fn(&Pod, &PodSet) -> Option<String>,
    gates: JobGates,
) -> Option<String> {
    if !gates.verify_role_requests {
        return None;
    }
    let role = pod.role();
    let set = pod_sets.iter().find(|set| set.name == role)?;
    let exceeded = exceeded(pod, set)?;
    Some(format!("Pod requests more than its role {role:?} has quota for: {exceeded}"))
}

impl GroupContext<'_> {
    /// The step about a gated member that may not start.
    pub(super) fn hold(&self, pod: &Pod, workload: &Workload) -> Option<ReconcileStep<Pod>> {
        let message = role_excess(pod, &workload.spec.pod_sets, self.exceeded, self.gates)?;
        let pod = pod.metadata.name.clone().unwrap_or_default();
        Some(ReconcileStep::HoldMember { pod, message })
    }
}

/// Steps about the members of a dispatched group that get no copy.
pub(super) fn held(workload: &Workload, members: &Members<'_>, context: GroupContext<'_>) -> Steps {
    // A member with the status of a copy has one. There are thousands, and they stay gated.
    let waits = |pod: &&&Pod| pod.is_gated() && !pod.is_deleting() && !pod.shows_node();
    let waiting = members.kept.iter().filter(waits);
    waiting.filter_map(|pod| context.hold(pod, workload)).collect()
}
