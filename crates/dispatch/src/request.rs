//! Requests of a Workload to a cluster.

use engine::{
    Amount,
    ids::ResourceId,
    node_selection::{LabelRequirement, NodeSelection},
};

use crate::CheckpointCluster;

/// Group, version and kind of a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct JobGvk {
    /// Group; empty for the core group.
    pub group: Box<str>,
    /// Version.
    pub version: Box<str>,
    /// Kind.
    pub kind: Box<str>,
}

/// Pods of one template with their requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RequestedPodSet {
    /// Name of the pod set.
    pub name: Box<str>,
    /// Number of pods.
    pub count: i64,
    /// Requests of one pod on a node, sorted by resource. Resource transformations and exclusions concern quota and
    /// do not apply here.
    pub requests: Vec<(ResourceId, Amount)>,
    /// Node selection of the pods.
    pub selection: NodeSelection,
    /// Its nodes follow from more than room, labels and taints, or pods may come that were not counted. A worker leaves the choice
    /// of nodes to its scheduler.
    pub needs_more_than_room: bool,
}

/// Requests of a Workload: job kind, namespace, pod sets, cluster affinity.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct WorkloadRequest {
    /// Kind of its job.
    pub kind: JobGvk,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its pods.
    pub pod_sets: Vec<RequestedPodSet>,
    /// Requirements on the labels of clusters; all must hold.
    pub affinity: Vec<LabelRequirement>,
    /// Requirements on the labels of clusters that are taken before others with room; none is if empty.
    pub preferred: Vec<LabelRequirement>,
    /// The cluster that holds the checkpoint of its job, if the Workload stays there.
    pub checkpoint: Option<CheckpointCluster>,
    /// What it has in common with Workloads that run on the same cluster.
    pub together: Option<Box<str>>,
    /// Maximum run time in nanoseconds, if bounded.
    pub max_run_time: Option<i64>,
    /// Whether it runs under `execution: ExactlyOnce`; its policy decides if unset.
    pub exactly_once: Option<bool>,
}

impl WorkloadRequest {
    /// Whether two requests ask for the same pods of the same kind, under whatever guarantee and wherever they ran before.
    #[must_use]
    pub(crate) fn is_equivalent_to(&self, other: &Self) -> bool {
        // Every new field is compared unless it is excluded here.
        let Self {
            kind,
            namespace,
            pod_sets,
            affinity,
            preferred,
            checkpoint: _,
            together,
            max_run_time,
            exactly_once: _,
        } = self;
        (kind, namespace, pod_sets) == (&other.kind, &other.namespace, &other.pod_sets)
            && (affinity, preferred) == (&other.affinity, &other.preferred)
            && (together, max_run_time) == (&other.together, &other.max_run_time)
    }
}
