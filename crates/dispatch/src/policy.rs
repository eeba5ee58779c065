//! What may choose among clusters: a MultiKueueConfig and its DispatchPolicy (docs/reference/dispatch.md §3).

use engine::ids::ClusterId;

use crate::Kind;

/// What makes one cluster better than another when both have room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
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
pub struct ClusterPolicy {
    /// Which.
    pub cluster: ClusterId,
    /// Preference among equals; higher is better, unset is 0.
    pub weight: i32,
    /// Takes nothing new.
    pub draining: bool,
}

/// When room is kept for those who wait for it, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// How long somebody must have been refused for want of room, in nanoseconds.
    pub after: i64,
    /// The most of a cluster that may be kept, in percent.
    pub max_share: u8,
}

/// A DispatchPolicy. The default is the policy where none is named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// How to choose.
    pub strategy: Strategy,
    /// Clusters that differ from the rest.
    pub clusters: Vec<ClusterPolicy>,
    /// How room is kept for the oldest of those who wait; not at all when unset.
    pub keeping: Option<Keeping>,
    /// Namespaces whose work may be dispatched; all when unset.
    pub namespaces: Option<Vec<Box<str>>>,
    /// Kinds that may be dispatched; all when unset. An entry without a version stands for every version.
    pub kinds: Option<Vec<Kind>>,
}

impl Policy {
    fn of(&self, cluster: ClusterId) -> Option<&ClusterPolicy> {
        self.clusters.iter().find(|one| one.cluster == cluster)
    }

    /// The weight of a cluster.
    pub(crate) fn weight(&self, cluster: ClusterId) -> i32 {
        self.of(cluster).map_or(0, |one| one.weight)
    }

    /// Whether a cluster takes nothing new.
    pub(crate) fn draining(&self, cluster: ClusterId) -> bool {
        self.of(cluster).is_some_and(|one| one.draining)
    }

    /// Whether work of a namespace may be dispatched.
    pub(crate) fn allows_namespace(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|allowed| allowed.iter().any(|one| **one == *namespace))
    }

    /// Whether work of a kind may be dispatched.
    pub(crate) fn allows_kind(&self, kind: &Kind) -> bool {
        let same = |one: &Kind| {
            one.group == kind.group
                && one.kind == kind.kind
                && (one.version.is_empty() || one.version == kind.version)
        };
        self.kinds.as_ref().is_none_or(|allowed| allowed.iter().any(same))
    }
}

/// A MultiKueueConfig.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    /// Its clusters; the order matters.
    pub clusters: Vec<ClusterId>,
    /// How to choose among them.
    pub policy: Policy,
}
