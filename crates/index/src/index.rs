//! The index: stored fields of API objects that other objects are read against.
//!
//! It stores no API object. It stores a small record per Workload; the engine stores the rest. Tables are ordered by
//! name, so events about several objects have the same order every time.

use std::collections::{BTreeMap, BTreeSet};

use engine::ids::{FlavorId, QueueId};
use k8s_openapi::api::core::v1::LimitRange;

use crate::config::IndexConfig;
use crate::indexed_objects::{IndexedCheck, IndexedClusterQueue, IndexedFlavor, IndexedLocalQueue};
use crate::metric_labels::LabelSets;
use crate::namespace::AffectedWorkloads;
use crate::requests::OwnedExactAmounts;
use crate::requests::limit_ranges::NamespaceLimits;
use crate::workload::indexed_workload::IndexedWorkloads;

/// The index of API objects: converts objects to the engine's events.
///
/// Events must reach the engine in the order in which they are returned. A release of quota is read from the object:
/// the caller sends no [`engine::Event::Released`].
#[derive(Debug, Default)]
pub struct Index {
    pub(crate) config: IndexConfig,
    /// LimitRanges by namespace and name, and their summary per namespace.
    pub(crate) limit_ranges: BTreeMap<String, BTreeMap<String, LimitRange>>,
    pub(crate) namespace_limits: BTreeMap<String, NamespaceLimits>,
    /// Overheads of RuntimeClasses.
    pub(crate) runtime_class_overheads: BTreeMap<String, OwnedExactAmounts>,
    pub(crate) flavors: BTreeMap<String, IndexedFlavor>,
    pub(crate) topologies: BTreeSet<String>,
    pub(crate) checks: BTreeMap<String, IndexedCheck>,
    pub(crate) queues: BTreeMap<String, IndexedClusterQueue>,
    /// LocalQueues by `namespace/name`.
    pub(crate) local_queues: BTreeMap<String, IndexedLocalQueue>,
    pub(crate) records: IndexedWorkloads,
    pub(crate) label_sets: LabelSets,
    /// Names of the engine's ids, for calls during a cycle.
    pub(crate) flavor_names: BTreeMap<FlavorId, String>,
    pub(crate) queue_names: BTreeMap<QueueId, String>,
    /// ClusterQueues whose Workloads have to be entered again.
    pub(crate) reenter: BTreeSet<String>,
}

impl Index {
    /// Creates an empty index.
    #[must_use]
    pub fn new(settings: IndexConfig) -> Self {
        Self { config: settings, ..Self::default() }
    }

    /// Workloads that the caller must enter again, because the resources that count as quota changed: those of the
    /// LocalQueues of ClusterQueues that cover others now, if `ignore_uncovered_resources` is set; or because the ClusterQueue
    /// makes variants now, if `concurrent_admission` is set.
    pub fn take_workloads_to_reenter(&mut self) -> AffectedWorkloads {
        let changed = std::mem::take(&mut self.reenter);
        let queues = self.local_queues.iter();
        let named = queues.filter(|(_, queue)| changed.contains(&queue.cluster_queue));
        let named: BTreeSet<String> = named.map(|(key, _)| key.clone()).collect();
        if named.is_empty() {
            AffectedWorkloads::None
        } else {
            AffectedWorkloads::InLocalQueues(named)
        }
    }
}
