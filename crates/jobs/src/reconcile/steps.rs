//! What reconciliation asks for: writes of the job, writes of its Workload, and reports.

use crds::v1beta2::{ReclaimablePod, Workload};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::{StopWrite, construct_workload::ReplacedSlice};

/// Why a job is stopped (Kueue: `StopReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The job runs without a matching Workload.
    NoMatchingWorkload,
    /// Its Workload is being deleted.
    WorkloadDeleted,
    /// Its Workload is evicted.
    WorkloadEvicted,
    /// Its Workload is not admitted.
    NotAdmitted,
}

/// One step. Workloads are named; they are in the namespace of the job.
#[derive(Clone, Debug, PartialEq)]
pub enum ReconcileStep<J> {
    /// Create the Workload.
    CreateWorkload,
    /// Create the Workload of a replica of a set.
    CreateReplicaWorkload(u32),
    /// Create a slice of an elastic job that replaces a smaller one.
    CreateSlice(ReplacedSlice),
    /// Update the spec of a Workload without quota. Unless it is that of a set, its priority is resolved again.
    UpdateWorkload(Box<Workload>),
    /// Change the size of a slice of an elastic job. One without quota follows its job in everything.
    ResizeSlice(Box<Workload>),
    /// Write the job, or a member of a group.
    Job(JobStep<J>),
    /// Write a Workload.
    Workload {
        /// Its name.
        name: String,
        /// The write.
        write: WorkloadStep,
    },
    /// Report that a member of a group requests more than its role has quota for: about this pod.
    ReportExcess {
        /// Name of the pod.
        pod: String,
        /// Note of the Event.
        message: String,
    },
    /// Report why a job or a group gets no Workload or does not start: about the job, or the oldest member.
    Refuse {
        /// Reason of the Event.
        reason: &'static str,
        /// Note of the Event.
        message: String,
    },
}

/// A write of a job. The changed job has its own name, so that a step of a group says which member it is about.
#[derive(Clone, Debug, PartialEq)]
pub enum JobStep<J> {
    /// Write the generation of the object that an elastic job has its size from.
    Annotate(Box<J>),
    /// Make a pod of a set a member of the group of its replica.
    Adopt(Box<J>),
    /// Write the started job, or what has to be written before it.
    Start(Box<J>),
    /// Write one of the steps of a stop.
    Stop(StopWrite<J>, StopReason),
    /// Remove the finalizer that keeps the job for its Workload.
    Finalize(Box<J>),
    /// Delete a member that its group does not need.
    DeleteExcess(Box<J>),
}

/// A write of a Workload.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadStep {
    /// Delete it: it does not match the job.
    Delete,
    /// Remove the `resource-in-use` finalizer.
    RemoveFinalizer,
    /// Set the condition Finished.
    Finish {
        /// Reason of the condition.
        reason: &'static str,
        /// Message of the condition.
        message: String,
    },
    /// Release the quota of an evicted one once its pods are gone.
    ReleaseQuota,
    /// Release the quota once the pods are gone, and keep the Workload out of its queue, with this message of the condition.
    Hold(String),
    /// Put one that is on hold back into its queue.
    EndHold,
    /// Update `reclaimablePods`.
    UpdateReclaimablePods(Vec<ReclaimablePod>),
    /// Set the queue name of a pending one to that of its job or group; empty for none.
    UpdateQueueName(String),
    /// Set the admission gates to these of its job; without a value they are removed.
    UpdateAdmissionGates(Option<String>),
    /// Set the priority to that of the WorkloadPriorityClass of its job.
    UpdatePriority,
    /// Make the job the controller of its prebuilt Workload.
    TakeOwnership,
    /// Add owners to that of a group.
    AddOwners(Vec<OwnerReference>),
}

impl WorkloadStep {
    /// The step that writes this Workload.
    #[must_use]
    pub fn of<J>(self, workload: &Workload) -> ReconcileStep<J> {
        ReconcileStep::Workload { name: name(workload), write: self }
    }
}

impl<J> ReconcileStep<J> {
    /// The same step for another form of the job.
    pub fn map<K>(self, form: impl FnOnce(J) -> K) -> ReconcileStep<K> {
        match self {
            Self::CreateWorkload => ReconcileStep::CreateWorkload,
            Self::CreateReplicaWorkload(replica) => ReconcileStep::CreateReplicaWorkload(replica),
            Self::CreateSlice(replaced) => ReconcileStep::CreateSlice(replaced),
            Self::UpdateWorkload(workload) => ReconcileStep::UpdateWorkload(workload),
            Self::ResizeSlice(workload) => ReconcileStep::ResizeSlice(workload),
            Self::Job(step) => ReconcileStep::Job(step.map(form)),
            Self::Workload { name, write } => ReconcileStep::Workload { name, write },
            Self::ReportExcess { pod, message } => ReconcileStep::ReportExcess { pod, message },
            Self::Refuse { reason, message } => ReconcileStep::Refuse { reason, message },
        }
    }
}

impl<J> JobStep<J> {
    fn map<K>(self, form: impl FnOnce(J) -> K) -> JobStep<K> {
        match self {
            Self::Annotate(job) => JobStep::Annotate(Box::new(form(*job))),
            Self::Adopt(pod) => JobStep::Adopt(Box::new(form(*pod))),
            Self::Start(job) => JobStep::Start(Box::new(form(*job))),
            Self::Stop(write, reason) => JobStep::Stop(write.map(form), reason),
            Self::Finalize(job) => JobStep::Finalize(Box::new(form(*job))),
            Self::DeleteExcess(job) => JobStep::DeleteExcess(Box::new(form(*job))),
        }
    }
}

pub(crate) fn name(workload: &Workload) -> String {
    workload.metadata.name.clone().unwrap_or_default()
}
