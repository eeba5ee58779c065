//! Capacity report of a worker cluster (docs/reference/dispatch.md §2), in the engine's terms.

use engine::{Amount, ids::ResourceId, node_selection::NodeTaint};

use crate::JobGvk;

/// Version of the dispatch protocol that this program speaks. Fields and annotations that other versions may ignore are added without a
/// change of the number. A version serves the one before it: what that one would be wrong about is not written for it, and what it
/// writes is read.
pub const PROTOCOL: i32 = 1;

/// The version of an agent, if a manager of version `own` does not serve it. Neighbours serve each other, so that manager and agents are
/// replaced one after the other while new work goes on.
#[must_use]
pub fn unserved_protocol(own: i32, agent: i32) -> Option<i32> {
    let is_neighbour = agent > 0 && own.abs_diff(agent) <= 1;
    (!is_neighbour).then_some(agent)
}

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
    /// Version of the dispatch protocol of its agent, if [`PROTOCOL`] does not serve it.
    pub unserved_protocol: Option<i32>,
    /// Admission mode of the worker.
    pub mode: WorkerMode,
    /// The admission mode, if it is one of a later version.
    pub unknown_mode: Option<Box<str>>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_serves_the_version_before_its_own_and_the_one_after() {
        for (own, served) in [(1, 1..=2), (2, 1..=3), (5, 4..=6)] {
            for agent in 0..9 {
                let unserved = unserved_protocol(own, agent);
                assert_eq!(unserved, (!served.contains(&agent)).then_some(agent), "{own} {agent}");
                // Seen from the agent, the manager is its neighbour as well.
                let seen_back = agent > 0 && unserved_protocol(agent, own).is_none();
                assert_eq!(unserved.is_none(), seen_back, "{own} {agent}");
            }
        }
        assert_eq!(unserved_protocol(1, i32::MAX), Some(i32::MAX));
    }
}
