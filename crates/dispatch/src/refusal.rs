//! Why a cluster does not take a Workload: values, and their messages.
//!
//! Source: docs/reference/dispatch.md §1 and §5, "a reason per cluster".

use std::fmt;

use engine::{
    Amount, Names, RequeueKey, Time,
    explain::quantity::format_quantity,
    ids::{ClusterId, ResourceId, WorkloadId},
};

use crate::{JobGvk, PROTOCOL, RunTime};

/// The cause of a capacity shortage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShortageCause {
    /// No node matches the labels and taints.
    NoSuitableNode,
    /// One pod requests more than any suitable node has free.
    PodTooLarge {
        /// The resource.
        resource: ResourceId,
        /// Request of one pod.
        need: Amount,
        /// Largest free amount on a suitable node.
        most: Amount,
    },
    /// Some pods fit, but not all.
    TooFewNodes {
        /// Pods that fit.
        fit: i64,
        /// All pods.
        count: i64,
    },
}

/// A pod set that does not fit, with the cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityShortage {
    /// Name of the pod set.
    pub pod_set: Box<str>,
    /// The cause.
    pub cause: ShortageCause,
}

/// Why a cluster does not take a Workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterRefusal {
    /// The cluster is not connected.
    NotConnected,
    /// The slice that the Workload extends runs on this cluster, or its checkpoint is there, and its MultiKueueConfig does not have
    /// the cluster any more.
    NotConfigured,
    /// The cluster has no report.
    NoReport,
    /// The cluster reports nothing, and enough other Workloads wait for its queues.
    QueueFull,
    /// The last report of the cluster is too old.
    StaleReport,
    /// Its agent speaks this version of the dispatch protocol, which the manager does not serve.
    UnservedProtocol(i32),
    /// Its agent, of the next version, admits in this mode, which the manager does not know.
    UnknownMode(Box<str>),
    /// Its agent gets no grants, which `execution: ExactlyOnce` needs.
    NoLeases,
    /// The policy drains the cluster.
    Draining,
    /// The cluster does not run this kind.
    KindNotSupported(JobGvk),
    /// The policy does not allow this kind.
    KindNotAllowed(JobGvk),
    /// The policy does not allow this namespace.
    NamespaceNotAllowed(Box<str>),
    /// A flavor of the Workload is bound to other clusters.
    FlavorElsewhere,
    /// The cluster's labels do not match the Workload's affinity.
    AffinityMismatch,
    /// This other cluster holds the checkpoint that the Workload requires.
    CheckpointElsewhere(Box<str>),
    /// Other Workloads of its set are on another cluster.
    SetElsewhere,
    /// The cluster refused the Workload before.
    Excluded {
        /// End of the exclusion.
        until: Time,
        /// The worker's message.
        why: Box<str>,
    },
    /// The nodes do not fit the Workload, and neither do new ones of its autoscaler.
    InsufficientCapacity(CapacityShortage),
    /// The nodes would not fit the Workload even if nothing else that was dispatched were there.
    NeverFits(CapacityShortage),
    /// The capacity is reserved for a gang with an earlier queue position.
    ReservedForGang {
        /// The gang.
        workload: WorkloadId,
        /// Start of the reservation, if known.
        at: Option<Time>,
        /// How long the Workload itself runs, if that is known.
        run_time: Option<RunTime>,
    },
}

/// No cluster takes a Workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementRefusal {
    /// Requeue key under which it waits.
    pub key: RequeueKey,
    /// One reason per cluster, in the order of the configuration.
    pub reasons: Vec<(ClusterId, ClusterRefusal)>,
}

impl ClusterRefusal {
    /// Message for people. `names` resolves the resources.
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
            ClusterRefusal::NotConfigured => f.write_str("is not in the MultiKueueConfig"),
            ClusterRefusal::NoReport => f.write_str("does not report its capacity"),
            ClusterRefusal::QueueFull => f.write_str("others wait for its queues already"),
            ClusterRefusal::StaleReport => f.write_str("has not reported its capacity for long"),
            ClusterRefusal::UnservedProtocol(version) => {
                write!(
                    f,
                    "its agent speaks version {version} of the dispatch protocol, the manager {PROTOCOL}"
                )
            }
            ClusterRefusal::UnknownMode(mode) => {
                write!(f, "its agent admits in mode {mode}, which the manager does not know")
            }
            ClusterRefusal::NoLeases => {
                f.write_str("no agent takes part in the leases that ExactlyOnce needs")
            }
            ClusterRefusal::Draining => f.write_str("is being drained"),
            ClusterRefusal::KindNotSupported(kind) => write!(f, "cannot run {kind}"),
            ClusterRefusal::KindNotAllowed(kind) => write!(f, "the policy does not allow {kind}"),
            ClusterRefusal::NamespaceNotAllowed(namespace) => {
                write!(f, "the policy does not allow namespace {namespace}")
            }
            ClusterRefusal::FlavorElsewhere => f.write_str("its flavor is bound to other clusters"),
            ClusterRefusal::AffinityMismatch => f.write_str("does not match the cluster affinity"),
            ClusterRefusal::CheckpointElsewhere(name) => {
                write!(f, "the checkpoint that its job requires is on {name}")
            }
            ClusterRefusal::SetElsewhere => {
                f.write_str("other replicas of its set are on another cluster")
            }
            ClusterRefusal::Excluded { why, .. } => write!(f, "left out for now: {why}"),
            ClusterRefusal::InsufficientCapacity(misfit) | ClusterRefusal::NeverFits(misfit) => {
                if matches!(self.refusal, ClusterRefusal::NeverFits(_)) {
                    f.write_str("never fits: ")?;
                }
                write!(f, "pod set {}: ", misfit.pod_set)?;
                write_shortage(f, &misfit.cause, self.names)
            }
            // The gang may belong to another tenant, so the message does not name it.
            ClusterRefusal::ReservedForGang { at, run_time, .. } => {
                f.write_str("keeps its room for one that has waited longer")?;
                match (at, run_time) {
                    (None, _) => Ok(()),
                    (Some(_), Some(run_time)) => write!(f, "; this one runs for {run_time}"),
                    (Some(_), None) => f.write_str("; the run time of this one is not known"),
                }
            }
        }
    }
}

fn write_shortage(f: &mut fmt::Formatter<'_>, cause: &ShortageCause, names: &Names) -> fmt::Result {
    match cause {
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
        if self.group.is_empty() {
            write!(f, "{}/{}", self.version, self.kind)
        } else {
            write!(f, "{}/{}/{}", self.group, self.version, self.kind)
        }
    }
}
