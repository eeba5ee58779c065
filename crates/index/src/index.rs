//! The index: what is kept of objects so that others can be read against it.
//!
//! It holds no API object. Of a Workload it keeps one small record; the engine keeps the rest. The tables are ordered by
//! name, so that whatever is told about several objects is told in the same order every time.

use std::collections::{BTreeMap, BTreeSet};

use engine::ids::{FlavorId, QueueId};
use k8s_openapi::api::core::v1::LimitRange;

use crate::admission_check::IndexedCheck;
use crate::cluster_queue::IndexedClusterQueue;
use crate::config::IndexConfig;
use crate::local_queue::IndexedLocalQueue;
use crate::requests::OwnedExactAmounts;
use crate::requests::limit_ranges::NamespaceLimits;
use crate::resource_flavor::IndexedFlavor;
use crate::workload::workload_record::WorkloadRecords;

/// API objects as inputs of the engine. See the crate's page.
///
/// Events must reach the engine in the order in which they are handed out. That a Workload gave its quota back reaches
/// the engine through the object, too: the caller sends no [`engine::Event::Released`] of its own.
#[derive(Debug, Default)]
pub struct Index {
    pub(crate) config: IndexConfig,
    /// LimitRanges by namespace and name, and what they say together.
    pub(crate) limit_ranges: BTreeMap<String, BTreeMap<String, LimitRange>>,
    pub(crate) namespace_limits: BTreeMap<String, NamespaceLimits>,
    /// Overheads of RuntimeClasses.
    pub(crate) runtime_class_overheads: BTreeMap<String, OwnedExactAmounts>,
    pub(crate) flavors: BTreeMap<String, IndexedFlavor>,
    pub(crate) topologies: BTreeSet<String>,
    pub(crate) checks: BTreeMap<String, IndexedCheck>,
    pub(crate) queues: BTreeMap<String, IndexedClusterQueue>,
    /// LocalQueues, as `namespace/name`.
    pub(crate) local_queues: BTreeMap<String, IndexedLocalQueue>,
    pub(crate) records: WorkloadRecords,
    /// Names behind the engine's ids, for questions during a cycle.
    pub(crate) flavor_names: BTreeMap<FlavorId, String>,
    pub(crate) queue_names: BTreeMap<QueueId, String>,
    /// ClusterQueues whose Workloads are to be entered again.
    pub(crate) reenter: BTreeSet<String>,
}

impl Index {
    /// An index that knows nothing yet.
    #[must_use]
    pub fn new(settings: IndexConfig) -> Self {
        Self { config: settings, ..Self::default() }
    }

    /// ClusterQueues whose Workloads the caller must enter again, since what counts as quota changed with the queue.
    /// Each is named once. Always empty unless undeclared resources are ignored.
    pub fn take_queues_to_reenter(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.reenter)
    }
}
