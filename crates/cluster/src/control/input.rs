//! Everything that [`Control`](super::Control) can hear of.

use crds::{
    v1alpha1::{ClusterCapacity, DispatchPolicy},
    v1beta2::{
        AdmissionCheck, ClusterQueue, Cohort, LocalQueue, MultiKueueCluster, MultiKueueConfig,
        ResourceFlavor, Workload, WorkloadPriorityClass,
    },
};
use jobs::Job;
use k8s_openapi::api::{
    core::v1::{LimitRange, Namespace, Node, Pod},
    node::v1::RuntimeClass,
    scheduling::v1::PriorityClass,
};
use runtime::{watch::Change, writer::WriteOutcome};

use super::order::Ticket;

/// One thing that happened.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "they are moved a few times and never kept")]
pub enum Input {
    /// Namespaces, for their labels.
    Namespace(Change<Namespace>),
    /// Defaults and bounds of resources.
    LimitRange(Change<LimitRange>),
    /// What a runtime costs.
    RuntimeClass(Change<RuntimeClass>),
    /// Priorities of pods.
    PriorityClass(Change<PriorityClass>),
    /// Priorities of Workloads.
    WorkloadPriorityClass(Change<WorkloadPriorityClass>),
    /// Flavors.
    ResourceFlavor(Change<ResourceFlavor>),
    /// Cohorts.
    Cohort(Change<Cohort>),
    /// Checks.
    AdmissionCheck(Change<AdmissionCheck>),
    /// ClusterQueues.
    ClusterQueue(Change<ClusterQueue>),
    /// LocalQueues.
    LocalQueue(Change<LocalQueue>),
    /// Workloads.
    Workload(Change<Workload>),
    /// Jobs.
    Job(Change<Job>),
    /// Sets of workers.
    MultiKueueConfig(Change<MultiKueueConfig>),
    /// Workers as they are registered.
    MultiKueueCluster(Change<MultiKueueCluster>),
    /// How to choose among workers.
    DispatchPolicy(Change<DispatchPolicy>),
    /// Nodes of a thin worker.
    Node(Change<Node>),
    /// Pods of a thin worker.
    Pod(Change<Pod>),
    /// The report of a thin worker, as it stands.
    Capacity(Change<ClusterCapacity>),
    /// Something about a worker.
    Remote(Box<str>, RemoteInput),
    /// What came of an order.
    WriteOutcome(Ticket, WriteOutcome),
}

/// One thing that happened on a worker.
#[derive(Debug)]
pub enum RemoteInput {
    /// Why it cannot be used, or that it can; in the words of its condition.
    Link(Link),
    /// Clones.
    Workload(Change<Workload>),
    /// Their Jobs.
    Job(Change<Job>),
    /// What it can take.
    Capacity(Change<ClusterCapacity>),
    /// Nobody is connected to it any more, nor tries to be.
    GivenUp,
}

/// How the connection to a worker is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Whether it answers.
    pub active: bool,
    /// Reason of the condition.
    pub reason: &'static str,
    /// Message of the condition.
    pub message: String,
}
