//! What is missing when a search finds no topology assignment, as values.
//! [`shortfall_analysis`](super::shortfall_analysis) computes them.

use std::sync::Arc;

use crate::amount::Amount;
use crate::ids::ResourceId;
use crate::topology::TopologyMode;
use crate::topology::exclusion_stats::NodeMismatch;
use crate::topology::topology_usage::TopologyUsage;

/// Why pods do not fit into a topology, and what would help. Counts are in slices if slices are requested,
/// otherwise in pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementShortfall {
    /// Constraint on the whole pod set.
    pub mode: TopologyMode,
    /// Slice level and pods per slice.
    pub slice: Option<(Box<str>, i64)>,
    /// The pod set group has a leader.
    pub has_leader: bool,
    /// Units requested.
    pub requested: i64,
    /// Units that fit now: into the best domain, or into the whole topology.
    pub fit: FittingCount,
    /// Units that would fit into an empty topology.
    pub maximum: FittingCount,
    /// The domain closest to fitting the request; `None` for the whole topology.
    pub domain: Option<Arc<[Box<str>]>>,
    /// Units that fit into that domain now.
    pub fit_in_domain: FittingCount,
    /// Pods of earlier pod sets of the same Workload in that domain.
    pub earlier: i64,
    /// The resource with the fewest units in that domain; `None` if no single resource is the limit.
    pub limiting_resource: Option<LimitingResource>,
    /// Number of leaves of the topology; of their nodes, if pods are counted node by node.
    pub leaves: usize,
    /// Node label of the lowest level; that of nodes, if pods are counted node by node.
    pub lowest_level: Box<str>,
    /// Leaves whose nodes do not match the pods, by reason.
    pub mismatches: Vec<(NodeMismatch, usize)>,
    /// Users of the limiting resource in that domain, largest first; empty if the request exceeds the maximum.
    pub users: Vec<TopologyUsage>,
    /// Number of users beyond those listed.
    pub more_users: usize,
    /// Changes that would help.
    pub remedies: Vec<PlacementRemedy>,
}

impl PlacementShortfall {
    /// Whether the request does not fit even into an empty topology: no release of usage helps.
    pub fn exceeds_maximum(&self) -> bool {
        !self.maximum.fits_all(self.requested)
    }

    /// Units that do not fit.
    pub fn missing(&self) -> i64 {
        let fit = if self.exceeds_maximum() { self.maximum } else { self.fit_in_domain };
        (self.requested - fit.units).max(0)
    }
}

/// Units that fit, and whether the leader fits. Ordered from worse to better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FittingCount {
    /// The leader fits, or there is none.
    pub leader: bool,
    /// Slices or pods that fit, beside the leader if it fits.
    pub units: i64,
}

impl FittingCount {
    /// Whether all requested units and the leader fit.
    pub fn fits_all(self, requested: i64) -> bool {
        self.leader && self.units >= requested
    }

    /// Adjusts a count to the result of the search: units that are counted but cannot be assigned as whole slices
    /// do not fit.
    pub(super) fn reconciled(self, requested: i64, found: bool) -> Self {
        match (found, self.fits_all(requested)) {
            (true, false) => Self { leader: true, units: requested },
            (false, true) => Self { units: 0, ..self },
            _ => self,
        }
    }
}

/// The resource that limits a placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitingResource {
    /// The resource.
    pub resource: ResourceId,
    /// Request of all pods, the leader included.
    pub request: Amount,
    /// Free capacity of the domain; its total capacity if the request exceeds the maximum.
    pub free: Amount,
    /// Largest free capacity of a single leaf, or of a single node if pods are counted node by node.
    pub largest: Amount,
    /// What the missing units need beyond the remainders that they can use. A remainder too small for a pod of a
    /// slice, or for an inner slice layer, is not usable.
    pub missing: Amount,
}

/// A change that would help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementRemedy {
    /// Usage is released in the domain.
    ReleaseCapacity,
    /// A preferred level instead of the required one: the pods would fit now.
    PreferInsteadOfRequire,
    /// More nodes, or larger ones.
    AddNodes,
}
