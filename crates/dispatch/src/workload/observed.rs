//! What is known of one Workload: on the hub, and on every cluster that matters.
//!
//! All of it comes from the API servers, except what is said to be memory. Memory may be lost at any time; the values it
//! has then are named at each field, and are safe.

use engine::{Time, ids::ClusterId};

/// State of the dispatching check of a Workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DispatchCheckState {
    /// No cluster is recorded yet.
    #[default]
    Pending,
    /// A cluster is recorded.
    Ready,
    /// The core is to evict the Workload.
    Retry,
    /// The core is to deactivate the Workload.
    Rejected,
}

/// The job on the hub, which nobody runs there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LocalJob {
    /// It exists.
    pub exists: bool,
    /// It is suspended, so that the API refuses a copied status.
    pub suspended: bool,
    /// Its status shows active pods.
    pub active: bool,
    /// A status was copied to it from the recorded cluster at the recorded epoch. What an earlier epoch left does not count.
    pub started: bool,
}

/// The Workload on the hub.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalWorkload {
    /// It exists.
    pub exists: bool,
    /// It is finished.
    pub finished: bool,
    /// It holds quota.
    pub quota_reserved: bool,
    /// It is being evicted.
    pub evicted: bool,
    /// The dispatching check.
    pub check: DispatchCheckState,
    /// `clusterName`.
    pub recorded_cluster: Option<ClusterId>,
    /// `nominatedClusterNames`.
    pub nominated_clusters: Vec<ClusterId>,
    /// The epoch; 1 where none is written.
    pub epoch: u64,
    /// Memory: the epoch was raised since the last nomination. False when forgotten.
    pub epoch_raised: bool,
    /// Memory: a create may have been sent under this epoch. True when forgotten.
    pub create_sent: bool,
    /// When it was nominated, or when this process first saw that it is.
    pub nominated_at: Time,
    /// Its job.
    pub job: LocalJob,
}

/// How far the view of a cluster can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerConnection {
    /// Connected, but not everything was listed yet: what is not seen may exist.
    NotSynced,
    /// Connected; what is not seen does not exist, except what is on its way.
    Connected,
    /// Not connected; what is shown is what was seen last.
    Disconnected {
        /// Since when, as far as this process knows.
        since: Time,
    },
}

/// What a cluster has of the Workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteCopy {
    /// Which cluster.
    pub cluster: ClusterId,
    /// Whether it can be reached.
    pub connection: WorkerConnection,
    /// Memory: no create of ours is on its way there; each was answered and what it made is in this view. Whoever forgets
    /// starts as [`WorkerConnection::NotSynced`], on a new connection.
    pub creates_answered: bool,
    /// Memory: the API server's answer, if it does not let the clone or the job be created under this epoch.
    pub refused: Option<Box<str>>,
    /// The clone.
    pub clone: Option<RemoteWorkload>,
    /// The job.
    pub job: Option<RemoteJob>,
}

/// A clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoteWorkload {
    /// The epoch it carries.
    pub epoch: u64,
    /// It is being deleted.
    pub deleting: bool,
    /// Since when it is admitted.
    pub admitted_at: Option<Time>,
    /// It was evicted there.
    pub evicted: bool,
    /// The worker does not take it, in its words.
    pub refused: Option<Box<str>>,
    /// Reason and message of its end.
    pub finished: Option<(Box<str>, Box<str>)>,
    /// It asks for what the hub's Workload asks for.
    pub same_spec: bool,
}

/// A job on a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoteJob {
    /// The epoch it carries.
    pub epoch: u64,
    /// It is being deleted, its pods first.
    pub deleting: bool,
    /// It has active pods.
    pub active: bool,
    /// It is over.
    pub finished: bool,
    /// The hub's job shows its status.
    pub status_synced: bool,
}

/// How long things may take, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispatchTimeouts {
    /// A cluster that could not be reached for so long is lost: its work may start elsewhere.
    pub worker_lost_timeout: i64,
    /// A single nominated cluster has so long to admit the clone.
    pub admission_timeout: i64,
}
