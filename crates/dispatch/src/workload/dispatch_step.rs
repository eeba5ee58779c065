//! Steps of a Workload's dispatch, as values.

use engine::{Time, ids::ClusterId};

/// One step. Every step may be repeated. A write to the hub carries the resourceVersion of the decision; a delete
/// carries the uid of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DispatchStep {
    /// Nominate the cluster on which the Workload has room, or the best one; in a race, all that may be nominated.
    Nominate,
    /// Create the clone with the hub's epoch.
    CreateClone(ClusterId),
    /// Create the copies of jobs that are missing, suspended, with the hub's epoch.
    CreateJobs(ClusterId),
    /// Delete the jobs. The pods of a job that has not ended are gone before it.
    DeleteJobs(ClusterId),
    /// Delete the copies of members that are deleted on the hub while their group goes on.
    DeleteMembers(ClusterId),
    /// Delete the clone.
    DeleteClone(ClusterId),
    /// Write the priority of the hub's Workload to the clone.
    PushPriority(ClusterId),
    /// Write the size of the hub's Workload to its clone; if the clone has it, that of the hub's jobs to their copies.
    PushSize(ClusterId),
    /// Open the preemption gate of the clone, so that it may preempt on its worker.
    OpenPreemptionGate(ClusterId),
    /// Write the stamp of this leader to the clone, so that the agent may admit it.
    Stamp(ClusterId),
    /// Write the term of this leader to the hub's Workload: if the write succeeds, the observed version was the newest.
    ConfirmVersion,
    /// Copy the status of each remote job to the hub's job.
    SyncStatus(ClusterId),
    /// Copy the status of jobs that have succeeded in an earlier dispatch to the hub's jobs, which finishes the Workload.
    AdoptResult(ClusterId),
    /// Record the cluster and set the check to Ready, in one write.
    SetCheckReady(ClusterId),
    /// Finish the Workload on the hub.
    Finish {
        /// Reason of the condition.
        reason: Box<str>,
        /// Message of the condition.
        message: Box<str>,
        /// The recorded cluster with the clone, if a job of the hub shows no end and cannot take it from a copy there.
        without_end: Option<ClusterId>,
    },
    /// Set the check to Retry; the engine evicts the Workload.
    SetCheckRetry(RetryReason),
    /// Give nomination and quota back without an eviction, and exclude the cluster for a while. Nothing of this
    /// Workload runs or can still start.
    CancelNomination {
        /// The cluster that did not take the Workload.
        cluster: ClusterId,
        /// The worker's message, or the reason.
        why: Box<str>,
    },
    /// Write this epoch to the hub's Workload. It is higher than that of every copy that was observed.
    RaiseEpoch(u64),
    /// Set the active pods in the status of the hub's jobs to 0.
    ClearActivePods,
    /// Nothing of the Workload runs anywhere: its quota may be released.
    Withdrawn,
    /// Decide again at this time.
    WaitUntil(Time),
}

/// Why the check is set to Retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryReason {
    /// The recorded cluster is disconnected for longer than `worker_lost_timeout`.
    RemoteLost,
    /// The recorded cluster has no clone, or no job although the job had started.
    RemoteMissing,
    /// The clone was evicted.
    EvictedOnWorker(ClusterId),
    /// The API server of the recorded cluster refuses the job.
    RefusedByWorker(ClusterId),
    /// The recorded cluster has admitted the Workload and does not start it.
    NotStarted(ClusterId),
    /// The recorded cluster is drained, and the deadline has passed.
    Drained(ClusterId),
    /// The remote job differs from the Workload.
    OutOfSync(ClusterId),
    /// The clone has finished without its job, which goes on at the hub.
    OwnerNotFound(ClusterId),
    /// No cluster is recorded.
    NoClusterRecorded,
}

impl RetryReason {
    /// Message of the check. The texts are Kueue's (docs/reference/multikueue.md §1.5), except those of a refusal and of a
    /// job that is not started.
    pub fn message<'a>(self, name: impl Fn(ClusterId) -> &'a str) -> String {
        match self {
            Self::RemoteLost => "Admitting remote lost, Previously: \"Ready\"".to_owned(),
            Self::RemoteMissing => {
                "Admitting remote no longer exists, Previously: \"Ready\"".to_owned()
            }
            Self::EvictedOnWorker(cluster) => format!(
                "Workload evicted on worker cluster: \"{}\", resetting for re-admission. Previously: \"Ready\"",
                name(cluster)
            ),
            Self::RefusedByWorker(cluster) => format!(
                "Worker cluster \"{}\" refused the job, resetting for re-dispatch, Previously: \"Ready\"",
                name(cluster)
            ),
            Self::NotStarted(cluster) => format!(
                "Worker cluster \"{}\" did not start the job in time, resetting for re-dispatch, Previously: \"Ready\"",
                name(cluster)
            ),
            Self::Drained(cluster) => format!(
                "Worker cluster \"{}\" is drained, resetting for re-dispatch, Previously: \"Ready\"",
                name(cluster)
            ),
            Self::OutOfSync(cluster) | Self::OwnerNotFound(cluster) => format!(
                "Remote workload on worker cluster \"{}\" is out of sync with its user job, resetting for \
                 re-dispatch, Previously: \"Ready\"",
                name(cluster)
            ),
            Self::NoClusterRecorded => {
                "Admission check is Ready but no admitting cluster is recorded; this is \
                                 unexpected, please report it, Previously: \"Ready\""
                    .to_owned()
            }
        }
    }
}
