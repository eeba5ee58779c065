//! Steps of a job that write its Workload's spec or metadata.

use ::jobs::{
    GenericJob, JobObject,
    construct_workload::{owner_reference, uid_label},
    reconcile::ReconcileStep,
};

use crate::control::workloads::WorkloadCommand;

/// The name of the Workload and its write; `None` for a step that needs more than the job, or writes something else.
pub(super) fn workload_command(
    job: &JobObject,
    step: &ReconcileStep<JobObject>,
) -> Option<(String, WorkloadCommand)> {
    let (name, command) = match step {
        ReconcileStep::ResizeSlice(after) => {
            let name = after.metadata.name.clone().unwrap_or_default();
            return Some((name, WorkloadCommand::Resize(after.clone())));
        }
        ReconcileStep::DeleteWorkload(name) => (name, WorkloadCommand::Delete),
        ReconcileStep::RemoveFinalizer(name) => (name, WorkloadCommand::RemoveFinalizer),
        ReconcileStep::UpdateReclaimablePods(name, pods) if job.is_managed_elsewhere() => {
            (name, WorkloadCommand::ReclaimDispatched(pods.clone()))
        }
        ReconcileStep::UpdateReclaimablePods(name, pods) => {
            (name, WorkloadCommand::Reclaim(pods.clone()))
        }
        ReconcileStep::UpdateQueueName { workload, queue_name } => {
            (workload, WorkloadCommand::MoveToQueue(queue_name.clone()))
        }
        ReconcileStep::UpdateAdmissionGates(name, gates) => {
            (name, WorkloadCommand::SetAdmissionGates(gates.clone()))
        }
        ReconcileStep::TakeOwnership(name) => {
            let uid = uid_label(job).map(str::to_owned);
            (name, WorkloadCommand::SetOwner(Box::new(owner_reference(job)), uid))
        }
        ReconcileStep::AddOwners(name, owners) => {
            (name, WorkloadCommand::AddOwners(owners.clone()))
        }
        ReconcileStep::CreateWorkload
        | ReconcileStep::UpdateWorkload(_)
        | ReconcileStep::CreateReplicaWorkload(_)
        | ReconcileStep::CreateSlice(_)
        | ReconcileStep::AnnotateJob(_)
        | ReconcileStep::AdoptMember(_)
        | ReconcileStep::FinalizeJob(_)
        | ReconcileStep::DeleteExcess(_)
        | ReconcileStep::ReportExcess { .. }
        | ReconcileStep::Refuse { .. }
        | ReconcileStep::UpdatePriority(_)
        | ReconcileStep::FinishWorkload { .. }
        | ReconcileStep::StartJob(_)
        | ReconcileStep::StopJob(..)
        | ReconcileStep::HoldWorkload { .. }
        | ReconcileStep::EndHold(_)
        | ReconcileStep::ReleaseQuota(_) => return None,
    };
    Some((name.clone(), command))
}
