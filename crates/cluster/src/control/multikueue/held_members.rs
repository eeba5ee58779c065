//! Members of a group that get no copy: they request more than their role has quota for.

use ::jobs::{JobGates, JobObject, pods::group::role_excess};
use crds::v1beta2::Workload;
use index::Index;

use crate::control::jobs::exceeded_requests;

/// Whether a job is a member of a group that keeps its gate with this Workload. A worker that does not compare requests would run it.
pub(super) fn is_held(
    job: &JobObject,
    workload: &Workload,
    index: &Index,
    gates: JobGates,
) -> bool {
    let member = job.as_pod().filter(|pod| pod.is_gated() && job.is_group_member(gates));
    member.is_some_and(|pod| {
        let exceeded = |pod: &_, set: &_| exceeded_requests(index, pod, set);
        role_excess(pod, &workload.spec.pod_sets, &exceeded, gates).is_some()
    })
}
