//! What to do next for one Workload, as values.

use engine::{Time, ids::ClusterId};

/// One thing to do. All of it may be repeated. A step that writes to the hub carries the resourceVersion it was decided
/// on; a delete carries the uid that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DispatchStep {
    /// Create the clone, at the hub's epoch.
    CreateClone(ClusterId),
    /// Create the job there, suspended, at the hub's epoch.
    CreateJob(ClusterId),
    /// Delete the job there, in the foreground: when it is gone, so are its pods.
    DeleteJob(ClusterId),
    /// Delete the clone.
    DeleteClone(ClusterId),
    /// Copy the status of the job there to the hub's job.
    SyncStatus(ClusterId),
    /// Record the cluster and set the check ready, in one write.
    SetCheckReady(ClusterId),
    /// Finish the Workload on the hub.
    Finish {
        /// Of the condition.
        reason: Box<str>,
        /// Of the condition.
        message: Box<str>,
    },
    /// Set the check to Retry: the core will evict.
    SetCheckRetry(RetryReason),
    /// Give the nomination and the quota back without an eviction, and leave the cluster out for a while. Nothing
    /// of this Workload runs, or can still start.
    CancelNomination {
        /// The cluster that did not take it.
        cluster: ClusterId,
        /// Why.
        why: Box<str>,
    },
    /// Write the next epoch on the hub's Workload.
    RaiseEpoch,
    /// Set the active pods of the hub's job to 0.
    ClearActivePods,
    /// Nothing of it runs anywhere: the quota may be released.
    Withdrawn,
    /// Decide again at this moment, if nothing changes before.
    WaitUntil(Time),
}

/// Why the check goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryReason {
    /// The recorded cluster could not be reached for too long.
    RemoteLost,
    /// The recorded cluster has no clone, or no job although one had started.
    RemoteMissing,
    /// The clone was evicted.
    EvictedOnWorker(ClusterId),
    /// The API server of the recorded cluster takes no job.
    RefusedByWorker(ClusterId),
    /// The job is not what the Workload says.
    OutOfSync(ClusterId),
    /// No cluster is recorded.
    NoClusterRecorded,
}

impl RetryReason {
    /// The message of the check, as upstream words it (docs/reference/multikueue.md §1.5); of a refusal, our own.
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
            Self::OutOfSync(cluster) => format!(
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
