//! The cluster that counts a Workload: chosen together with the quota, or found by a race.

use dispatch::{Fleet, PlacementRequest};
use engine::{Time, ids::ClusterId};

use super::admitted_work::{AdmittedWork, admitted_work};
use crate::control::{
    elastic_slices::extending, multikueue::view::evaluated_workload::EvaluatedWorkload,
};

/// The cluster that was chosen together with the quota. A process that does not know it chooses again; `None` if none has room.
pub(crate) fn placed_cluster(
    workload: EvaluatedWorkload<'_>,
    fleet: &mut Fleet,
    now: Time,
) -> Option<ClusterId> {
    let (record, scheduler) = (workload.record()?, workload.scheduler);
    let (admission, id) = (record.object().status.admission.as_ref()?, record.id()?);
    if let Some(placed) = fleet.placed_on(id) {
        return Some(placed);
    }
    let whole = admitted_work(record, admission, scheduler, fleet)?;
    let config = workload.multikueue_config()?;
    let (work, extends) = extending(record.object(), whole, workload.workloads);
    let only = extends.as_ref().map(|one| fleet.intern_cluster(&one.cluster));
    let order = scheduler.queue_order(id);
    let wanted =
        PlacementRequest { workload: id, config, work: &work, order, only, alternative: false };
    let cluster = fleet.choose_cluster(&wanted, now).ok()?;
    fleet.place_extending(id, cluster, (work, extends.as_ref()), now);
    fleet.set_priority(id, order.priority);
    Some(cluster)
}

/// A Workload that waited for the queues of clusters without reports is counted on the one that admitted it.
pub(crate) fn place_winner(
    workload: EvaluatedWorkload<'_>,
    cluster: ClusterId,
    fleet: &mut Fleet,
    now: Time,
) {
    let Some(record) = workload.record() else {
        return;
    };
    if record.id().is_some_and(|id| fleet.is_racing(id)) {
        let placed = AdmittedWork { record, cluster, since: now };
        placed.place(workload.scheduler, workload.workloads, fleet);
    }
}
