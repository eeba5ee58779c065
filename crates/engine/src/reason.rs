//! Why something does not fit, as values; [`crate::explain`] renders them on demand.

use crate::amount::Amount;
use crate::ids::{FlavorId, ResourceId, Slot, TopologyNodeId};
use crate::topology::PlacementFailure;

/// Why one pod set does not fit in a flavor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoFitReason {
    /// The request exceeds the quota that the ClusterQueue could use without any usage.
    ExceedsMaximum {
        /// Flavor and resource.
        slot: Slot,
        /// Usage of earlier pod sets of the Workload.
        earlier: Amount,
        /// The request.
        request: Amount,
        /// The most that the ClusterQueue could use.
        maximum: Amount,
    },
    /// Quota is in use.
    InUse {
        /// Flavor and resource.
        slot: Slot,
        /// Amount that would have to be released.
        missing: Amount,
    },
    /// The pods do not tolerate a taint of the flavor.
    Taint {
        /// The flavor.
        flavor: FlavorId,
        /// Index of the taint in the flavor.
        taint: usize,
    },
    /// The node selector or affinity does not match the flavor.
    Affinity(FlavorId),
    /// The flavor does not exist.
    FlavorNotFound(FlavorId),
    /// Evaluated again within a cycle, an entry keeps the flavors of its nomination.
    NotNominated {
        /// The flavor that was skipped.
        flavor: FlavorId,
        /// The resource.
        resource: ResourceId,
    },
    /// The Workload is not allowed the flavor.
    FlavorNotAllowed(FlavorId),
    /// The Workload replaces a slice that has another flavor.
    DiffersFromReplacedSlice {
        /// The flavor that was skipped.
        flavor: FlavorId,
        /// The flavor of the old slice; `None` if it did not have the resource.
        original: Option<FlavorId>,
    },
    /// No resource group covers the resource.
    ResourceNotCovered(ResourceId),
    /// The pod set requests a topology, but the flavor has none.
    NoTopology(FlavorId),
    /// The flavor has a topology, but the pod set requests none.
    OnlyTopologyAware(FlavorId),
    /// The flavor's topology does not have the level.
    NoTopologyLevel(FlavorId),
    /// The pod set requests a topology, but none of its flavors has one.
    NoTopologyFlavor,
    /// The pod set requests a topology, but no flavor of the ClusterQueue has one.
    NoTopologies,
    /// The pod set requests a topology, but several of its flavors have one; sorted by name.
    TopologyFlavors(Box<[FlavorId]>),
    /// The pod set of a replacement slice requires or prefers one topology domain, which is not supported.
    ElasticConstraint {
        /// It requires one.
        required: bool,
    },
    /// Nodes of a reserving Workload failed and have no replacement.
    NodesFailed(Box<[TopologyNodeId]>),
    /// The topology has no domains for the pods.
    TopologyPlacement(Box<PlacementFailure>),
}

impl NoFitReason {
    /// Whether it is an error of the pod set, which is reported alone.
    pub(crate) fn is_error(&self) -> bool {
        matches!(
            self,
            Self::NoTopologyFlavor
                | Self::NoTopologies
                | Self::TopologyFlavors(_)
                | Self::ElasticConstraint { .. }
        )
    }
}

/// Why a Workload is pending, as its conditions name it. Later is more severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PendingReason {
    /// Quota suffices, but there is no topology assignment.
    TopologyPlacementFailed,
    /// Quota is in use.
    WaitingForQuota,
    /// The request exceeds the maximum quota.
    ExceedsMaxQuota,
    /// No flavor suits the pods.
    NoMatchingFlavor,
}

impl PendingReason {
    /// The condition reason.
    pub fn name(self) -> &'static str {
        match self {
            Self::TopologyPlacementFailed => "TopologyPlacementFailed",
            Self::WaitingForQuota => "WaitingForQuota",
            Self::ExceedsMaxQuota => "ExceedsMaxQuota",
            Self::NoMatchingFlavor => "NoMatchingFlavor",
        }
    }
}

/// Why a Workload may be preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PreemptionReason {
    /// It is in the preemptor's ClusterQueue.
    InClusterQueue,
    /// Its ClusterQueue borrows quota that the preemptor may reclaim.
    InCohortReclamation,
    /// Its ClusterQueue has the larger share.
    InCohortFairSharing,
    /// The preemptor borrows too, and it has the lower priority.
    InCohortReclaimWhileBorrowing,
}

impl PreemptionReason {
    /// The condition reason.
    pub fn name(self) -> &'static str {
        match self {
            Self::InClusterQueue => "InClusterQueue",
            Self::InCohortReclamation => "InCohortReclamation",
            Self::InCohortFairSharing => "InCohortFairSharing",
            Self::InCohortReclaimWhileBorrowing => "InCohortReclaimWhileBorrowing",
        }
    }
}
