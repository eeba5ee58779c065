//! Slices of one elastic job: what becomes of one decides about the others (docs/reference/multikueue.md §2.13).

use ::jobs::elastic_copies::is_of_elastic_job;
use crds::v1beta2::Workload;

use super::owners::Owners;
use crate::control::{context::Context, workloads::WorkloadChange};

/// Evaluates the other slices of the job of a Workload that gets or loses quota, is finished, or gets another cluster.
pub(super) fn evaluate_siblings(owners: &Owners, change: &WorkloadChange, ctx: &mut Context) {
    let sides = [&change.before, &change.after];
    let Some(workload) = sides.into_iter().flatten().find(|one| is_of_elastic_job(one)) else {
        return;
    };
    let cluster = |workload: &Workload| workload.status.cluster_name.clone();
    let [before, after] = sides.map(|one| one.as_deref().and_then(cluster));
    let exists = change.before.is_some() == change.after.is_some();
    if exists && before == after && change.phase == change.phase_before {
        return;
    }
    for (job, _) in owners.owners(&change.key, workload) {
        ctx.agenda.workloads(owners.owned_by(&job).cloned());
    }
}
