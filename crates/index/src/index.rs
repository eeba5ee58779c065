//! The index: stored fields of API objects that other objects are read against.
//!
//! It stores no API object. It stores a small record per Workload; the engine stores the rest. Tables are ordered by
//! name, so events about several objects have the same order every time.

use std::collections::BTreeSet;

use crate::admission_check::AdmissionChecks;
use crate::cluster_queue::ClusterQueues;
use crate::config::IndexConfig;
use crate::local_queue::LocalQueues;
use crate::metric_labels::LabelSets;
use crate::namespace::{AffectedWorkloads, PodDefaultsTable};
use crate::resource_flavor::Flavors;
use crate::workload::{indexed_workload::IndexedWorkloads, shared_requests::SharedRequests};

/// The index of API objects: converts objects to the engine's events.
///
/// Events must reach the engine in the order in which they are returned. A release of quota is read from the object:
/// the caller sends no [`engine::Event::Released`].
#[derive(Debug, Default)]
pub struct Index {
    pub(crate) config: IndexConfig,
    pub(crate) pod_defaults: PodDefaultsTable,
    pub(crate) flavors: Flavors,
    pub(crate) checks: AdmissionChecks,
    pub(crate) queues: ClusterQueues,
    pub(crate) local_queues: LocalQueues,
    pub(crate) records: IndexedWorkloads,
    pub(crate) requests: SharedRequests,
    pub(crate) label_sets: LabelSets,
    /// ClusterQueues whose Workloads have to be entered again.
    pub(crate) reenter: BTreeSet<String>,
}

impl Index {
    /// Creates an empty index.
    #[must_use]
    pub fn new(config: IndexConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// Workloads that the caller must enter again, because the resources that count as quota changed: those of the
    /// LocalQueues of ClusterQueues that cover others now, if `ignore_uncovered_resources` is set; or because the ClusterQueue
    /// makes variants now, if `concurrent_admission` is set.
    pub fn take_workloads_to_reenter(&mut self) -> AffectedWorkloads {
        let changed = std::mem::take(&mut self.reenter);
        let named = self.local_queues.of_cluster_queues(&changed);
        if named.is_empty() {
            AffectedWorkloads::None
        } else {
            AffectedWorkloads::InLocalQueues(named)
        }
    }
}
