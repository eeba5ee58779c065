//! What is missing where pods find no places, as values; [`shortfall`](super::shortfall) finds it out.

use std::sync::Arc;

use crate::amount::Amount;
use crate::ids::ResourceId;
use crate::topology::TopologyMode;
use crate::topology::exclusion_stats::NodeMismatch;
use crate::topology::topology_usage::TopologyUsage;

/// See the module. Counts are in slices where slices are asked for, in pods otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementShortfall {
    /// How the pods must stand together.
    pub mode: TopologyMode,
    /// Level and pods of a slice.
    pub slice: Option<(Box<str>, i64)>,
    /// A leader goes with them.
    pub has_leader: bool,
    /// How many are asked for.
    pub requested: i64,
    /// How many find places now, in the domain where most do.
    pub fit: FittingCount,
    /// How many would if nothing were in use.
    pub maximum: FittingCount,
    /// The domain that is nearest to holding everybody; `None` is the whole topology.
    pub domain: Option<Arc<[Box<str>]>>,
    /// How many find places in it now.
    pub fit_in_domain: FittingCount,
    /// Pods of earlier pod sets of the same Workload that count there.
    pub earlier: i64,
    /// The resource that leaves least room there; `None` if no single one is to blame.
    pub limiting_resource: Option<LimitingResource>,
    /// Lowest domains of the topology.
    pub leaves: usize,
    /// The label of their level.
    pub lowest_level: Box<str>,
    /// Lowest domains where the pods may not stand at all.
    pub mismatches: Vec<(NodeMismatch, usize)>,
    /// Who stands there, most first; nobody where no waiting helps.
    pub users: Vec<TopologyUsage>,
    /// How many more do.
    pub more_users: usize,
    /// What would help.
    pub remedies: Vec<PlacementRemedy>,
}

impl PlacementShortfall {
    /// No waiting helps.
    pub fn exceeds_maximum(&self) -> bool {
        !self.maximum.holds(self.requested)
    }

    /// How many more must find places.
    pub fn missing(&self) -> i64 {
        let fit = if self.exceeds_maximum() { self.maximum } else { self.fit_in_domain };
        (self.requested - fit.units).max(0)
    }
}

/// How many fit, and whether their leader does. Later is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FittingCount {
    /// The leader has a place, if there is one.
    pub leader: bool,
    /// Slices or pods, beside the leader if it has a place.
    pub units: i64,
}

impl FittingCount {
    /// Whether everybody fits.
    pub fn holds(self, requested: i64) -> bool {
        self.leader && self.units >= requested
    }

    /// The search has the last word: what was counted but cannot be dealt out in whole slices is no room.
    pub(super) fn reconciled(self, requested: i64, found: bool) -> Self {
        match (found, self.holds(requested)) {
            (true, false) => Self { leader: true, units: requested },
            (false, true) => Self { units: 0, ..self },
            _ => self,
        }
    }
}

/// A resource of which there is too little.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitingResource {
    /// Which.
    pub resource: ResourceId,
    /// What everybody who is to stand there asks for.
    pub request: Amount,
    /// What is free there, or would be if nothing were in use where no waiting helps.
    pub free: Amount,
    /// The most of it in one lowest domain.
    pub largest: Amount,
    /// What the missing ones need beside what is left over in the right places. What is too small for a pod of a slice,
    /// or for an inner layer, is not left over.
    pub missing: Amount,
}

/// A change that would help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementRemedy {
    /// Places are given back there.
    ReleaseCapacity,
    /// A preferred level instead of the required one: there are places for that now.
    PreferInsteadOfRequire,
    /// More machines, or larger ones.
    AddNodes,
}
