//! What makes a pod of a set a member of the group of its replica (docs/reference/kueue.md §7.8).
//!
//! The operator creates the pods, held by the gate that the webhook of pods gives them. Once a pod says which replica it is in,
//! it gets the name of its group, the size and its role; from then on it is a pod of a group like any other.

use super::set::LeaderWorkerSet;
use crate::{
    GenericJob, JobGates, Pod, go_parse,
    integrations::controller,
    pods,
    replicas::{Membership, replica_workload_name},
};

/// Role of a leader with a template of its own.
pub(super) const LEADER_ROLE: &str = "leader";

/// Role of the others.
pub(super) const WORKER_ROLE: &str = "worker";

/// Role of all pods of a set with one template.
pub(super) const MAIN_ROLE: &str = "main";

/// Label of a pod with the index of its replica.
const GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";

/// Label of a pod with its index in the replica. The leader has 0; the operator sets it at creation.
const WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";

/// The replica of a pod; `None` while the operator has not said it.
pub(super) fn replica_of(pod: &Pod) -> Option<u32> {
    u32::try_from(go_parse::unsigned(pod.label(GROUP_INDEX)?)?).ok()
}

/// The pod as a member of the group of its replica; `None` if it is that already, or its replica is not known yet.
pub(super) fn adopted(set: &LeaderWorkerSet, pod: &Pod, gates: JobGates) -> Option<Pod> {
    // A pod that ends joins no group: it would count as one of its members.
    if pod.is_deleting() || pod.is_terminated() {
        return None;
    }
    if controller(&pod.metadata).is_none_or(|owner| owner.kind != "StatefulSet") {
        // It has the labels of the set and is none of its pods: nothing would ever start it.
        let mut adopted = pod.clone();
        pods::ungate(&mut adopted);
        return (adopted != *pod).then_some(adopted);
    }
    let membership = Membership {
        workload: replica_workload_name(set, replica_of(pod)?, gates),
        total: set.size(),
        role: role(set, pod),
        queue_name: set.queue_name(),
    };
    let adopted = membership.of(pod, gates);
    (adopted != *pod).then_some(adopted)
}

fn role(set: &LeaderWorkerSet, pod: &Pod) -> &'static str {
    match (set.has_leader_template(), pod.label(WORKER_INDEX)) {
        (false, _) => MAIN_ROLE,
        (true, Some("0")) => LEADER_ROLE,
        (true, _) => WORKER_ROLE,
    }
}
