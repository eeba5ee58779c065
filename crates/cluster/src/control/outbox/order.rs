//! Orders: writes that were decided, each with the ticket that brings its answer back.

use ::jobs::Kind;
use runtime::{watch::Key, write::Write};

use super::purpose::Purpose;
use crate::control::{job_key::JobKey, timers::Reevaluation};

/// The cluster that a write goes to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    /// The cluster that the process belongs to.
    Home,
    /// A worker cluster, by the name of its MultiKueueCluster.
    Worker(Box<str>),
}

/// The kind of a written object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Workload.
    Workload,
    /// A job of this kind.
    Job(Kind),
    /// ClusterQueue.
    ClusterQueue,
    /// Cohort.
    Cohort,
    /// ResourceFlavor.
    ResourceFlavor,
    /// Topology.
    Topology,
    /// LocalQueue.
    LocalQueue,
    /// MultiKueueCluster.
    MultiKueueCluster,
    /// AdmissionCheck.
    AdmissionCheck,
    /// ProvisioningRequest.
    ProvisioningRequest,
    /// PodTemplate.
    PodTemplate,
    /// ClusterCapacity.
    Capacity,
    /// The ConfigMap of the incarnation.
    Incarnation,
    /// A Lease between manager and agent.
    Lease,
    /// An object that may own a job or pods, or be a child of a job, of this kind. It is only read.
    Owner {
        /// Group and version.
        api_version: Box<str>,
        /// Kind.
        kind: Box<str>,
    },
}

/// One object of one cluster. At most one write of it is in flight. The order of the fields keeps the copies of a Workload together
/// ([`super::Writes::may_have_clone`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The object.
    pub key: Key,
    /// The kind.
    pub subject: Subject,
    /// The cluster.
    pub to: Destination,
}

/// The number of a submitted write, unique in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TicketId(u64);

/// Routes the answer of an order back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(crate) id: TicketId,
    /// What was written. Its kind and cluster name the machine that gets the answer.
    pub target: Target,
    /// Why it was written.
    pub purpose: Purpose,
    /// What is evaluated again when the answer is here.
    pub waiter: Reevaluation,
}

/// A write to be sent.
#[derive(Debug)]
pub struct Order {
    /// Comes back with the answer.
    pub ticket: Ticket,
    /// The write.
    pub write: Write,
}

impl TicketId {
    pub(crate) fn new(number: u64) -> Self {
        Self(number)
    }
}

impl Subject {
    /// Whether workers have copies of objects of this kind.
    pub(super) fn is_copied(&self) -> bool {
        matches!(self, Self::Workload | Self::Job(_))
    }
}

impl Destination {
    /// The name of the worker; `None` for the cluster that the process belongs to.
    pub(crate) fn worker(&self) -> Option<&str> {
        match self {
            Self::Worker(name) => Some(name),
            Self::Home => None,
        }
    }
}

impl Target {
    /// An object of the cluster that the process belongs to.
    pub(crate) fn home(subject: Subject, key: &Key) -> Self {
        Self { to: Destination::Home, subject, key: key.clone() }
    }

    /// A job of the cluster that the process belongs to.
    pub(crate) fn job(job: &JobKey) -> Self {
        Self::home(Subject::Job(job.kind.clone()), &job.key)
    }

    /// An object of a worker cluster.
    pub(crate) fn worker(cluster: &str, subject: Subject, key: &Key) -> Self {
        Self { to: Destination::Worker(cluster.into()), subject, key: key.clone() }
    }

    /// Whether the target is a copy of a Workload or of its job on a worker.
    pub(super) fn is_copy(&self) -> bool {
        self.to.worker().is_some() && self.subject.is_copied()
    }

    /// Whether the target is a copy on this worker.
    pub(super) fn is_copy_on(&self, cluster: &str) -> bool {
        self.to.worker() == Some(cluster) && self.is_copy()
    }
}
