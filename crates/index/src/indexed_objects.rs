//! Stored fields of API objects: what later objects and questions are read against.

use std::collections::{BTreeMap, BTreeSet};

use crds::meta::Toleration;
use crds::v1beta2::ConcurrentAdmissionPolicy;
use engine::spec::ClusterQueueInfo;

/// Stored fields of an AdmissionCheck.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IndexedCheck {
    pub(crate) controller: CheckController,
    /// Name of the parameters object.
    pub(crate) parameters: Option<String>,
    pub(crate) active: bool,
    pub(crate) generation: i64,
}

/// Controller of a check, as far as the rules distinguish it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CheckController {
    MultiKueue,
    Provisioning,
    #[default]
    Other,
}

/// A check of a ClusterQueue with its flavors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckBinding {
    pub(crate) check: String,
    /// Flavors that need the check; empty for all.
    pub(crate) flavors: BTreeSet<String>,
}

/// Stored fields of a ClusterQueue.
#[derive(Debug, Clone)]
pub(crate) struct IndexedClusterQueue {
    /// The spec as last sent to the engine.
    pub(crate) spec: ClusterQueueInfo,
    /// Flavors of its resource groups, in order.
    pub(crate) flavors: Vec<String>,
    /// Resources that its resource groups cover.
    pub(crate) covered: BTreeSet<String>,
    pub(crate) check_bindings: Vec<CheckBinding>,
    /// Workloads are admitted by variants.
    pub(crate) concurrent_admission: Option<ConcurrentAdmissionPolicy>,
    pub(crate) terminating: bool,
}

/// Stored fields of a LocalQueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexedLocalQueue {
    pub(crate) cluster_queue: String,
    pub(crate) stopped: bool,
}

/// Stored fields of a ResourceFlavor, in the API's terms.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct IndexedFlavor {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) topology: Option<String>,
    /// The MultiKueueClusters that it is bound to.
    pub(crate) clusters: Option<Vec<String>>,
}
