//! `leave`: the end of a registration that `join` made (docs/sluicectl.md).
//!
//! ```text
//! drain -> no work on the worker -> MultiKueueConfigs, MultiKueueCluster -> no copies on the worker -> Secret -> account, roles
//! ```
//! Only objects with the label of `join` are removed, and on the worker only those that were made for this manager cluster.

mod execution;
mod plan;
mod removal;
mod secret;

use std::time::Duration;

use jiff::Timestamp;

pub use execution::leave;

use crate::{
    amounts::counted, command_exit::CommandExit, drain::DrainFailure, join::InstallationFailure,
    requests::RequestFailure,
};

/// What is wanted.
#[derive(Clone, Debug)]
pub struct LeaveRequest {
    /// Name of the MultiKueueCluster.
    pub name: String,
    /// Namespace of the manager.
    pub hub_namespace: String,
    /// What happens to work that is there.
    pub work: RemainingWork,
    /// How long to wait for the end of the work, and of its copies.
    pub within: Duration,
}

/// What happens to work on the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemainingWork {
    /// Nothing is changed while work is there.
    Refuse,
    /// The worker is drained first.
    Drain {
        /// When running work is withdrawn; never if `None`.
        deadline: Option<Timestamp>,
    },
    /// The registration ends all the same: the work is lost after `workerLostTimeout` and starts elsewhere.
    Ignore,
}

/// Why a registration has not ended.
#[derive(Debug, thiserror::Error)]
pub enum LeaveFailure {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestFailure),
    /// The manager's configuration is not readable.
    #[error(transparent)]
    Configuration(#[from] InstallationFailure),
    /// The drain failed.
    #[error(transparent)]
    Drain(#[from] DrainFailure),
    /// There is no such worker.
    #[error("no MultiKueueCluster {0}")]
    NoCluster(String),
    /// The identity of a cluster is not known.
    #[error("cannot tell which cluster {0} is: it has no namespace kube-system")]
    NoIdentity(String),
    /// The registration was made by hand.
    #[error("MultiKueueCluster {0} was not made by join: remove it as it was made")]
    NotJoined(String),
    /// The objects on the worker cannot be removed.
    #[error(
        "the worker's kubeconfig is missing: name it with --worker-kubeconfig or --worker-context, or leave the worker's objects there with --hub-only"
    )]
    NoWorkerAccess,
    /// The worker is another cluster than the registered one.
    #[error(
        "the worker's kubeconfig names another cluster (kube-system has the uid {found}) than MultiKueueCluster {cluster} (sluice.dev/cluster-uid: {known}): name the right one, or add --hub-only"
    )]
    OtherCluster {
        /// The registration.
        cluster: String,
        /// The uid that the manager noted.
        known: String,
        /// The uid of the worker.
        found: String,
    },
    /// The worker has another name.
    #[error(
        "the worker's kubeconfig names the cluster of MultiKueueCluster {name}: name the right one, or add --hub-only"
    )]
    RegisteredAs {
        /// The name.
        name: String,
    },
    /// No answer in time.
    #[error(
        "no answer within {} s: whether the worker of {cluster} has copied Workloads is not known; repeat the command, or add --force", .within.as_secs()
    )]
    NoAnswer {
        /// The worker.
        cluster: String,
        /// How long was waited.
        within: Duration,
    },
    /// Work is there.
    #[error(
        "{cluster} has {} ({}): add --drain to wait for the end of work, --deadline to withdraw it, or --force to leave it behind", counted(*.count, "Workload"), .examples.join(", ")
    )]
    RemainingWork {
        /// The worker.
        cluster: String,
        /// Workloads.
        count: usize,
        /// Some of them.
        examples: Vec<String>,
    },
    /// Copies are left.
    #[error(
        "the worker of {cluster} still has {} after {} s: repeat the command, or add --force to leave them behind", counted(*.count, "copied Workload"), .within.as_secs()
    )]
    CopiesLeft {
        /// The worker.
        cluster: String,
        /// Copies.
        count: usize,
        /// How long was waited.
        within: Duration,
    },
}

impl LeaveFailure {
    /// How the command ends.
    pub(crate) fn exit(&self) -> CommandExit {
        match self {
            Self::Request(_)
            | Self::Configuration(_)
            | Self::NoCluster(_)
            | Self::NoIdentity(_) => CommandExit::Failed,
            Self::Drain(failure) => failure.exit(),
            Self::CopiesLeft { .. } | Self::NoAnswer { .. } => CommandExit::TimedOut,
            Self::RemainingWork { .. }
            | Self::OtherCluster { .. }
            | Self::RegisteredAs { .. }
            | Self::NotJoined(_)
            | Self::NoWorkerAccess => CommandExit::Refused,
        }
    }
}
