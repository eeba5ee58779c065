//! The index: what is kept of objects so that others can be read against it.
//!
//! It holds no API object. Of a Workload it keeps one small record; the engine keeps the rest. The tables are ordered by
//! name, so that whatever is told about several objects is told in the same order every time.

use std::collections::{BTreeMap, BTreeSet};

use engine::ids::{FlavorId, QueueId};
use k8s_openapi::api::core::v1::LimitRange;

use crate::checks::Check;
use crate::cluster_queue::ClusterQueue;
use crate::flavor::Flavor;
use crate::local_queue::LocalQueue;
use crate::requests::Kept;
use crate::requests::defaults::Limits;
use crate::settings::Settings;
use crate::workload::record::Records;

/// API objects as inputs of the engine. See the crate's page.
///
/// Events must reach the engine in the order in which they are handed out. That a Workload gave its quota back reaches
/// the engine through the object, too: the caller sends no [`engine::Event::Released`] of its own.
#[derive(Debug, Default)]
pub struct Index {
    pub(crate) settings: Settings,
    /// LimitRanges by namespace and name, and what they say together.
    pub(crate) ranges: BTreeMap<String, BTreeMap<String, LimitRange>>,
    pub(crate) limits: BTreeMap<String, Limits>,
    /// Overheads of RuntimeClasses.
    pub(crate) classes: BTreeMap<String, Kept>,
    pub(crate) flavors: BTreeMap<String, Flavor>,
    pub(crate) topologies: BTreeSet<String>,
    pub(crate) checks: BTreeMap<String, Check>,
    pub(crate) queues: BTreeMap<String, ClusterQueue>,
    /// LocalQueues, as `namespace/name`.
    pub(crate) local_queues: BTreeMap<String, LocalQueue>,
    pub(crate) records: Records,
    /// Names behind the engine's ids, for questions during a cycle.
    pub(crate) flavor_names: BTreeMap<FlavorId, String>,
    pub(crate) queue_names: BTreeMap<QueueId, String>,
    /// ClusterQueues whose Workloads are to be entered again.
    pub(crate) recount: BTreeSet<String>,
}

impl Index {
    /// An index that knows nothing yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// ClusterQueues whose Workloads the caller must enter again, since what counts as quota changed with the queue.
    /// Each is named once. Always empty unless undeclared resources are ignored.
    pub fn take_recounted(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.recount)
    }
}
