//! A fleet of one cluster with nodes that are known by name: that of an agent.

use std::sync::Arc;

use engine::ids::{ClusterId, WorkloadId};

use crate::{AssignedPodSet, AssignedWorkload, Fleet, LocalNode, NodeClassCapacity, NodeUsage};

impl Fleet {
    /// Makes a cluster one with known nodes. Its report says what it runs, and has no nodes.
    pub fn set_local(&mut self, id: ClusterId) {
        self.mark_changed(id).local = Some(Default::default());
    }

    /// Records a node of the agent's cluster; `None` if it is gone or takes no pods.
    pub fn set_local_node(&mut self, id: ClusterId, name: &str, node: Option<LocalNode>) {
        if let Some(local) = &mut self.mark_changed(id).local {
            local.set_node(name, node);
        }
    }

    /// Records what the bound pods of a Workload take on the agent's cluster, by node; what they take is not free, and would be if the
    /// Workload was preempted.
    pub fn set_bound(&mut self, id: ClusterId, workload: WorkloadId, pods: Vec<NodeUsage>) {
        let local = self.clusters[id.index()].local.as_mut();
        // Pending Workloads are evaluated again for a cluster that changed, so an equal record marks nothing.
        if local.is_some_and(|local| local.set_bound(workload, pods)) {
            let cluster = self.mark_changed(id);
            // Another Workload may have room now once this one is gone.
            cluster.placed_at = cluster.changed;
        }
    }

    /// Records the nodes that the autoscaler of the agent's cluster can still add, those that are on their way included.
    pub fn set_local_new_nodes(&mut self, id: ClusterId, new_nodes: Vec<NodeClassCapacity>) {
        if let Some(local) = &mut self.mark_changed(id).local {
            local.set_new_nodes(new_nodes);
        }
    }

    /// The new nodes of the agent's cluster that no placed Workload waits for, in the same order.
    pub fn local_unused_new_nodes(&self, id: ClusterId) -> Vec<NodeClassCapacity> {
        let local = self.clusters[id.index()].local.as_ref();
        local.map(|local| local.unused_new_nodes()).unwrap_or_default()
    }

    /// How many of the nodes that can still come a Workload needs that is placed in the agent's cluster; `None` if its pods fit on
    /// present nodes, or not even on those.
    pub fn awaited_new_nodes(&self, workload: WorkloadId) -> Option<i64> {
        let (cluster, serial) = self.placement(workload)?;
        self.clusters[cluster.index()].local.as_ref()?.awaited_new_nodes(serial)
    }

    /// Nodes of the agent's cluster with what is free beside bound and placed pods, in classes by labels with these keys.
    pub fn local_classes(&self, id: ClusterId, keys: &[Box<str>]) -> Vec<NodeClassCapacity> {
        let local = self.clusters[id.index()].local.as_ref();
        local.map(|local| local.classes(keys)).unwrap_or_default()
    }

    /// Every label key of any node of the agent's cluster, present or new.
    pub fn local_label_keys(&self, id: ClusterId) -> &[Box<str>] {
        self.clusters[id.index()].local.as_ref().map_or(&[], |local| local.known_keys())
    }

    /// The work with the nodes that it is assigned in a cluster with known nodes.
    pub(crate) fn assign_nodes(
        &self,
        id: ClusterId,
        work: Arc<AssignedWorkload>,
    ) -> Arc<AssignedWorkload> {
        let local = self.clusters[id.index()].local.as_ref();
        let Some(hosts) = local.and_then(|local| local.assign(&work).ok()) else {
            return work;
        };
        let sets = work.pod_sets().zip(hosts).map(|((pods, _, given), nodes)| {
            let as_requested = || AssignedPodSet { count: pods.count, ..AssignedPodSet::default() };
            AssignedPodSet { nodes, ..given.cloned().unwrap_or_else(as_requested) }
        });
        Arc::new(AssignedWorkload { assigned: sets.collect(), ..AssignedWorkload::clone(&work) })
    }
}
