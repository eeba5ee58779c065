//! Why a kubeconfig is refused (docs/reference/multikueue.md §1.2, §2.9).
//!
//! The messages go into the MultiKueueCluster's condition. They name the field, the user or the cluster, and never a value,
//! which could be a credential.

use crds::names::reasons::{
    BAD_CLUSTER_PROFILE, BAD_KUBE_CONFIG, BAD_REST_CONFIG, CLUSTER_PROFILE_DISABLED,
    INSECURE_KUBE_CONFIG,
};

/// Why a worker has no usable kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KubeconfigRefused {
    /// The MultiKueueCluster names no source.
    #[error("kubeconfig reference is nil")]
    NoReference,
    /// The MultiKueueCluster names a ClusterProfile, and these are switched off.
    #[error("MultiKueueClusterProfile feature gate is disabled")]
    ClusterProfile,
    /// The ClusterProfile does not exist.
    #[error("ClusterProfile.multicluster.x-k8s.io \"{0}\" not found")]
    NoProfile(Box<str>),
    /// The configuration has no command that gives credentials.
    #[error("no access provider configured")]
    NoAccessProvider,
    /// The ClusterProfile names none of the configured providers.
    #[error("no matching cluster accessor found for cluster profile \"{0}\"")]
    NoMatchingProvider(Box<str>),
    /// The address of the ClusterProfile, or what its provider gave, is no safe kubeconfig.
    #[error(transparent)]
    UnsafeProfile(Box<Self>),
    /// The MultiKueueCluster names a file outside of the directory of kubeconfigs.
    #[error("kubeconfig path is not under the allowed prefix")]
    OutsideDirectory,
    /// The path of the file starts elsewhere than at the root.
    #[error("kubeconfig path must be absolute")]
    RelativePath,
    /// The file does not exist.
    #[error("open {0}: no such file or directory")]
    NoFile(Box<str>),
    /// The path leads to a folder, a pipe or a device.
    #[error("{0:?} is not a regular file")]
    NotRegularFile(Box<str>),
    /// The file is too large.
    #[error("file {path:?} exceeds the size limit of {limit} bytes")]
    LargeFile {
        /// The path.
        path: Box<str>,
        /// The greatest size.
        limit: u64,
    },
    /// The file cannot be read.
    #[error("read {path}: {cause}")]
    UnreadableFile {
        /// The path.
        path: Box<str>,
        /// What the operating system says.
        cause: Box<str>,
    },
    /// The file system does not answer.
    #[error("read {0}: the file system does not answer")]
    LateFile(Box<str>),
    /// The Secret does not exist.
    #[error("Secret \"{0}\" not found")]
    NoSecret(Box<str>),
    /// The Secret has no key `kubeconfig`.
    #[error("key \"kubeconfig\" not found in secret \"{0}\"")]
    NoKey(Box<str>),
    /// The text is not a kubeconfig.
    #[error("failed to parse kubeconfig: line {line}, column {column}")]
    Unreadable {
        /// The line, counted from one.
        line: u64,
        /// The column, counted from one.
        column: u64,
    },
    /// An entry that the current context needs is missing.
    #[error("{what} {name:?} is not in the kubeconfig")]
    Missing {
        /// `context`, `cluster` or `user`.
        what: &'static str,
        /// The name of the entry.
        name: Box<str>,
    },
    /// The user of the current context has no credentials.
    #[error("user {0:?} has neither a token nor a client certificate with its key")]
    NoCredentials(Box<str>),
    /// A field has an invalid value.
    #[error("{field} of {name:?} is not {expected}")]
    Malformed {
        /// The field.
        field: &'static str,
        /// The user or cluster.
        name: Box<str>,
        /// What a valid value is.
        expected: &'static str,
    },
    /// The token is in a file.
    #[error("tokenFile is not allowed")]
    TokenFile,
    /// The client certificate is in a file.
    #[error("client certificate file paths are not allowed, use {field}-data for user {user}")]
    IdentityFile {
        /// The field.
        field: &'static str,
        /// The user.
        user: Box<str>,
    },
    /// User name and password are not supported.
    #[error("basic auth is not allowed")]
    BasicAuth,
    /// The credentials come from a program.
    #[error("exec plugins are not allowed")]
    Exec,
    /// The credentials come from an authentication plugin.
    #[error("auth providers are not allowed")]
    AuthProvider,
    /// The user impersonates another one.
    #[error("impersonation is not allowed for user {0}")]
    Impersonation(Box<str>),
    /// The server's certificate is not verified.
    #[error("insecure TLS verification is not allowed for cluster {0}")]
    InsecureTls(Box<str>),
    /// The certificate authority is in a file.
    #[error(
        "certificate-authority file paths are not allowed, use certificate-authority-data for cluster {0}"
    )]
    AuthorityFile(Box<str>),
    /// The server is reached through a proxy.
    #[error("proxies are not allowed for cluster {0}")]
    Proxy(Box<str>),
    /// The cluster has no server.
    #[error("server URL is required for cluster {0}")]
    NoServer(Box<str>),
    /// The server is not an https URL of a plain host.
    #[error("untrusted server endpoint")]
    Untrusted,
}

impl KubeconfigRefused {
    /// The reason of the condition.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::ClusterProfile => CLUSTER_PROFILE_DISABLED,
            Self::NoProfile(_) | Self::NoAccessProvider | Self::NoMatchingProvider(_) => {
                BAD_CLUSTER_PROFILE
            }
            Self::UnsafeProfile(_) => BAD_REST_CONFIG,
            Self::NoReference
            | Self::OutsideDirectory
            | Self::RelativePath
            | Self::NoFile(_)
            | Self::NotRegularFile(_)
            | Self::LargeFile { .. }
            | Self::UnreadableFile { .. }
            | Self::LateFile(_)
            | Self::NoSecret(_)
            | Self::NoKey(_)
            | Self::Unreadable { .. }
            | Self::Missing { .. }
            | Self::NoCredentials(_)
            | Self::Malformed { .. } => BAD_KUBE_CONFIG,
            Self::TokenFile
            | Self::IdentityFile { .. }
            | Self::BasicAuth
            | Self::Exec
            | Self::AuthProvider
            | Self::Impersonation(_)
            | Self::InsecureTls(_)
            | Self::AuthorityFile(_)
            | Self::Proxy(_)
            | Self::NoServer(_)
            | Self::Untrusted => INSECURE_KUBE_CONFIG,
        }
    }

    /// The message of the condition.
    pub(crate) fn message(&self) -> String {
        not_loaded(self)
    }
}

/// The message without a usable kubeconfig, for any cause.
pub(crate) fn not_loaded(cause: &dyn std::fmt::Display) -> String {
    format!("load client config failed: {cause}")
}
