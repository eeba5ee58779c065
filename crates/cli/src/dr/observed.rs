//! What the manager cluster and the workers have, as the plan reads it.

use std::collections::{BTreeMap, BTreeSet};

use crds::v1beta2::{
    AdmissionCheck, ClusterQueue, LocalQueue, MultiKueueCluster, MultiKueueConfig, ResourceFlavor,
    Workload,
};
use jobs::{GenericJob, JobObject, Kinds};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Namespace and name.
pub type CopiedObjectName = (String, String);

/// The manager as copies name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubStamp {
    /// Its incarnation.
    pub incarnation: u64,
    /// The term of its leader.
    pub term: u64,
    /// The resourceVersion of the record of both.
    pub version: String,
}

/// The manager cluster.
#[derive(Clone, Debug, Default)]
pub struct ObservedHub {
    /// The incarnation; `None` if no manager has led here yet.
    pub stamp: Option<HubStamp>,
    /// The uid of its namespace kube-system.
    pub uid: String,
    /// The kinds that its manager is configured for.
    pub kinds: Kinds,
    /// Names of its namespaces.
    pub namespaces: BTreeSet<String>,
    /// All LocalQueues.
    pub local_queues: Vec<LocalQueue>,
    /// All ClusterQueues.
    pub cluster_queues: Vec<ClusterQueue>,
    /// All flavors.
    pub flavors: Vec<ResourceFlavor>,
    /// All admission checks.
    pub checks: Vec<AdmissionCheck>,
    /// All MultiKueueConfigs.
    pub configs: Vec<MultiKueueConfig>,
    /// All registered workers.
    pub clusters: Vec<MultiKueueCluster>,
    /// Workloads.
    pub workloads: BTreeMap<CopiedObjectName, Workload>,
    /// Jobs of all kinds, by kind and name.
    pub jobs: BTreeMap<JobName, JobObject>,
}

/// The name of a job in the configuration of its kind, its namespace and its name.
pub type JobName = (String, String, String);

/// A worker.
#[derive(Clone, Debug, Default)]
pub struct ObservedWorker {
    /// The name of its MultiKueueCluster.
    pub cluster: String,
    /// The manager cluster that the entry of the origin in its ClusterCapacity names; empty without one.
    pub manager: String,
    /// Clones with the origin.
    pub clones: Vec<Workload>,
    /// Copies of jobs with the origin.
    pub jobs: Vec<JobObject>,
}

/// The key of an object.
#[must_use]
pub fn object_name(metadata: &ObjectMeta) -> CopiedObjectName {
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

/// The key of a job.
#[must_use]
pub fn job_name(job: &JobObject) -> JobName {
    let (namespace, name) = object_name(job.metadata());
    (job.kind().framework().to_owned(), namespace, name)
}

/// The key of an object without a namespace.
#[must_use]
pub fn by_name<'a, T>(all: &'a [T], name: &str, of: impl Fn(&T) -> &ObjectMeta) -> Option<&'a T> {
    all.iter().find(|one| of(one).name.as_deref() == Some(name))
}
