//! Which Workload is the job's (docs/reference/kueue.md §7.4).

use crds::{
    meta::is_true,
    names::conditions::QUOTA_RESERVED,
    v1beta2::{Workload, WorkloadSpec},
};

use super::ReconcileContext;
use crate::{
    GenericJob, JobGates,
    construct_workload::max_exec_time,
    equivalence::{equivalent, same_work},
    pod_sets_info,
};

/// The job's Workload, and those that are not.
pub(super) struct WorkloadMatch<'a> {
    pub(super) workload: Option<&'a Workload>,
    pub(super) others: Vec<&'a Workload>,
}

/// The first that says what the job says.
pub(super) fn find_match<'a, J: GenericJob>(
    job: &J,
    around: ReconcileContext<'a>,
) -> WorkloadMatch<'a> {
    let mut others = around.workloads.to_vec();
    let place = others.iter().position(|workload| is_like(job, workload, around));
    let workload = place.map(|place| others.remove(place));
    WorkloadMatch { workload, others }
}

fn is_like<J: GenericJob>(job: &J, workload: &Workload, around: ReconcileContext<'_>) -> bool {
    let reserved = is_true(&workload.status.conditions, QUOTA_RESERVED);
    let infos = if reserved {
        // A flavor that is missing for a moment says nothing against the Workload.
        match pod_sets_info::pod_sets_info(workload, around.flavors, around.gates) {
            Ok(infos) => Some(infos),
            Err(_) => return true,
        }
    } else {
        None
    };
    let compare = if around.prebuilt { same_work } else { equivalent };
    compare(job, workload, infos.as_deref(), around.gates)
}

/// The Workload with what the job says now. Whether it may run is not the job's to say.
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
