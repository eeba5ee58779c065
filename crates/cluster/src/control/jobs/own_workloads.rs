//! Workloads that children have from before they were children: a former version, or a former configuration, did not know the
//! ancestor.
//!
//! Such a Workload may hold quota that its pods use. So it counts, as that of a job without an ancestor, until it finishes or has
//! released its quota and the job is suspended. Then it is deleted, and the job is a child like any other. No further Workload is
//! made for it ([`JobInputs::without_creation`](super::JobInputs)).

use ::jobs::{GenericJob, JobObject, equivalence::has_controller};
use crds::v1beta2::Workload;
use runtime::watch::Key;

use super::inputs::WorkloadEffect;
use crate::control::{
    job_key::JobKey,
    workloads::{WorkloadCommand, WorkloadPhase},
};

/// What a job has of unfinished Workloads that it controls.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OwnWorkloads {
    None,
    /// The job runs or waits by them.
    Count,
    /// The job is suspended, and none of these holds quota.
    Surplus(Vec<Key>),
}

/// What a job has of these Workloads, of which some may be those of others.
pub(super) fn own_workloads<'w>(
    key: &JobKey,
    job: &JobObject,
    all: impl IntoIterator<Item = &'w Workload>,
) -> OwnWorkloads {
    // One that the job only names is that of its owner: the job was made with the owner's labels.
    let own = all.into_iter().filter(|workload| has_controller(workload));
    let phased = own.map(|one| (one, WorkloadPhase::of(&one.status.conditions)));
    let unfinished = phased.filter(|(_, phase)| *phase != WorkloadPhase::Finished);
    let (own, phases): (Vec<_>, Vec<_>) = unfinished.unzip();
    if own.is_empty() {
        return OwnWorkloads::None;
    }
    if !may_wait(job) || phases.into_iter().any(WorkloadPhase::holds_quota) {
        return OwnWorkloads::Count;
    }
    let name = |one: &str| key.in_namespace(one);
    let names = own.into_iter().filter_map(|one| one.metadata.name.as_deref());
    OwnWorkloads::Surplus(names.map(name).collect())
}

/// Whether another controller can start the job. A gate of a pod is taken off for its own Workload only.
fn may_wait(job: &JobObject) -> bool {
    let has_switch = job.as_pod().is_none() && job.set_size().is_none();
    has_switch && job.is_suspended() && job.finished().is_none()
}

/// Deletes Workloads.
pub(super) fn delete(surplus: Vec<Key>) -> Vec<(Key, WorkloadEffect)> {
    let delete = |key| (key, WorkloadEffect::Perform(WorkloadCommand::Delete, None));
    surplus.into_iter().map(delete).collect()
}
