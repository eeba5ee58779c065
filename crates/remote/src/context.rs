//! The context of connections to workers: clients, channels, settings and timing.

use std::{sync::atomic::AtomicU64, time::Duration};

use cluster::control::ManagerInput;
use jobs::Kinds;
use kube::Client;
use leader::{ClientMetrics, Inputs, Workers};
use runtime::{lease::Leadership, watch::Store};

use crate::{
    cluster_profile::ClusterProfiles, kubeconfig_file::KubeconfigDirectory,
    kubeconfig_secret::KubeconfigSecret,
};

/// What all connections to workers share.
pub struct WorkerContext {
    /// What the configuration says about them.
    pub settings: ConnectionSettings,
    /// Checked by every writer before a request is sent.
    pub leadership: Leadership,
    /// Receives connection status and watch events of workers.
    pub inputs: Inputs<ManagerInput>,
    /// The registry of writers of connected workers.
    pub workers: Workers,
    /// The number of the last request for a cluster.
    pub last_claim: AtomicU64,
}

/// Settings of the connections to workers, with what the process has for all of them.
pub struct ConnectionSettings {
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
    /// The value of the origin label on objects of this manager.
    pub origin: String,
    /// Metrics of clients, watches, writes and credentials.
    pub metrics: ClientMetrics,
    /// The interval of consistency checks of worker watches; no checks if unset.
    pub check_every: Option<Duration>,
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
