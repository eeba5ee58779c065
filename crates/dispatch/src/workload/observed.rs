//! Observed state of one Workload: on the hub and on the worker clusters.
//!
//! Everything comes from the API servers, except fields that are marked as memory. Memory may be lost at any time;
//! each such field names the value it has after a loss, which is safe.

use engine::{Time, ids::ClusterId};

use super::CloneGate;
use crate::CopyHistory;

/// State of the Workload's MultiKueue admission check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DispatchCheckState {
    /// No cluster is recorded yet.
    #[default]
    Pending,
    /// A cluster is recorded.
    Ready,
    /// The check asks for an eviction and a new dispatch.
    Retry,
    /// The check asks for a deactivation.
    Rejected,
}

/// The jobs of the Workload on the hub: one, or the members of a group. No controller of the hub runs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LocalJob {
    /// One exists.
    pub exists: bool,
    /// One is suspended, so that the API refuses a copied status.
    pub suspended: bool,
    /// A status shows active pods.
    pub active: bool,
    /// One shows no end, and is not being deleted.
    pub open: bool,
    /// Every one shows an end, or is being deleted.
    pub ended: bool,
    /// A status was copied from the recorded cluster at the recorded epoch. A status of an earlier epoch does not
    /// count.
    pub started: bool,
}

/// The slice of an elastic job that a Workload replaces, as far as a worker runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SlicePredecessor {
    /// There is none, or it is over.
    #[default]
    Absent,
    /// It has quota, and its jobs run until this Workload is admitted.
    Runs,
    /// It is being evicted or deleted, with its jobs.
    Leaves,
}

/// The Workload on the hub.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalWorkload {
    /// It exists.
    pub exists: bool,
    /// It is finished.
    pub finished: bool,
    /// Its quota is reserved.
    pub quota_reserved: bool,
    /// It is being evicted.
    pub evicted: bool,
    /// The MultiKueue admission check.
    pub check: DispatchCheckState,
    /// Another admission check is not Ready.
    pub awaits_other_checks: bool,
    /// `clusterName`.
    pub recorded_cluster: Option<ClusterId>,
    /// `nominatedClusterNames`.
    pub nominated_clusters: Vec<ClusterId>,
    /// The nominated clusters that its MultiKueueConfig does not have any more. Nothing new starts there.
    pub unconfigured_clusters: Vec<ClusterId>,
    /// The clusters that may be nominated now, if they race. `None` if one is chosen by its capacity.
    pub race: Option<Vec<ClusterId>>,
    /// Another program nominates: it alone takes the nomination of a cluster back that is not reached.
    pub nominated_by_others: bool,
    /// When a race ends without a winner; `None` if it has no end.
    pub race_until: Option<Time>,
    /// The epoch; 1 without an annotation, 0 of an absent Workload.
    pub epoch: u64,
    /// Memory: the highest epoch of any copy that was observed. 0 after a loss.
    pub highest_epoch: u64,
    /// Memory: a copy has a higher epoch than this Workload; until this time it is taken for a Workload that was observed
    /// late. `None` after a loss, until it is seen again.
    pub newer_copy_until: Option<Time>,
    /// Memory: the epoch was raised since the last nomination. False after a loss.
    pub epoch_raised: bool,
    /// Memory: since when the recorded cluster has admitted the Workload and not started it. `None` after a loss, until it
    /// is seen again.
    pub start_awaited_since: Option<Time>,
    /// Memory: since when the clone on the recorded cluster says that the job has ended, while a create of the job has no answer.
    /// `None` after a loss, until it is seen again.
    pub end_awaited_since: Option<Time>,
    /// When running work is withdrawn from the recorded cluster, which is drained.
    pub drained_at: Option<Time>,
    /// Memory: a create may have been sent with this epoch. True after a loss.
    pub create_sent: bool,
    /// Time of the nomination, or of its first observation by this process; later if copies could not be created before.
    pub nominated_at: Time,
    /// It is dispatched under `execution: ExactlyOnce`.
    pub exactly_once: bool,
    /// The observed version was written under this leader. An older one may hide a move to another cluster that the former
    /// leader has made, so nothing is created from it (docs/reference/dispatch.md §6).
    pub is_own_version: bool,
    /// The slice that it replaces. Until that is over the jobs are not this Workload's.
    pub predecessor: SlicePredecessor,
    /// It replaces another slice of its job, which may be gone.
    pub is_slice: bool,
    /// A slice with quota replaces it: a worker with queues of its own finishes the clone for that.
    pub has_successor: bool,
    /// Its jobs.
    pub job: LocalJob,
}

