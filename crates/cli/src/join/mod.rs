//! `join`: registers a worker with a manager (docs/sluicectl.md).
//!
//! ```text
//! worker: Namespace, ServiceAccount, ClusterRoles and -Bindings, a token
//! hub:    Secret with a kubeconfig, MultiKueueCluster, entry in a MultiKueueConfig
//! ```
//!
//! What is made carries the label `app.kubernetes.io/managed-by: sluicectl`, so that `leave` removes it and nothing else.
//! An object without that label is used if it gives what is needed, and is never changed.
//!
//! | module | concept |
//! |---|---|
//! | `endpoint` | the address and the authority by which the manager reaches the worker |
//! | `worker_objects`, `hub_objects` | the objects as JSON |
//! | `ownership` | what happens to an object that exists |
//! | `apply` | reads and writes one object |
//! | `token` | the token of the account |
//! | `membership` | the entry in a MultiKueueConfig |
//! | `registration` | all of it in order |
//! | `installation` | the kinds and the origin of the installed manager |

mod apply;
mod endpoint;
mod hub_objects;
pub mod installation;
mod membership;
mod ownership;
mod registration;
mod token;
mod worker_objects;

use std::{path::PathBuf, time::Duration};

use jobs::Kinds;

pub use apply::{api_of, identity};
pub use endpoint::{EndpointRefused, JoinEndpoint};
pub use installation::{HubInstallation, InstallationFailure};
pub use membership::{MemberRemoval, joined_configs, set_members, without_member};
pub use ownership::{OtherHub, OwnershipConflict, is_joined};
pub use registration::{dry_run, join};

use crate::{command_exit::CommandExit, output::RenderFailure, requests::RequestFailure};

/// What is wanted.
#[derive(Clone, Debug)]
pub struct JoinRequest {
    /// Name of the MultiKueueCluster and its Secret.
    pub name: String,
    /// Namespace of the manager.
    pub hub_namespace: String,
    /// The account of the manager on the worker.
    pub account: HubAccount,
    /// The address of the worker's API server, if not that of the kubeconfig.
    pub server: Option<String>,
    /// A file with the certificate authority of that server, if not that of the kubeconfig.
    pub authority: Option<PathBuf>,
    /// Whether a loopback address is accepted: manager and worker are then on one machine.
    pub allow_loopback: bool,
    /// The token.
    pub token: TokenRequestKind,
    /// Kinds that an administrator declares.
    pub declared: Kinds,
    /// The registration may change to another cluster.
    pub replace_cluster: bool,
    /// What happens to objects that another manager cluster has made.
    pub other_hub: OtherHub,
    /// The manager may read pods and their logs.
    pub logs: bool,
    /// A MultiKueueConfig that gets the worker.
    pub config: Option<String>,
    /// How long to wait for the condition `Active`; not at all if `None`.
    pub wait: Option<Duration>,
}

/// A ServiceAccount; its roles have the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubAccount {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// How the manager gets a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRequestKind {
    /// A token that expires.
    Expiring(Duration),
    /// A Secret with a token that does not expire.
    Permanent,
}

/// Why a worker is not registered.
#[derive(Debug, thiserror::Error)]
pub enum JoinFailure {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestFailure),
    /// The manifests could not be rendered.
    #[error(transparent)]
    Render(#[from] RenderFailure),
    /// The manager's configuration is not readable.
    #[error(transparent)]
    Configuration(#[from] InstallationFailure),
    /// The manager cannot use the address.
    #[error(transparent)]
    Endpoint(#[from] EndpointRefused),
    /// An object of another owner is in the way.
    #[error(transparent)]
    OwnershipConflict(#[from] OwnershipConflict),
    /// The file with the authority cannot be read.
    #[error("cannot read the certificate authority {file}: {source}")]
    Authority {
        /// The file.
        file: String,
        /// What is wrong.
        source: std::io::Error,
    },
    /// The generated roles of a declared kind cannot be read.
    #[error("cannot read the roles of the kinds of jobs: {0}")]
    Roles(#[from] serde_saphyr::Error),
    /// Both are the same cluster.
    #[error("the worker is the manager cluster itself: the uid of kube-system is the same")]
    SameCluster,
    /// The worker has another name already.
    #[error(
        "the worker is registered as MultiKueueCluster {name}: a cluster has one (annotation sluice.dev/cluster-uid)"
    )]
    RegisteredAs {
        /// The name.
        name: String,
    },
    /// The registration is about another cluster.
    #[error(
        "MultiKueueCluster {name} is about another cluster (sluice.dev/cluster-uid: {known}) than the worker (kube-system has the uid {found}): choose another name, or add --replace-cluster if that one is gone"
    )]
    OtherCluster {
        /// The registration.
        name: String,
        /// The uid that the manager noted.
        known: String,
        /// The uid of the worker.
        found: String,
    },
    /// Kueue's kinds are missing.
    #[error(
        "the worker serves no kueue.x-k8s.io/v1beta2: install it first (kubectl apply --server-side -k config/worker), or add --no-wait"
    )]
    NotInstalled,
    /// An object that must exist does not.
    #[error("no {object}")]
    NoObject {
        /// Kind and name.
        object: String,
    },
    /// No token came.
    #[error("no token for ServiceAccount {account}: {reason}")]
    NoToken {
        /// The account.
        account: String,
        /// What is wrong.
        reason: String,
    },
    /// The manager did not connect.
    #[error("MultiKueueCluster {name} is not active after {} s: {why}", .within.as_secs())]
    NotActive {
        /// The cluster.
        name: String,
        /// How long was waited.
        within: Duration,
        /// Reason and message of the condition.
        why: String,
    },
}

impl JoinFailure {
    /// How the command ends.
    pub(crate) fn exit(&self) -> CommandExit {
        match self {
            Self::Request(_)
            | Self::Render(_)
            | Self::Configuration(_)
            | Self::Authority { .. }
            | Self::Roles(_)
            | Self::NoToken { .. }
            | Self::NoObject { .. } => CommandExit::Failed,
            Self::NotActive { .. } => CommandExit::TimedOut,
            Self::Endpoint(_)
            | Self::OwnershipConflict(_)
            | Self::SameCluster
            | Self::RegisteredAs { .. }
            | Self::OtherCluster { .. }
            | Self::NotInstalled => CommandExit::Refused,
        }
    }
}
