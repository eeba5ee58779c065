//! What connections to workers stand on, and their times.

use std::time::Duration;

use cluster::control::task::{Inputs, Workers};
use kube::Client;
use runtime::{requests::RequestMetrics, watch::WatchMetrics, writer::WriteMetrics};

use super::claims::SharedClaims;

/// What connections stand on.
pub(crate) struct Surroundings {
    /// The manager's own cluster.
    pub(crate) home: Client,
    /// Where the Secrets are.
    pub(crate) namespace: String,
    /// Hears how links are, and what workers have.
    pub(crate) inputs: Inputs,
    /// Gets a writer for each worker that is connected.
    pub(crate) workers: Workers,
    /// Written on everything of ours.
    pub(crate) origin: String,
    /// Counts all requests.
    pub(crate) requests: RequestMetrics,
    /// Counts failures of watches.
    pub(crate) watches: WatchMetrics,
    /// Counts writes.
    pub(crate) writes: WriteMetrics,
    /// How often what a worker has is looked at, for what its watches may have lost; never when unset.
    pub(crate) check_every: Option<Duration>,
    /// How long a connection goes on at most without its MultiKueueCluster: twice the time after which a silent worker is lost.
    pub(crate) keep_for: Duration,
    /// Which registration each worker cluster belongs to.
    pub(crate) claims: SharedClaims,
    /// When things are done.
    pub(crate) pace: Pace,
}

/// When workers are asked, and how long they may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Between probes of a connection that stands.
    pub(crate) probe_every: Duration,
    /// For a probe, or for reading a Secret.
    pub(crate) deadline: Duration,
    /// After the first attempt that failed.
    pub(crate) first_pause: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let five = Duration::from_secs(5);
        Self { probe_every: five, deadline: five, first_pause: five }
    }
}
