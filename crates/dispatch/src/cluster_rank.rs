//! How good a cluster is for a Workload that fits on it, among others that it fits on as well.
//!
//! The free share is the minimum over requested resources of `free_after / size`. The size does not change with
//! dispatched work, so the share does not depend on how often a cluster reports. That of a cluster that fits the Workload only with
//! new nodes of an autoscaler is the share of new nodes that are left. The weight multiplies the free share under Spread, and the rest
//! of it under BinPack. Source: docs/reference/dispatch.md §1-3, §5.

use std::cmp::{Ordering, Reverse};

use engine::ids::ClusterId;

use crate::AssignedWorkload;
use crate::node_packing::{NewNodes, PackedNodes};
use crate::policy::{PlacementPolicy, PlacementStrategy};

/// A fraction between zero and one, or such a fraction times the weight of its cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FreeShare {
    left: i128,
    of: i128,
}

impl FreeShare {
    /// The share of the only cluster.
    pub(crate) const ALL: Self = Self { left: 1, of: 1 };

    /// The share of new nodes that are left.
    pub(crate) fn of_new_nodes(nodes: NewNodes) -> Self {
        Self { left: nodes.left.into(), of: nodes.of.into() }
    }

    /// Free share of the scarcest requested resource after the placement. A Workload without requests leaves
    /// everything free.
    pub(crate) fn after(nodes: &PackedNodes, work: &AssignedWorkload) -> Self {
        let shares = work.total_requests().into_iter().map(|(resource, amount)| {
            let (free, size) = (nodes.free(resource), nodes.total_allocatable(resource));
            // Reused capacity of an ended Workload is not free yet, so the difference may be
            // negative.
            let left = free.saturating_sub(amount.0).max(0);
            Self { left: left.into(), of: size.max(1).into() }
        });
        shares.min().unwrap_or(Self::ALL)
    }

    /// What is not free.
    fn used(self) -> Self {
        Self { left: self.of.saturating_sub(self.left).max(0), of: self.of }
    }

    /// Counts it as often as the weight of the cluster says.
    fn weighted(self, weight: i32) -> Self {
        // The product of two of them has to fit.
        let shift = if self.of >= LARGE_SIZE { 11 } else { 0 };
        let weight = i128::from(weight.clamp(0, MAX_WEIGHT));
        Self { left: (self.left >> shift) * weight, of: self.of >> shift }
    }

    /// Whether it is so many percent or more.
    pub(crate) fn is_at_least(self, percent: u8) -> bool {
        self.left * 100 >= i128::from(percent) * self.of
    }
}

impl Ord for FreeShare {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.left * other.of).cmp(&(other.left * self.of))
    }
}

impl PartialOrd for FreeShare {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for FreeShare {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for FreeShare {}

/// The largest weight, by the schema of a DispatchPolicy.
const MAX_WEIGHT: i32 = 1000;

/// A size above which two weighted shares are compared with eleven bits less.
const LARGE_SIZE: i128 = 1 << 52;

/// Rank of a candidate. Candidates with equal rank keep the order of the configuration.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClusterRank {
    /// It holds the checkpoint of the job.
    pub(crate) holds_checkpoint: bool,
    /// It needs no new nodes.
    pub(crate) has_room: bool,
    /// One of its ClusterQueues has the quota, or it has no queues.
    pub(crate) has_quota: bool,
    /// The Workload prefers it.
    pub(crate) is_preferred: bool,
    pub(crate) score: ClusterScore,
}

/// What a policy thinks of a candidate.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClusterScore {
    Ordered,
    Spread(Reverse<i64>, FreeShare, i32),
    BinPack(Reverse<i64>, FreeShare, i32),
}

impl ClusterScore {
    pub(crate) fn new(policy: &PlacementPolicy, cluster: ClusterId, share: FreeShare) -> Self {
        let (weight, cost) = (policy.weight(cluster), Reverse(policy.cost(cluster)));
        match policy.strategy {
            PlacementStrategy::Ordered => Self::Ordered,
            PlacementStrategy::Spread => Self::Spread(cost, share.weighted(weight), weight),
            PlacementStrategy::BinPack => {
                Self::BinPack(cost, share.used().weighted(weight), weight)
            }
        }
    }
}
