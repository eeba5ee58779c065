//! The context of connections to workers: clients, channels, settings and timing.

use std::{sync::atomic::AtomicU64, time::Duration};

use cluster::control::ManagerInput;
use jobs::Kinds;
use kube::Client;
use leader::{Inputs, Workers};
use runtime::{
    credential_expiry::CredentialMetrics,
    lease::Leadership,
    request_metrics::RequestMetrics,
    watch::{Store, WatchMetrics},
    writer::WriteMetrics,
};

use crate::{
    cluster_profile::ClusterProfiles, kubeconfig_file::KubeconfigDirectory,
    kubeconfig_secret::KubeconfigSecret,
};

/// What all connections to workers share.
pub struct WorkerContext {
    /// Checked by every writer before a request is sent.
    pub leadership: Leadership,
    /// The client of the manager's own cluster.
    pub home: Client,
    /// Kinds of jobs that are watched on workers.
    pub kinds: Kinds,
    /// Whether the queues of workers are watched, because quotas follow them.
    pub watches_queues: bool,
    /// The namespace of the Secrets.
    pub namespace: String,
    /// The Secrets of the namespace.
    pub secrets: Store<KubeconfigSecret>,
    /// The ClusterProfiles and their providers of credentials; none if they are switched off.
    pub profiles: Option<ClusterProfiles>,
    /// Where kubeconfigs in files are.
    pub kubeconfig_files: KubeconfigDirectory,
    /// Receives connection status and watch events of workers.
    pub inputs: Inputs<ManagerInput>,
    /// The registry of writers of connected workers.
    pub workers: Workers,
    /// The value of the origin label on objects of this manager.
    pub origin: String,
    /// Request metrics.
    pub requests: RequestMetrics,
    /// Watch metrics.
    pub watches: WatchMetrics,
    /// Write metrics.
    pub writes: WriteMetrics,
    /// Expiry of the credentials in kubeconfigs.
    pub credentials: CredentialMetrics,
    /// The interval of consistency checks of worker watches; no checks if unset.
    pub check_every: Option<Duration>,
    /// The number of the last request for a cluster.
    pub last_claim: AtomicU64,
    /// Intervals and timeouts.
    pub timing: ConnectionTiming,
}

/// Intervals and timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionTiming {
    /// The interval between probes of a working connection.
    pub probe_every: Duration,
    /// The timeout of a probe, and of reading a Secret or file.
    pub deadline: Duration,
    /// The pause after the first failed attempt.
    pub first_pause: Duration,
}

impl Default for ConnectionTiming {
    fn default() -> Self {
        let five = Duration::from_secs(5);
        Self { probe_every: five, deadline: five, first_pause: five }
    }
}
