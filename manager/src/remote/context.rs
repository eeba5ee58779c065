//! The context of connections to workers: clients, channels, settings and timing.

use std::{sync::atomic::AtomicU64, time::Duration};

use ::leader::{Inputs, Workers};
use cluster::control::ManagerInput;
use jobs::Kinds;
use kube::Client;
use runtime::{
    lease::Leadership,
    requests::RequestMetrics,
    watch::{Store, WatchMetrics},
    writer::WriteMetrics,
};

use super::kubeconfig_secret::KubeconfigSecret;

/// What all connections to workers share.
pub(crate) struct WorkerContext {
    /// Checked by every writer before a request is sent.
    pub(crate) leadership: Leadership,
    /// The client of the manager's own cluster.
    pub(crate) home: Client,
    /// Kinds of jobs that are watched on workers.
    pub(crate) kinds: Kinds,
    /// The namespace of the Secrets.
    pub(crate) namespace: String,
    /// The Secrets of the namespace.
    pub(crate) secrets: Store<KubeconfigSecret>,
    /// Receives connection status and watch events of workers.
    pub(crate) inputs: Inputs<ManagerInput>,
    /// The registry of writers of connected workers.
    pub(crate) workers: Workers,
    /// The value of the origin label on objects of this manager.
    pub(crate) origin: String,
    /// Request metrics.
    pub(crate) requests: RequestMetrics,
    /// Watch metrics.
    pub(crate) watches: WatchMetrics,
    /// Write metrics.
    pub(crate) writes: WriteMetrics,
    /// The interval of consistency checks of worker watches; no checks if unset.
    pub(crate) check_every: Option<Duration>,
    /// The number of the last request for a cluster.
    pub(crate) last_claim: AtomicU64,
    /// Intervals and timeouts.
    pub(crate) timing: ConnectionTiming,
}

/// Intervals and timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionTiming {
    /// The interval between probes of a working connection.
    pub(crate) probe_every: Duration,
    /// The timeout of a probe, and of reading a Secret.
    pub(crate) deadline: Duration,
    /// The pause after the first failed attempt.
    pub(crate) first_pause: Duration,
}

impl Default for ConnectionTiming {
    fn default() -> Self {
        let five = Duration::from_secs(5);
        Self { probe_every: five, deadline: five, first_pause: five }
    }
}
