//! What an admitted Workload asks of a cluster, and its place there.

use std::sync::Arc;

use crds::v1beta2::Admission;
use dispatch::{AssignedWorkload, ClusterRace, Fleet};
use engine::{Time, ids::ClusterId};
use index::run_time_group;

use crate::control::{
    elastic_slices::extending,
    scheduling::Scheduler,
    workloads::{TrackedWorkload, Workloads},
};

/// The request of a Workload with what its admission adds, and with its run time if that is learned. `None` for a Workload that the
/// index does not know.
pub(crate) fn admitted_work(
    record: &TrackedWorkload,
    admission: &Admission,
    scheduler: &Scheduler,
    fleet: &Fleet,
) -> Option<Arc<AssignedWorkload>> {
    let request = Arc::clone(scheduler.request(record.id()?)?);
    let assigned = scheduler.admitted_pod_sets(admission, &record.object().spec.pod_sets);
    let work = Arc::new(AssignedWorkload::new(request, assigned));
    Some(fleet.with_run_time(work, Some(&run_time_group(record.object()))))
}

/// Whether clusters race for a Workload with quota because nothing is known of any of them.
pub(crate) fn races_unreported(
    record: &TrackedWorkload,
    scheduler: &Scheduler,
    fleet: &Fleet,
    now: Time,
) -> bool {
    let Some(admission) = &record.object().status.admission else {
        return false;
    };
    let config = scheduler.multikueue_config(&admission.cluster_queue);
    config.filter(|config| fleet.has_no_current_report(config)).is_some_and(|config| {
        let work = admitted_work(record, admission, scheduler, fleet);
        work.is_some_and(|work| fleet.races_without_current_reports(config, &work, now))
    })
}

/// Keeps the clusters that the flavors of a Workload with quota are bound to.
pub(crate) fn keep_bound(
    race: &mut ClusterRace,
    record: &TrackedWorkload,
    scheduler: &Scheduler,
    fleet: &Fleet,
) {
    let Some(admission) = &record.object().status.admission else {
        return;
    };
    let assigned = scheduler.admitted_pod_sets(admission, &[]);
    race.clusters.retain(|id| assigned.iter().all(|one| one.may_run_on(fleet.name(*id))));
}

/// A Workload that counts on a cluster since it runs there.
pub(crate) struct AdmittedWork<'a> {
    pub(crate) record: &'a TrackedWorkload,
    pub(crate) cluster: ClusterId,
    pub(crate) since: Time,
}

impl AdmittedWork<'_> {
    /// Counts it with what it has beyond the slice that it extends.
    pub(crate) fn place(self, scheduler: &Scheduler, workloads: &Workloads, fleet: &mut Fleet) {
        let Self { record, cluster, since } = self;
        let (Some(id), Some(admission)) = (record.id(), &record.object().status.admission) else {
            return;
        };
        let Some(whole) = admitted_work(record, admission, scheduler, fleet) else {
            return;
        };
        let (work, extends) = extending(record.object(), whole, workloads);
        fleet.place_extending(id, cluster, (work, extends.as_ref()), since);
        fleet.set_priority(id, scheduler.queue_order(id).priority);
    }
}
