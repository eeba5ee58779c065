//! What the compositions observe: changes of watches, connections to workers. Answers to writes come separately, with their
//! ticket.

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
use runtime::watch::Change;

/// What a manager observes.
#[derive(Debug)]
pub enum ManagerInput {
    /// Namespaces.
    Namespace(Change<Namespace>),
    /// LimitRanges.
    LimitRange(Change<LimitRange>),
    /// RuntimeClasses.
    RuntimeClass(Change<RuntimeClass>),
    /// PriorityClasses.
    PriorityClass(Change<PriorityClass>),
    /// WorkloadPriorityClasses.
    WorkloadPriorityClass(Change<WorkloadPriorityClass>),
    /// ResourceFlavors.
    ResourceFlavor(Change<ResourceFlavor>),
    /// Cohorts.
    Cohort(Change<Cohort>),
    /// AdmissionChecks.
    AdmissionCheck(Change<AdmissionCheck>),
    /// ClusterQueues.
    ClusterQueue(Change<ClusterQueue>),
    /// LocalQueues.
    LocalQueue(Change<LocalQueue>),
    /// Workloads.
    Workload(Change<Workload>),
    /// Jobs.
    Job(Change<Job>),
    /// MultiKueueConfigs.
    MultiKueueConfig(Change<MultiKueueConfig>),
    /// MultiKueueClusters.
    MultiKueueCluster(Change<MultiKueueCluster>),
    /// DispatchPolicies.
    DispatchPolicy(Change<DispatchPolicy>),
    /// Something about a worker cluster, by the name of its MultiKueueCluster.
    Worker(Box<str>, WorkerInput),
}

/// What a manager observes of a worker cluster.
#[derive(Debug)]
pub enum WorkerInput {
    /// The state of the connection.
    Connection(Connection),
    /// Clones of Workloads.
    Workload(Change<Workload>),
    /// Their jobs.
    Job(Change<Job>),
    /// Capacity reports.
    Capacity(Change<ClusterCapacity>),
    /// The process neither is connected to the worker any more nor tries to be.
    GivenUp,
}

/// The state of the connection to a worker, as its condition `Active` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Whether the worker answers.
    pub active: bool,
    /// Reason of the condition.
    pub reason: &'static str,
    /// Message of the condition.
    pub message: String,
}

/// What an agent observes.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "inputs are moved a few times and never kept")]
pub enum AgentInput {
    /// Clones.
    Workload(Change<Workload>),
    /// Their jobs.
    Job(Change<Job>),
    /// Nodes.
    Node(Change<Node>),
    /// Pods.
    Pod(Change<Pod>),
    /// The capacity report.
    Capacity(Change<ClusterCapacity>),
}
