//! What a Workload asks of a cluster.

use engine::{
    Amount,
    ids::ResourceId,
    node_selection::{LabelRequirement, NodeSelection},
};

/// A kind of job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct JobGvk {
    /// Group; empty for the core group.
    pub group: Box<str>,
    /// Version.
    pub version: Box<str>,
    /// Kind.
    pub kind: Box<str>,
}

/// Equal pods of a Workload.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RequestedPodSet {
    /// Name of the pod set.
    pub name: Box<str>,
    /// Number of pods.
    pub count: i64,
    /// What one pod takes of a node, sorted by resource: before transformations and exclusions, which are about quota.
    pub requests: Vec<(ResourceId, Amount)>,
    /// Which nodes it may run on.
    pub selection: NodeSelection,
}

/// What a Workload asks of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct WorkloadRequest {
    /// The kind of its job.
    pub kind: JobGvk,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its pods.
    pub pod_sets: Vec<RequestedPodSet>,
    /// Requirements on the labels of clusters; all must hold.
    pub affinity: Vec<LabelRequirement>,
    /// How long it runs at most, in nanoseconds, if that is known.
    pub max_run_time: Option<i64>,
}