/// How far the observed state of a cluster can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteConnection {
    /// Connected, but the first list is not complete: unobserved objects may exist. A list that never ends is no
    /// connection, so the time of the loss runs on.
    NotSynced {
        /// Start of the time in which this process has not listed it.
        since: Time,
    },
    /// Connected and listed: unobserved objects do not exist, except creates without an answer.
    Connected,
    /// Not connected: the state is the last observed one.
    Disconnected {
        /// Start of the disconnection, as observed by this process.
        since: Time,
    },
}

impl RemoteConnection {
    /// Start of the time in which the cluster was not reached; `None` if it is.
    #[must_use]
    pub fn lost_since(self) -> Option<Time> {
        match self {
            Self::Connected => None,
            Self::NotSynced { since } | Self::Disconnected { since } => Some(since),
        }
    }
}

/// The copies of the Workload on one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteCopy {
    /// The cluster.
    pub cluster: ClusterId,
    /// State of the connection.
    pub connection: RemoteConnection,
    /// A person has confirmed that copies may be deleted which the hub does not know
    /// (docs/reference/dispatch.md §9).
    pub cleanup_confirmed: bool,
    /// Memory: every create of this process was answered, and its object is part of this state. A process without
    /// this memory starts at [`RemoteConnection::NotSynced`] with a new connection.
    pub creates_answered: bool,
    /// The leases of the cluster, under ExactlyOnce.
    pub lease: RemoteLease,
    /// Memory: the API server's refusal of a create of the clone or the job with this epoch.
    pub refused: Option<Box<str>>,
    /// The clone.
    pub clone: Option<RemoteWorkload>,
    /// Its jobs there.
    pub jobs: Vec<RemoteJob>,
    /// A job of the hub has no copy there.
    pub missing_job: bool,
    /// A copy for another Workload has the name of such a job, and leaves: that of a job which was deleted and made again. No copy is
    /// created before it is gone.
    pub name_held: bool,
}

/// The leases of a cluster, as one Workload under ExactlyOnce needs them ([`crate::GrantIssuer`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoteLease {
    /// The agent gets grants from this leader: copies may be created.
    pub open: bool,
    /// The cluster is not reached, and nothing that was sent to it runs or can start.
    pub fenced: bool,
}

/// Finished reasons that follow from the end of the job.
const JOB_END_REASONS: [&str; 2] = ["Succeeded", "Failed"];

impl RemoteCopy {
    /// Whether the clone says that the job has ended, and a copy of the job may exist that is not observed.
    #[must_use]
    pub fn awaits_end(&self) -> bool {
        let is_observed = self.connection == RemoteConnection::Connected;
        let has_ended = self.clone.as_ref().is_some_and(RemoteWorkload::job_ended);
        is_observed && has_ended && self.missing_job && !self.creates_answered
    }

    /// Whether the cluster has the clone and does not run the jobs yet: one is suspended, or none was created. A name that is held
    /// says nothing about the cluster.
    #[must_use]
    pub fn awaits_start(&self, hub: &LocalJob) -> bool {
        let lives = |clone: &RemoteWorkload| {
            !clone.deleting && !clone.evicted && clone.refused.is_none() && clone.finished.is_none()
        };
        let is_suspended = |job: &RemoteJob| job.suspended && !job.deleting && !job.finished;
        let is_created = !self.jobs.is_empty() || hub.started || !hub.exists;
        let is_observed = self.connection == RemoteConnection::Connected;
        is_observed
            && !self.name_held
            && self.clone.as_ref().is_some_and(lives)
            && (!is_created || self.jobs.iter().any(is_suspended))
    }
}

