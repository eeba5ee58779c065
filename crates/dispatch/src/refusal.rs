//! Why a cluster does not take a Workload: values first, words when somebody asks.
//!
//! Source: docs/reference/dispatch.md §1 and §5, "a reason per cluster".

use std::fmt;

use engine::{
    Amount, Names, RequeueKey, Time,
    explain::quantity::format_quantity,
    ids::{ClusterId, ResourceId, WorkloadId},
};

use crate::JobGvk;

/// What is missing for a pod set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShortageCause {
    /// No node has labels and taints that suit it.
    NoSuitableNode,
    /// One pod is larger than what any suitable node has free.
    PodTooLarge {
        /// Of what.
        resource: ResourceId,
        /// What one pod needs.
        need: Amount,
        /// The most that is free on one node.
        most: Amount,
    },
    /// Not all of its pods fit.
    TooFewNodes {
        /// Pods that fit.
        fit: i64,
        /// Pods there are.
        count: i64,
    },
}

/// The pod set that finds no room, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityShortage {
    /// Which.
    pub pod_set: Box<str>,
    /// Why.
    pub cause: ShortageCause,
}

/// Why a cluster does not take a Workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterRefusal {
    /// It cannot be reached.
    NotConnected,
    /// It does not say what it can take, or not lately.
    NoReport,
    /// It takes nothing new.
    Draining,
    /// It cannot run jobs of this kind.
    KindNotSupported(JobGvk),
    /// The policy does not let jobs of this kind be dispatched.
    KindNotAllowed(JobGvk),
    /// The policy does not let work of this namespace be dispatched.
    NamespaceNotAllowed(Box<str>),
    /// The Workload does not want clusters with these labels.
    AffinityMismatch,
    /// It refused the Workload before.
    Excluded {
        /// When it may be asked again.
        until: Time,
        /// What it said.
        why: Box<str>,
    },
    /// It has no room.
    InsufficientCapacity(CapacityShortage),
    /// It has room, but keeps it for another that comes first.
    ReservedForGang {
        /// For whom.
        workload: WorkloadId,
        /// When the room is there at the latest, if that is known.
        at: Option<Time>,
    },
}

/// No cluster takes a Workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementRefusal {
    /// What it waits for.
    pub key: RequeueKey,
    /// Why, cluster by cluster, in the order of the configuration.
    pub reasons: Vec<(ClusterId, ClusterRefusal)>,
}

impl ClusterRefusal {
    /// In plain English. The tables of names are needed for resources.
    pub fn message<'a>(&'a self, names: &'a Names) -> impl fmt::Display + 'a {
        RefusalMessage { refusal: self, names }
    }
}

struct RefusalMessage<'a> {
    refusal: &'a ClusterRefusal,
    names: &'a Names,
}

impl fmt::Display for RefusalMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.refusal {
            ClusterRefusal::NotConnected => f.write_str("not connected"),
            ClusterRefusal::NoReport => f.write_str("does not report its capacity"),
            ClusterRefusal::Draining => f.write_str("is being drained"),
            ClusterRefusal::KindNotSupported(kind) => write!(f, "cannot run {kind}"),
            ClusterRefusal::KindNotAllowed(kind) => write!(f, "the policy does not allow {kind}"),
            ClusterRefusal::NamespaceNotAllowed(namespace) => {
                write!(f, "the policy does not allow namespace {namespace}")
            }
            ClusterRefusal::AffinityMismatch => f.write_str("does not match the cluster affinity"),
            ClusterRefusal::Excluded { why, .. } => write!(f, "left out for now: {why}"),
            ClusterRefusal::InsufficientCapacity(misfit) => {
                write!(f, "pod set {}: ", misfit.pod_set)?;
                lack(f, &misfit.cause, self.names)
            }
            // The other may be somebody else's, so it is not named.
            ClusterRefusal::ReservedForGang { .. } => {
                f.write_str("keeps its room for one that has waited longer")
            }
        }
    }
}

fn lack(f: &mut fmt::Formatter<'_>, lack: &ShortageCause, names: &Names) -> fmt::Result {
    match lack {
        ShortageCause::NoSuitableNode => f.write_str("no node has suitable labels and taints"),
        ShortageCause::PodTooLarge { resource, need, most } => {
            let resource = names.resources.name(*resource);
            let (need, most) = (format_quantity(resource, *need), format_quantity(resource, *most));
            write!(f, "one pod needs {need} {resource}, the most free on a node is {most}")
        }
        ShortageCause::TooFewNodes { fit, count } => write!(f, "only {fit} of {count} pods fit"),
    }
}

impl fmt::Display for JobGvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.is_empty() {
            true => write!(f, "{}/{}", self.version, self.kind),
            false => write!(f, "{}/{}/{}", self.group, self.version, self.kind),
        }
    }
}
