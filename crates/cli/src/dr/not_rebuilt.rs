//! Why a copy is not rebuilt. Nothing is done about it, on the worker or on the manager.

/// The reason for which a copy is not rebuilt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRebuilt {
    /// Its job ended.
    #[error("it has finished; its result is on the worker only")]
    Finished,
    /// It is being stopped.
    #[error("it is evicted on the worker: {0}")]
    Evicted(String),
    /// An object of it goes.
    #[error("{0} is being deleted on the worker")]
    Deleted(String),
    /// Nothing runs.
    #[error("it is not admitted on the worker")]
    NotAdmitted,
    /// There is nothing that a job could be made from.
    #[error("the worker has no job for it")]
    NoJob,
    /// The job has no clone.
    #[error("the worker has no clone for it")]
    NoClone,
    /// Several workers may run it.
    #[error("{first} and {second} both have jobs of epoch {epoch}")]
    TwoWorkers {
        /// A worker.
        first: String,
        /// Another one.
        second: String,
        /// The epoch of both.
        epoch: u64,
    },
    /// The manager has made the copy, and its Workload is gone.
    #[error("this manager has made it, and its Workload was deleted")]
    DeletedHere,
    /// The manager has another object of the name.
    #[error("{0} exists on the manager cluster, and was not rebuilt from this copy")]
    Exists(String),
    /// A rebuilt job went before its Workload was complete.
    #[error("{0} was rebuilt, and is gone from the manager cluster")]
    Gone(String),
    /// The job is not rebuilt because of what it is.
    #[error("{0}")]
    Unsupported(String),
    /// The manager does not handle the kind.
    #[error("the configuration of the manager does not enable {0}")]
    NotEnabled(String),
    /// Something differs between the job and its clone.
    #[error("{0} differs from what its Workload asks for")]
    Differs(String),
    /// The manager cluster lacks something.
    #[error("the manager cluster has no {0}")]
    Missing(String),
    /// The queue does not send work to the worker.
    #[error("ClusterQueue {queue} does not dispatch to {cluster}")]
    NotDispatched {
        /// The ClusterQueue.
        queue: String,
        /// The worker.
        cluster: String,
    },
    /// Another check would decide as well.
    #[error("ClusterQueue {queue} has the admission check {check}, whose state is lost")]
    OtherCheck {
        /// The ClusterQueue.
        queue: String,
        /// The check.
        check: String,
    },
    /// No flavor explains what the pods have.
    #[error("no flavor of ClusterQueue {queue} for {resource} fits its pods")]
    NoFlavor {
        /// The ClusterQueue.
        queue: String,
        /// The resource.
        resource: String,
    },
    /// The cleanup of the worker was confirmed.
    #[error(
        "{0} has the annotation sluice.dev/cleanup: confirmed, so unknown copies are deleted there"
    )]
    Cleanup(String),
}
