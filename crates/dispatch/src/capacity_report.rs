//! What a cluster can take now (docs/reference/dispatch.md §2), in the engine's terms.

use engine::{Amount, ids::ResourceId, node_selection::Taint};

use crate::JobGvk;

/// How a worker admits clones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkerMode {
    /// By the room on its nodes only.
    #[default]
    Thin,
    /// By ClusterQueues of its own.
    Quota,
}

/// Nodes with the same labels, taints and free resources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeClassCapacity {
    /// Number of nodes.
    pub count: i64,
    /// The labels that were asked for, sorted by key.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// What is free on each node, sorted by resource.
    pub free: Vec<(ResourceId, Amount)>,
    /// What is free on each node when nothing dispatched runs there, sorted by resource; empty if that is not known.
    pub size: Vec<(ResourceId, Amount)>,
}

/// What a cluster says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapacityReport {
    /// How it admits.
    pub mode: WorkerMode,
    /// resourceVersion of the newest Workload that is taken into account.
    pub as_of: u64,
    /// Node label keys that the classes tell apart, sorted. Other keys are not known.
    pub label_keys: Vec<Box<str>>,
    /// Kinds of jobs that can run.
    pub kinds: Vec<JobGvk>,
    /// The nodes.
    pub classes: Vec<NodeClassCapacity>,
}
