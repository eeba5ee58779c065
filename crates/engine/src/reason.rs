//! Why something does not fit, as values. [`crate::explain`] turns them into words; nobody pays for words before that.

use crate::amount::Amount;
use crate::ids::{FlavorId, ResourceId, Slot, TopologyNodeId};
use crate::topology::PlacementFailure;

/// One obstacle for one pod set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoFitReason {
    /// The request is larger than the queue can ever have.
    ExceedsMaximum {
        /// Flavor and resource.
        slot: Slot,
        /// What earlier pod sets of the same Workload take.
        earlier: Amount,
        /// What this one asks for.
        request: Amount,
        /// What there is.
        maximum: Amount,
    },
    /// Too much is in use now.
    InUse {
        /// Flavor and resource.
        slot: Slot,
        /// How much more would have to be free.
        missing: Amount,
    },
    /// Nobody tolerates a taint of the flavor.
    Taint {
        /// The flavor.
        flavor: FlavorId,
        /// Which of its taints.
        taint: usize,
    },
    /// Node selector or affinity exclude the flavor.
    Affinity(FlavorId),
    /// The flavor does not exist.
    FlavorNotFound(FlavorId),
    /// On a second look within a cycle only the flavors of the first are considered.
    NotNominated {
        /// The flavor that was passed over.
        flavor: FlavorId,
        /// For which resource.
        resource: ResourceId,
    },
    /// The Workload is not allowed the flavor.
    FlavorNotAllowed(FlavorId),
    /// The Workload replaces a slice that has another flavor.
    DiffersFromReplacedSlice {
        /// The flavor that was passed over.
        flavor: FlavorId,
        /// The one that the old slice has; none if it never had the resource.
        original: Option<FlavorId>,
    },
    /// No resource group covers the resource.
    ResourceNotCovered(ResourceId),
    /// The pod set wants a topology, the flavor has none.
    NoTopology(FlavorId),
    /// The flavor has a topology, the pod set asks for none.
    OnlyTopologyAware(FlavorId),
    /// The flavor's topology does not have the level.
    NoTopologyLevel(FlavorId),
    /// The pod set asks for places, and gets no flavor that has any.
    NoTopologyFlavor,
    /// The pod set asks for places, and no flavor of the queue has any.
    NoTopologies,
    /// The pod set asks for places, and gets several flavors that have some; in the order of their names.
    TopologyFlavors(Box<[FlavorId]>),
    /// The pod set of a slice that replaces another must stand together, or else would rather do so.
    ElasticConstraint {
        /// It must.
        required: bool,
    },
    /// Machines failed under a holder that nothing can stand in for.
    NodesFailed(Box<[TopologyNodeId]>),
    /// The pods cannot be placed within the topology.
    TopologyPlacement(Box<PlacementFailure>),
}

impl NoFitReason {
    /// Whether it is an error of its pod set: nothing else is said then.
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

/// The kind of obstacle that a whole Workload meets, as conditions name it. Later is more severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PendingReason {
    /// There is quota, but no place in the topology.
    TopologyPlacementFailed,
    /// Quota is in use.
    WaitingForQuota,
    /// There will never be enough quota.
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

/// Why a victim is preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PreemptionReason {
    /// It is in the preemptor's own queue.
    InClusterQueue,
    /// Its queue uses what belongs to the preemptor.
    InCohortReclamation,
    /// Its queue has the larger share.
    InCohortFairSharing,
    /// Both borrow, and it has the lower priority.
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
