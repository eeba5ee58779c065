//! The capacity that a selection of domains needs: units of pods, and leaders.

use crate::topology::leaf_counts::DomainCounts;
use crate::topology::normalized_request::units;

/// The unit in which pods are assigned to domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AssignmentUnit {
    /// Slices as counted at the slice level.
    Slice(i64),
    /// Slices of an inner layer.
    Layer(i64),
    /// Single pods.
    Pod,
}

impl AssignmentUnit {
    /// Pods per unit.
    pub(super) fn size(self) -> i64 {
        match self {
            Self::Slice(size) | Self::Layer(size) => size,
            Self::Pod => 1,
        }
    }

    /// Units that fit into a domain.
    pub(super) fn fitting(self, count: DomainCounts, with_leader: bool) -> i64 {
        match (self, with_leader) {
            (Self::Slice(_), false) => count.slices,
            (Self::Slice(_), true) => count.slices_with_leader,
            (Self::Layer(size), false) => count.pods / size,
            (Self::Layer(size), true) => count.pods_with_leader / size,
            (Self::Pod, false) => count.pods,
            (Self::Pod, true) => count.pods_with_leader,
        }
    }
}

/// Pods to assign.
#[derive(Debug, Clone, Copy)]
pub(super) struct PodsToAssign {
    pub(super) pods: i64,
    pub(super) leaders: i64,
}

/// Units and leaders that are not assigned yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct NeededCapacity {
    pub(super) unit: AssignmentUnit,
    pub(super) units: i64,
    pub(super) leaders: i64,
}

impl NeededCapacity {
    pub(super) fn of(to_assign: PodsToAssign, unit: AssignmentUnit) -> Self {
        let PodsToAssign { pods, leaders } = to_assign;
        Self { unit, units: units(pods, unit.size()), leaders }
    }

    /// Units that fit into a domain; beside a leader if one is not assigned yet.
    pub(super) fn fitting(self, count: DomainCounts) -> i64 {
        self.unit.fitting(count, self.leaders > 0)
    }

    /// Whether a domain holds everything.
    pub(super) fn fits(self, count: DomainCounts) -> bool {
        count.leader >= self.leaders && self.fitting(count) >= self.units
    }
}
