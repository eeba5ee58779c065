//! What the compositions observe: changes of watches, connections to workers. Answers to writes come separately, with their
//! ticket.

use crds::{
    names::reasons::ACTIVE,
    v1alpha1::{ClusterCapacity, DispatchPolicy},
    v1beta2::{
        AdmissionCheck, ClusterQueue, Cohort, LocalQueue, MultiKueueCluster, MultiKueueConfig,
        ProvisioningRequestConfig, ResourceFlavor, Topology, Workload, WorkloadPriorityClass,
    },
};
use jobs::{JobObject, Kind, lookups::LookupKind};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, LimitRange, Namespace},
    node::v1::RuntimeClass,
    scheduling::v1::PriorityClass,
};
use kube::core::DynamicObject;
use provisioning::{EntryTemplate, ProvisioningRequest};
use runtime::{credential_expiry::CredentialExpiry, watch::Change};

use super::{
    autoscaler_input::AutoscalerInput,
    capacity::{PodInfo, RefusedPodsEvent},
    elastic_pods::WatchedElasticPod,
    failure_recovery::{NodeReachability, WatchedTerminatingPod},
    node_info::NodeInfo,
    observed::Observed,
    topology::{WatchedNode, WatchedPod},
};

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
    /// Topologies.
    Topology(Change<Topology>),
    /// Nodes, while there is a Topology.
    Node(Change<Observed<WatchedNode>>),
    /// All pods, while there is a Topology.
    Pod(Change<Observed<WatchedPod>>),
    /// Pods of elastic jobs. None is listed before one of their Workloads exists.
    ElasticPod(Change<Observed<WatchedElasticPod>>),
    /// Pods that are being deleted and may be deleted by force, under the gate FailureRecoveryPolicy.
    TerminatingPod(Change<Observed<WatchedTerminatingPod>>),
    /// Nodes, under the gate FailureRecoveryPolicy.
    NodeReachability(Change<Observed<NodeReachability>>),
    /// AdmissionChecks.
    AdmissionCheck(Change<AdmissionCheck>),
    /// ProvisioningRequestConfigs.
    ProvisioningRequestConfig(Change<ProvisioningRequestConfig>),
    /// ProvisioningRequests. None is listed before a check exists that makes them.
    ProvisioningRequest(Change<ProvisioningRequest>),
    /// Managed PodTemplates. None is listed before such a check exists.
    PodTemplate(Change<EntryTemplate>),
    /// ClusterQueues.
    ClusterQueue(Change<ClusterQueue>),
    /// LocalQueues.
    LocalQueue(Change<LocalQueue>),
    /// Workloads.
    Workload(Change<Workload>),
    /// Jobs of a kind.
    Job(Kind, Change<JobObject>),
    /// Objects that pod sets of jobs need, of a kind.
    LookedUp(LookupKind, Change<DynamicObject>),
    /// Pods of the sets of a kind.
    Members(Kind, Change<JobObject>),
    /// MultiKueueConfigs.
    MultiKueueConfig(Change<MultiKueueConfig>),
    /// MultiKueueClusters.
    MultiKueueCluster(Change<MultiKueueCluster>),
    /// DispatchPolicies.
    DispatchPolicy(Change<DispatchPolicy>),
    /// The ConfigMap of the incarnation.
    Incarnation(Change<ConfigMap>),
    /// Something about a worker cluster, by the name of its MultiKueueCluster.
    Worker(Box<str>, WorkerInput),
}

/// What a manager observes of a worker cluster.
#[derive(Debug)]
pub enum WorkerInput {
    /// The state of the connection.
    Connection(ConnectionStatus),
    /// Clones of Workloads.
    Workload(Change<Workload>),
    /// Their jobs, of one kind.
    Job(Kind, Change<JobObject>),
    /// Capacity reports.
    Capacity(Change<ClusterCapacity>),
    /// Leases between its agent and this manager.
    Lease(Change<Lease>),
    /// Its ClusterQueues, if quotas of this manager follow them.
    ClusterQueue(Change<ClusterQueue>),
    /// Its LocalQueues, if quotas of this manager follow them.
    LocalQueue(Change<LocalQueue>),
    /// A connection leads to the cluster with this uid, and waits for the answer before it uses the cluster.
    Identity {
        /// The number of the request.
        request: u64,
        /// The uid of the cluster.
        uid: Box<str>,
    },
    /// A kubeconfig was loaded, with the expiry of its credential; `None` if the credential does not say so.
    Credential(Option<CredentialExpiry>),
    /// The process neither is connected to the worker any more nor tries to be.
    GivenUp,
}

/// The status of the connection to a worker, as its condition `Active` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionStatus {
    /// Whether the worker answers.
    pub active: bool,
    /// Reason of the condition.
    pub reason: &'static str,
    /// Message of the condition.
    pub message: String,
}

impl ConnectionStatus {
    /// The status of a working connection.
    #[must_use]
    pub fn connected() -> Self {
        Self { active: true, reason: ACTIVE, message: "Connected".to_owned() }
    }

    /// The status of a lost connection.
    #[must_use]
    pub fn lost(reason: &'static str, message: String) -> Self {
        Self { active: false, reason, message }
    }

    /// Whether it differs from another one by its message at most.
    pub(crate) fn has_state_of(&self, other: &Self) -> bool {
        (self.active, self.reason) == (other.active, other.reason)
    }
}

/// What an agent observes.
#[derive(Debug)]
pub enum AgentInput {
    /// LimitRanges.
    LimitRange(Change<LimitRange>),
    /// RuntimeClasses.
    RuntimeClass(Change<RuntimeClass>),
    /// Clones.
    Workload(Change<Workload>),
    /// Their jobs, of one kind.
    Job(Kind, Change<JobObject>),
    /// Pods of the sets of a kind.
    Members(Kind, Change<JobObject>),
    /// Objects that pod sets of jobs need, of a kind.
    LookedUp(LookupKind, Change<DynamicObject>),
    /// Nodes.
    Node(Change<Observed<NodeInfo>>),
    /// Pods.
    Pod(Change<Observed<PodInfo>>),
    /// Pods of elastic jobs. None is listed before one of their clones exists.
    ElasticPod(Change<Observed<WatchedElasticPod>>),
    /// Events about pods that could not be created.
    RefusedPods(Change<Observed<RefusedPodsEvent>>),
    /// The capacity report.
    Capacity(Change<ClusterCapacity>),
    /// Leases between this agent and managers.
    Lease(Change<Lease>),
    /// Something about the queues of its cluster, if it admits by quota.
    Queue(QueueInput),
    /// ProvisioningRequests, if it asks for nodes with them.
    ProvisioningRequest(Change<ProvisioningRequest>),
    /// Managed PodTemplates, if it does.
    PodTemplate(Change<EntryTemplate>),
    /// Objects of autoscalers. Nothing waits for them: most clusters have none.
    Autoscaler(AutoscalerInput),
}

/// What an agent observes that admits by quota, beside what every agent observes.
#[derive(Debug)]
pub enum QueueInput {
    /// Namespaces.
    Namespace(Change<Namespace>),
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
}
