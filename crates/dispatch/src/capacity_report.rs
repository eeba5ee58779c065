//! Capacity report of a worker cluster (docs/reference/dispatch.md §2), in the engine's terms.

use engine::{Amount, ids::ResourceId, node_selection::NodeTaint};

use crate::JobGvk;

/// Version of the dispatch protocol that this program speaks. It changes when a program of the version before would be wrong about a
/// report or a copy; fields and annotations that such a program may ignore are added without a change.
pub const PROTOCOL: i32 = 1;

/// How a worker admits clones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkerMode {
    /// By the free capacity of its nodes only (agent mode).
    #[default]
    Thin,
    /// By its own ClusterQueues.
    Quota,
}

/// Nodes with equal labels, taints and free resources.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeClassCapacity {
    /// Number of nodes.
    pub count: i64,
    /// Labels with the requested keys, sorted by key.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Taints.
    pub taints: Vec<NodeTaint>,
    /// Free amounts per node, sorted by resource.
    pub free: Vec<(ResourceId, Amount)>,
    /// Free amounts per node without dispatched pods, sorted by resource; empty if unknown.
    pub size: Vec<(ResourceId, Amount)>,
}

/// The capacity report of one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapacityReport {
    /// Version of the dispatch protocol of its agent, if it is another one than [`PROTOCOL`].
    pub other_protocol: Option<i32>,
    /// Admission mode of the worker.
    pub mode: WorkerMode,
    /// resourceVersion of the newest Workload that the report includes.
    pub as_of: u64,
    /// Node label keys that the classes distinguish, sorted. Other keys are unknown.
    pub label_keys: Vec<Box<str>>,
    /// Kinds of jobs that the cluster runs.
    pub kinds: Vec<JobGvk>,
    /// The node classes.
    pub classes: Vec<NodeClassCapacity>,
    /// Nodes that an autoscaler can still add, by shape. All that they have is free.
    pub elastic: Vec<NodeClassCapacity>,
    /// What each ClusterQueue can still use without preemption over all of its flavors, sorted by resource; in mode Quota.
    pub queues: Vec<Vec<(ResourceId, Amount)>>,
}
