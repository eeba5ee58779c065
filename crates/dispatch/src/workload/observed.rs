//! Observed state of one Workload: on the hub and on the worker clusters.
//!
//! Everything comes from the API servers, except fields that are marked as memory. Memory may be lost at any time;
//! each such field names the value it has after a loss, which is safe.

use engine::{Time, ids::ClusterId};

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

/// The job on the hub. No controller of the hub runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LocalJob {
    /// It exists.
    pub exists: bool,
    /// It is suspended, so that the API refuses a copied status.
    pub suspended: bool,
    /// Its status shows active pods.
    pub active: bool,
    /// Its status was copied from the recorded cluster at the recorded epoch. A status of an earlier epoch does not
    /// count.
    pub started: bool,
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
    /// `clusterName`.
    pub recorded_cluster: Option<ClusterId>,
    /// `nominatedClusterNames`.
    pub nominated_clusters: Vec<ClusterId>,
    /// The epoch; 1 without an annotation.
    pub epoch: u64,
    /// Memory: the epoch was raised since the last nomination. False after a loss.
    pub epoch_raised: bool,
    /// Memory: a create may have been sent with this epoch. True after a loss.
    pub create_sent: bool,
    /// Time of the nomination, or of its first observation by this process.
    pub nominated_at: Time,
    /// Its job.
    pub job: LocalJob,
}

/// How far the observed state of a cluster can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteConnection {
    /// Connected, but the first list is not complete: unobserved objects may exist.
    NotSynced,
    /// Connected and listed: unobserved objects do not exist, except creates without an answer.
    Connected,
    /// Not connected: the state is the last observed one.
    Disconnected {
        /// Start of the disconnection, as observed by this process.
        since: Time,
    },
}

/// The copies of the Workload on one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteCopy {
    /// The cluster.
    pub cluster: ClusterId,
    /// State of the connection.
    pub connection: RemoteConnection,
    /// Memory: every create of this process was answered, and its object is part of this state. A process without
    /// this memory starts at [`RemoteConnection::NotSynced`] with a new connection.
    pub creates_answered: bool,
    /// Memory: the API server's refusal of a create of the clone or the job with this epoch.
    pub refused: Option<Box<str>>,
    /// The clone.
    pub clone: Option<RemoteWorkload>,
    /// The job.
    pub job: Option<RemoteJob>,
}

/// The clone: the Workload's copy on a worker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoteWorkload {
    /// The epoch it carries.
    pub epoch: u64,
    /// It is being deleted.
    pub deleting: bool,
    /// Time of its admission.
    pub admitted_at: Option<Time>,
    /// It was evicted there.
    pub evicted: bool,
    /// The worker's refusal.
    pub refused: Option<Box<str>>,
    /// Reason and message of the condition Finished.
    pub finished: Option<(Box<str>, Box<str>)>,
    /// Its spec equals that of the hub's Workload.
    pub same_spec: bool,
}

/// The job's copy on a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoteJob {
    /// The epoch it carries.
    pub epoch: u64,
    /// It is being deleted, after its pods.
    pub deleting: bool,
    /// It has active pods.
    pub active: bool,
    /// It is over.
    pub finished: bool,
    /// The hub's job has its status.
    pub status_synced: bool,
}

/// Timeouts, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispatchTimeouts {
    /// A cluster that is disconnected for this long is lost: its work may start elsewhere (`workerLostTimeout`).
    pub worker_lost_timeout: i64,
    /// Time that a single nominated cluster has to admit the clone.
    pub admission_timeout: i64,
}
