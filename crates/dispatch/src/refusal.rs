//! Why a cluster does not take a Workload: values first, words when somebody asks.
//!
//! Source: docs/reference/dispatch.md §1 and §5, "a reason per cluster".

use std::fmt;

use engine::{
    Amount, Names, RequeueKey, Time,
    explain::quantity::format_quantity,
    ids::{ClusterId, ResourceId, WorkloadId},
};

use crate::Kind;

/// What is missing for a pod set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// No node has labels and taints that suit it.
    Nodes,
    /// One pod is larger than what any suitable node has free.
    Size {
        /// Of what.
        resource: ResourceId,
        /// What one pod needs.
        need: Amount,
        /// The most that is free on one node.
        most: Amount,
    },
    /// Not all of its pods fit.
    Count {
        /// Pods that fit.
        fit: i64,
        /// Pods there are.
        count: i64,
    },
}

/// The pod set that finds no room, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// Which.
    pub pod_set: Box<str>,
    /// Why.
    pub lack: Lack,
}

/// Why a cluster does not take a Workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It cannot be reached.
    NotConnected,
    /// It does not say what it can take, or not lately.
    NoReport,
    /// It takes nothing new.
    Draining,
    /// It cannot run jobs of this kind.
    CannotRun(Kind),
    /// The policy does not let jobs of this kind be dispatched.
    KindNotAllowed(Kind),
    /// The policy does not let work of this namespace be dispatched.
    NamespaceNotAllowed(Box<str>),
    /// The Workload does not want clusters with these labels.
    Affinity,
    /// It refused the Workload before.
    Excluded {
        /// When it may be asked again.
        until: Time,
        /// What it said.
        why: Box<str>,
    },
    /// It has no room.
    NoRoom(Misfit),
    /// It has room, but keeps it for another that comes first.
    Kept {
        /// For whom.
        whom: WorkloadId,
        /// When the room is there at the latest, if that is known.
        at: Option<Time>,
    },
}

/// No cluster takes a Workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What it waits for.
    pub key: RequeueKey,
    /// Why, cluster by cluster, in the order of the configuration.
    pub why: Vec<(ClusterId, Refusal)>,
}

impl Refusal {
    /// In plain English. The tables of names are needed for resources.
    pub fn in_words<'a>(&'a self, names: &'a Names) -> impl fmt::Display + 'a {
        Words { refusal: self, names }
    }
}

struct Words<'a> {
    refusal: &'a Refusal,
    names: &'a Names,
}

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.refusal {
            Refusal::NotConnected => f.write_str("not connected"),
            Refusal::NoReport => f.write_str("does not report its capacity"),
            Refusal::Draining => f.write_str("is being drained"),
            Refusal::CannotRun(kind) => write!(f, "cannot run {kind}"),
            Refusal::KindNotAllowed(kind) => write!(f, "the policy does not allow {kind}"),
            Refusal::NamespaceNotAllowed(namespace) => {
                write!(f, "the policy does not allow namespace {namespace}")
            }
            Refusal::Affinity => f.write_str("does not match the cluster affinity"),
            Refusal::Excluded { why, .. } => write!(f, "left out for now: {why}"),
            Refusal::NoRoom(misfit) => {
                write!(f, "pod set {}: ", misfit.pod_set)?;
                lack(f, &misfit.lack, self.names)
            }
            // The other may be somebody else's, so it is not named.
            Refusal::Kept { .. } => f.write_str("keeps its room for one that has waited longer"),
        }
    }
}

fn lack(f: &mut fmt::Formatter<'_>, lack: &Lack, names: &Names) -> fmt::Result {
    match lack {
        Lack::Nodes => f.write_str("no node has suitable labels and taints"),
        Lack::Size { resource, need, most } => {
            let resource = names.resources.name(*resource);
            let (need, most) = (format_quantity(resource, *need), format_quantity(resource, *most));
            write!(f, "one pod needs {need} {resource}, the most free on a node is {most}")
        }
        Lack::Count { fit, count } => write!(f, "only {fit} of {count} pods fit"),
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.is_empty() {
            true => write!(f, "{}/{}", self.version, self.kind),
            false => write!(f, "{}/{}/{}", self.group, self.version, self.kind),
        }
    }
}
