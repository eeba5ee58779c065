//! Sizes of a Workload and its jobs that are written to their copies, and counted where it is placed; and slices of an elastic job
//! that extend another one.

use ::jobs::elastic_copies::is_of_elastic_job;
use dispatch::Fleet;
use engine::ids::ClusterId;

use super::{
    copy_sizes::CopySizes,
    sent_copies::SentCopies,
    worker_writes::{self, CopySource},
};
use crate::control::{
    context::Context,
    elastic_slices::{extending, predecessor},
    multikueue::{
        race::admitted_work::admitted_work,
        view::{evaluated_workload::EvaluatedWorkload, expected_spec},
        workers::worker::Worker,
    },
};

/// Writes sizes to the copies on a worker.
pub(crate) fn push_size(
    evaluated: EvaluatedWorkload<'_>,
    worker: &Worker,
    sent: &mut SentCopies,
    ctx: &mut Context,
) {
    let Some(record) = evaluated.record() else {
        return;
    };
    let (key, workload) = (evaluated.key, record.object());
    let expected = expected_spec(workload);
    let (expected, gates) = (expected.as_ref(), evaluated.jobs.gates());
    let sizes = CopySizes { worker, key, expected, heirs: evaluated.heirs(), gates, now: ctx.now };
    let jobs = evaluated.hub_jobs();
    let mark = evaluated.identity(index::epoch(workload), None);
    let source = CopySource { key, workload, mark, gates };
    for (job, fields) in worker_writes::push_size(sizes, source, &jobs, ctx) {
        sent.change_sent((worker.id, job), fields);
    }
}

/// The cluster of the slice that a Workload extends.
pub(crate) fn extended_cluster(
    evaluated: EvaluatedWorkload<'_>,
    fleet: &Fleet,
) -> Option<ClusterId> {
    let old = predecessor(evaluated.record()?.object(), evaluated.workloads)?;
    fleet.find(old.object().status.cluster_name.as_deref()?)
}

/// Counts an elastic job that has shrunk with the pods that it has now.
pub(crate) fn shrink_placement(evaluated: EvaluatedWorkload<'_>, fleet: &mut Fleet) {
    let Some(record) = evaluated.record() else {
        return;
    };
    let workload = record.object();
    if !is_of_elastic_job(workload) {
        return;
    }
    let (Some(admission), Some(id)) = (&workload.status.admission, record.id()) else {
        return;
    };
    if let Some(whole) = admitted_work(record, admission, evaluated.scheduler, fleet) {
        let (work, extends) = extending(workload, whole, evaluated.workloads);
        fleet.shrink(id, work);
        extends.iter().for_each(|extension| fleet.extend(id, extension));
    }
}
