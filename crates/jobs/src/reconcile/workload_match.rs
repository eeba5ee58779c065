//! The match between a job and its Workload (docs/reference/kueue.md §7.4).

use crds::v1beta2::{Workload, WorkloadSpec};

use super::ReconcileContext;
use crate::{
    GenericJob, JobGates,
    construct_workload::max_exec_time,
    equivalence::{equivalent, equivalent_to_prebuilt},
    start::admitted_infos,
};

/// The matching Workload, and the other ones.
pub(super) struct WorkloadMatch<'a> {
    pub(super) workload: Option<&'a Workload>,
    pub(super) others: Vec<&'a Workload>,
}

/// Finds the first equivalent Workload.
pub(super) fn find_match<'a, J: GenericJob>(
    job: &J,
    context: ReconcileContext<'a>,
) -> WorkloadMatch<'a> {
    let mut others = context.workloads.to_vec();
    if is_without_match(job, &others, context) {
        return WorkloadMatch { workload: None, others };
    }
    if job.unresolved().is_some() {
        // A missing object proves no difference. The one with quota is that of a job that runs.
        others.sort_by_key(|one| !one.has_quota_reservation());
        return WorkloadMatch { workload: others.first().copied(), others: Vec::new() };
    }
    let position = others.iter().position(|workload| is_equivalent(job, workload, context));
    let workload = position.map(|position| others.remove(position));
    WorkloadMatch { workload, others }
}

/// Whether no Workload can match because the job contradicts itself: it never starts, and a Workload of an earlier version of it would
/// hold quota until the job is deleted. A job that runs or stops keeps its Workload, because its pods hold that quota. A prebuilt Workload
/// is not that of the job alone: it finishes at the start.
fn is_without_match<J: GenericJob>(
    job: &J,
    workloads: &[&Workload],
    context: ReconcileContext<'_>,
) -> bool {
    waits_for_change(job) && !context.prebuilt && !workloads.iter().any(|one| one.is_finished())
}

/// Whether the job contradicts itself and has no pods that hold quota.
pub(super) fn waits_for_change<J: GenericJob>(job: &J) -> bool {
    job.contradicts_itself() && job.is_suspended() && !job.is_active()
}

fn is_equivalent<J: GenericJob>(
    job: &J,
    workload: &Workload,
    context: ReconcileContext<'_>,
) -> bool {
    let reserved = workload.has_quota_reservation();
    let infos = if reserved {
        // A missing flavor does not prove a difference; it may still be created.
        match admitted_infos::infos_of_admission(workload, context.flavors, context.gates) {
            Ok(infos) => Some(infos),
            Err(_) => return true,
        }
    } else {
        None
    };
    let compare = if context.prebuilt { equivalent_to_prebuilt } else { equivalent };
    compare(job, workload, infos.as_deref(), context.gates)
}

/// The Workload with the current spec of the job. `active` is not part of it.
pub(super) fn with_job_spec<J: GenericJob>(
    job: &J,
    workload: &Workload,
    gates: JobGates,
) -> Workload {
    let spec = WorkloadSpec {
        pod_sets: job.pod_sets(gates),
        queue_name: job.queue_name().to_owned(),
        maximum_execution_time_seconds: max_exec_time(job),
        ..workload.spec.clone()
    };
    Workload { spec, ..workload.clone() }
}
