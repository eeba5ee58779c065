//! A MultiKueueConfig and its DispatchPolicy (docs/reference/dispatch.md §3).

use engine::{Time, ids::ClusterId};

use crate::{Fencing, JobGvk, RebalancePolicy};

/// How to rank clusters that have capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlacementStrategy {
    /// Prefers the cluster with the largest free share afterwards.
    #[default]
    Spread,
    /// Prefers the cluster with the smallest free share afterwards.
    BinPack,
    /// Prefers the cluster that is listed first.
    Ordered,
}

/// Weight, cost and drain state of one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterPreference {
    /// The cluster.
    pub cluster: ClusterId,
    /// Multiplies the share that ranks it; [`ONE_WEIGHT`] by default.
    pub weight: i32,
    /// Takes no new work.
    pub draining: bool,
    /// When running work is withdrawn from a cluster that is drained; never if unset.
    pub drain_deadline: Option<Time>,
    /// Relative cost of a unit of work in thousandths; [`ONE_COST`] by default.
    pub cost: i64,
}

/// The weight of a cluster that the policy gives none.
pub const ONE_WEIGHT: i32 = 1;

/// The cost of a cluster that the policy gives none.
pub const ONE_COST: i64 = 1000;

impl ClusterPreference {
    /// A cluster about which nothing is special.
    #[must_use]
    pub fn of(cluster: ClusterId) -> Self {
        Self { cluster, weight: ONE_WEIGHT, draining: false, drain_deadline: None, cost: ONE_COST }
    }
}

/// When and how much capacity is reserved for blocked gangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GangReservationPolicy {
    /// Time in nanoseconds since the first refusal for lack of capacity.
    pub after: i64,
    /// Largest reserved share of a cluster, in percent.
    pub max_share: u8,
}

/// What `execution: ExactlyOnce` asks of the leases of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeasePolicy {
    /// What proves that the work of a lost cluster has stopped.
    pub fencing: Fencing,
    /// `leaseDuration`, in nanoseconds.
    pub duration: i64,
    /// Time in nanoseconds after which a cluster that is not reached is lost; that of the configuration if unset.
    pub lost_after: Option<i64>,
}

impl LeasePolicy {
    /// Of a policy that says no more than `execution: ExactlyOnce`.
    pub const DEFAULT: Self =
        Self { fencing: Fencing::Confirmed, duration: 60_000_000_000, lost_after: None };

    /// A policy that both satisfy: the stricter fencing, and the longer times.
    pub(crate) fn and(self, other: Self) -> Self {
        let confirmed = self.fencing == Fencing::Confirmed || other.fencing == Fencing::Confirmed;
        Self {
            fencing: if confirmed { Fencing::Confirmed } else { Fencing::Timed },
            duration: self.duration.max(other.duration),
            // The time of the configuration is not known here, and usually the longer one.
            lost_after: self.lost_after.zip(other.lost_after).map(|(one, two)| one.max(two)),
        }
    }
}

/// A DispatchPolicy. The default applies if a configuration names no policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlacementPolicy {
    /// Ranking of candidates.
    pub strategy: PlacementStrategy,
    /// Clusters with a preference.
    pub clusters: Vec<ClusterPreference>,
    /// Reservation for the oldest blocked gang; off if unset.
    pub gang_reservation: Option<GangReservationPolicy>,
    /// When queued work is moved; never if unset.
    pub rebalance: Option<RebalancePolicy>,
    /// Time in nanoseconds after which a cluster that is not reached is lost; that of the configuration if unset.
    pub lost_after: Option<i64>,
    /// The leases under `execution: ExactlyOnce`; `None` under KeepRunning.
    pub exactly_once: Option<LeasePolicy>,
    /// Namespaces that may be dispatched; all if unset.
    pub namespaces: Option<Vec<Box<str>>>,
    /// Kinds that may be dispatched; all if unset. An entry without a version matches every version.
    pub kinds: Option<Vec<JobGvk>>,
}

impl PlacementPolicy {
    fn preference(&self, cluster: ClusterId) -> Option<&ClusterPreference> {
        self.clusters.iter().find(|one| one.cluster == cluster)
    }

    /// Weight of a cluster.
    pub(crate) fn weight(&self, cluster: ClusterId) -> i32 {
        self.preference(cluster).map_or(ONE_WEIGHT, |one| one.weight)
    }

    /// Cost of a unit of work on a cluster.
    pub(crate) fn cost(&self, cluster: ClusterId) -> i64 {
        self.preference(cluster).map_or(ONE_COST, |one| one.cost)
    }

    /// When running work is withdrawn from a cluster.
    pub(crate) fn drain_deadline(&self, cluster: ClusterId) -> Option<Time> {
        self.preference(cluster).filter(|one| one.draining)?.drain_deadline
    }

    /// Drains a cluster, also if the policy itself does. The earlier deadline counts.
    pub fn drain(&mut self, cluster: ClusterId, deadline: Option<Time>) {
        if self.preference(cluster).is_none() {
            self.clusters.push(ClusterPreference::of(cluster));
        }
        for one in self.clusters.iter_mut().filter(|one| one.cluster == cluster) {
            let own = one.drain_deadline.filter(|_| one.draining);
            one.drain_deadline = own.into_iter().chain(deadline).min();
            one.draining = true;
        }
    }

    /// Whether a cluster is drained.
    pub(crate) fn draining(&self, cluster: ClusterId) -> bool {
        self.preference(cluster).is_some_and(|one| one.draining)
    }

    /// Whether the policy allows a namespace.
    pub(crate) fn allows_namespace(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|allowed| allowed.iter().any(|one| **one == *namespace))
    }

    /// Whether the policy allows a kind.
    pub(crate) fn allows_kind(&self, kind: &JobGvk) -> bool {
        let same = |one: &JobGvk| {
            one.group == kind.group
                && one.kind == kind.kind
                && (one.version.is_empty() || one.version == kind.version)
        };
        self.kinds.as_ref().is_none_or(|allowed| allowed.iter().any(same))
    }
}

/// A MultiKueueConfig with its policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlacementConfig {
    /// Clusters in the order of the configuration.
    pub clusters: Vec<ClusterId>,
    /// Rules for the choice among them.
    pub policy: PlacementPolicy,
}