/// The clone: the Workload's copy on a worker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoteWorkload {
    /// The epoch it carries.
    pub epoch: u64,
    /// Whether the hub knows where it comes from.
    pub history: CopyHistory,
    /// It names the uid of the hub's Workload.
    pub same_uid: bool,
    /// It is being deleted.
    pub deleting: bool,
    /// Memory: its deletion was sent. False after a loss.
    pub delete_sent: bool,
    /// Time of its admission.
    pub admitted_at: Option<Time>,
    /// It waits for new nodes, which its agent has asked an autoscaler for, and the agent reports until this time at least. `None` if
    /// it does not wait for any.
    pub awaits_nodes_until: Option<Time>,
    /// It was evicted there.
    pub evicted: bool,
    /// The worker's refusal.
    pub refused: Option<Box<str>>,
    /// Reason and message of the condition Finished.
    pub finished: Option<(Box<str>, Box<str>)>,
    /// Its spec equals that of the hub's Workload, but for the priority and a smaller size.
    pub same_spec: bool,
    /// It asks for the pods that the hub's Workload asks for, but for a partial admission.
    pub same_pods: bool,
    /// The hub's Workload is of an elastic job and has fewer pods, which the worker did not refuse.
    pub stale_size: bool,
    /// The hub's Workload has another priority, which the worker did not refuse.
    pub stale_priority: bool,
    /// The stamp of its lease, under ExactlyOnce.
    pub stamp: StampState,
    /// Its preemption gate.
    pub gate: CloneGate,
}

impl RemoteWorkload {
    /// Whether it is neither finished nor being deleted.
    pub(super) fn lives(&self) -> bool {
        !self.deleting && self.finished.is_none()
    }

    /// Whether it is finished because the job has ended.
    #[must_use]
    pub fn job_ended(&self) -> bool {
        self.finished.as_ref().is_some_and(|(reason, _)| JOB_END_REASONS.contains(&&**reason))
    }
}

/// How the lease stamp of a clone compares with the leader and the session of its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StampState {
    /// It has the present one, or was admitted under a former leader, or has none.
    #[default]
    Current,
    /// A former leader created it, and it is not admitted: the agent waits for the stamp of this one.
    OfFormerLeader,
    /// Its session has ended: it never runs again.
    Ended,
}

/// The copy of one job on a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoteJob {
    /// The epoch it carries.
    pub epoch: u64,
    /// Whether the hub knows where it comes from.
    pub history: CopyHistory,
    /// It names the uid of the hub's Workload.
    pub same_uid: bool,
    /// It is being deleted, after its pods.
    pub deleting: bool,
    /// It has active pods.
    pub active: bool,
    /// Its switch is off: the worker has not started it.
    pub suspended: bool,
    /// It is over.
    pub finished: bool,
    /// It is over, and has done its work.
    pub succeeded: bool,
    /// The hub's job has its status.
    pub status_synced: bool,
    /// It is over in a way that the API server of the hub does not take: the hub's job shows another end, of an earlier copy. That is no
    /// part of its status then.
    pub end_refused: bool,
    /// It is the copy of a member of a group that is deleted on the hub, while the group goes on.
    pub abandoned: bool,
    /// It is the copy of a set of another number of replicas; or of an elastic job, and is larger than its clone or names an earlier
    /// slice; and the worker did not refuse the change.
    pub stale_size: bool,
    /// It names this Workload, which is over, and goes on with a later slice. The clone stays until it names that.
    pub handed_over: bool,
    /// Other Workloads have it there as well, as the replicas of a set do: it is not removed with this one. Its own pods end with
    /// the clone.
    pub shared: bool,
}

/// Timeouts, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispatchTimeouts {
    /// A cluster that was not reached for this long is lost: its work may start elsewhere (`workerLostTimeout`).
    pub worker_lost_timeout: i64,
    /// Time that a single nominated cluster has to admit the clone.
    pub admission_timeout: i64,
    /// Time that the recorded cluster has to start the jobs, from the admission as this process observed it.
    pub start_timeout: i64,
    /// Time that a clone with an open preemption gate has before the next gate is opened. 0 if the hub does not order preemption.
    pub preemption_timeout: i64,
}
