//! Members of a group that get no copy: they request more than their role has quota for.

use ::jobs::{JobGates, JobObject};
use crds::v1beta2::Workload;

use crate::control::jobs::RoleRequests;

/// Whether a job is a member of a group that keeps its gate with this Workload. A worker that does not compare requests would run it.
pub(crate) fn is_held(
    job: &JobObject,
    workload: &Workload,
    requests: RoleRequests<'_>,
    gates: JobGates,
) -> bool {
    let member = job.as_pod().filter(|_| job.is_group_member(gates));
    member.is_some_and(|pod| requests.with(|all| all.is_held(pod, workload, gates)))
}
