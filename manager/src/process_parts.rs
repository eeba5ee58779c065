//! What the components of a process share while they start.

use std::collections::BTreeSet;

use ::leader::{AdmissionExplanations, ClientMetrics};
use kube::Client;
use runtime::{Shutdown, Stop, watch::Stores};
use tokio::task::JoinSet;

use crate::{
    components::ManagerComponent,
    kueue_metrics::{KueueMetrics, MetricsSettings},
    settings::ProcessSettings,
    visibility::PodsMetrics,
};

/// The parts of a process that its components start with. A component adds its tasks and the stores that it reads.
pub(crate) struct ProcessParts<'a> {
    /// The settings.
    pub(crate) settings: &'a ProcessSettings,
    /// The components that run.
    pub(crate) components: &'a BTreeSet<ManagerComponent>,
    /// The client of the manager's own cluster.
    pub(crate) client: Client,
    /// The stores of that cluster. They are filled once all components have asked for theirs.
    pub(crate) stores: Stores,
    /// The metrics.
    pub(crate) metrics: ProcessMetrics,
    /// What the leader knows about pending Workloads.
    pub(crate) explanations: AdmissionExplanations,
    /// The stops.
    pub(crate) shutdown: &'a Shutdown,
    /// The tasks.
    pub(crate) tasks: JoinSet<()>,
}

/// The metrics of a process.
pub(crate) struct ProcessMetrics {
    /// Those of clients, and of what the leader does with them.
    pub(crate) clients: ClientMetrics,
    /// Kueue's.
    pub(crate) kueue: KueueMetrics,
    /// Those of the API of pods.
    pub(crate) pods: PodsMetrics,
}

impl ProcessMetrics {
    /// Metrics without values, for these settings.
    pub(crate) fn new(settings: &ProcessSettings) -> Self {
        Self {
            clients: ClientMetrics::default(),
            kueue: KueueMetrics::new(MetricsSettings::new(&settings.file, &settings.gates)),
            pods: PodsMetrics::default(),
        }
    }
}

impl ProcessParts<'_> {
    /// The stop of servers.
    pub(crate) fn stop(&self) -> Stop {
        self.shutdown.serving().clone()
    }
}
