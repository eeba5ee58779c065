//! What an admitted Workload asks of a cluster.

use std::sync::Arc;

use crds::v1beta2::Admission;
use dispatch::{AssignedWorkload, Fleet};
use index::run_time_group;

use crate::control::{scheduling::Scheduler, workloads::TrackedWorkload};

/// The request of a Workload with what its admission adds, and with its run time if that is learned. `None` for a Workload that the
/// index does not know.
pub(super) fn admitted_work(
    record: &TrackedWorkload,
    admission: &Admission,
    (scheduler, fleet): (&Scheduler, &Fleet),
) -> Option<Arc<AssignedWorkload>> {
    let request = Arc::clone(scheduler.request(record.id()?)?);
    let assigned = scheduler.admitted_pod_sets(admission, &record.object().spec.pod_sets);
    let work = Arc::new(AssignedWorkload::new(request, assigned));
    Some(fleet.with_run_time(work, Some(&run_time_group(record.object()))))
}
