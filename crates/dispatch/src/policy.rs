//! What may choose among clusters: a MultiKueueConfig and its DispatchPolicy (docs/reference/dispatch.md §3).

use engine::ids::ClusterId;

use crate::JobGvk;

/// What makes one cluster better than another when both have room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlacementStrategy {
    /// The one that keeps the largest share of its free room.
    #[default]
    Spread,
    /// The one that keeps the smallest.
    BinPack,
    /// The one that is listed first.
    Ordered,
}

/// What is special about one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterPreference {
    /// Which.
    pub cluster: ClusterId,
    /// Preference among equals; higher is better, unset is 0.
    pub weight: i32,
    /// Takes nothing new.
    pub draining: bool,
}

/// When room is kept for those who wait for it, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GangReservationPolicy {
    /// How long somebody must have been refused for want of room, in nanoseconds.
    pub after: i64,
    /// The most of a cluster that may be kept, in percent.
    pub max_share: u8,
}

/// A DispatchPolicy. The default is the policy where none is named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlacementPolicy {
    /// How to choose.
    pub strategy: PlacementStrategy,
    /// Clusters that differ from the rest.
    pub clusters: Vec<ClusterPreference>,
    /// How room is kept for the oldest of those who wait; not at all when unset.
    pub gang_reservation: Option<GangReservationPolicy>,
    /// Namespaces whose work may be dispatched; all when unset.
    pub namespaces: Option<Vec<Box<str>>>,
    /// Kinds that may be dispatched; all when unset. An entry without a version stands for every version.
    pub kinds: Option<Vec<JobGvk>>,
}

impl PlacementPolicy {
    fn preference(&self, cluster: ClusterId) -> Option<&ClusterPreference> {
        self.clusters.iter().find(|one| one.cluster == cluster)
    }

    /// The weight of a cluster.
    pub(crate) fn weight(&self, cluster: ClusterId) -> i32 {
        self.preference(cluster).map_or(0, |one| one.weight)
    }

    /// Whether a cluster takes nothing new.
    pub(crate) fn draining(&self, cluster: ClusterId) -> bool {
        self.preference(cluster).is_some_and(|one| one.draining)
    }

    /// Whether work of a namespace may be dispatched.
    pub(crate) fn allows_namespace(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|allowed| allowed.iter().any(|one| **one == *namespace))
    }

    /// Whether work of a kind may be dispatched.
    pub(crate) fn allows_kind(&self, kind: &JobGvk) -> bool {
        let same = |one: &JobGvk| {
            one.group == kind.group
                && one.kind == kind.kind
                && (one.version.is_empty() || one.version == kind.version)
        };
        self.kinds.as_ref().is_none_or(|allowed| allowed.iter().any(same))
    }
}

/// A MultiKueueConfig.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DispatchConfig {
    /// Its clusters; the order matters.
    pub clusters: Vec<ClusterId>,
    /// How to choose among them.
    pub policy: PlacementPolicy,
}
