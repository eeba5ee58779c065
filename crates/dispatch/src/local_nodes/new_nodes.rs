//! New nodes of an agent's cluster: what its autoscaler can still add, and what waits for that (docs/reference/dispatch.md §4).
//!
//! A Workload that fits on no present nodes is admitted if it fits with new ones. It is assigned no nodes. Its pods that fit
//! nowhere are counted on new nodes until they are bound; then other Workloads do not count on the same ones.

use std::sync::Arc;

use engine::topology::HOSTNAME_LABEL;

use super::{CountedWorkload, LocalNodes};
use crate::node_packing::{NewNodes, PackedNodes};
use crate::worker_cluster::PlacementSerial;
use crate::{AssignedPodSet, AssignedWorkload, CapacityReport, NodeClassCapacity};

impl LocalNodes {
    /// Records the nodes that can still be added.
    pub(crate) fn set_new_nodes(&mut self, new_nodes: Vec<NodeClassCapacity>) {
        if self.new_nodes == new_nodes {
            return;
        }
        self.new_nodes = new_nodes;
        let before = std::mem::take(&mut self.known_keys);
        self.update_known_keys();
        if self.known_keys != before {
            // A label that new nodes have is one that present nodes may lack.
            self.recount(self.unassigned.iter().copied().collect());
        }
    }

    /// The new nodes that a Workload needs; `None` if it does not fit with them, or does not need them.
    pub(crate) fn with_new_nodes(&self, work: &AssignedWorkload) -> Option<NewNodes> {
        if self.new_nodes.is_empty() {
            return None;
        }
        let nodes = self.packed();
        // Room that is free, but cannot be assigned now, is waited for.
        let present = nodes.check_fit(work).err()?;
        nodes.check_fit_with_new_nodes(work, present).ok()
    }

    /// How many nodes the pods of a placed Workload wait for; `None` if they wait for none, or too few can still come.
    pub(crate) fn awaited_new_nodes(&self, serial: PlacementSerial) -> Option<i64> {
        let placed = self.placed.get(&serial).filter(|one| !one.short.is_empty())?;
        let report = CapacityReport {
            label_keys: self.keys_of_classes(),
            elastic: self.new_nodes.clone(),
            ..CapacityReport::default()
        };
        PackedNodes::new(Arc::new(report)).n_needed_new_nodes(&placed.left_over())
    }

    /// The new nodes that no placed Workload waits for.
    pub(crate) fn unused_new_nodes(&self) -> Vec<NodeClassCapacity> {
        if self.new_nodes.is_empty() {
            return Vec::new();
        }
        self.packed().unused_new_nodes()
    }

    /// Present nodes with what is counted there, and new nodes with what waits for them.
    fn packed(&self) -> PackedNodes {
        let label_keys = self.keys_of_classes();
        let report = CapacityReport {
            classes: self.classes(&label_keys),
            label_keys,
            elastic: self.new_nodes.clone(),
            ..CapacityReport::default()
        };
        let mut nodes = PackedNodes::new(Arc::new(report));
        for placed in self.placed.values().filter(|one| !one.short.is_empty()) {
            nodes.place_on_new_nodes(&placed.left_over());
        }
        nodes
    }

    /// By hostnames each node would be a class of its own.
    fn keys_of_classes(&self) -> Vec<Box<str>> {
        self.known_keys.iter().filter(|key| ***key != *HOSTNAME_LABEL).cloned().collect()
    }
}

impl CountedWorkload {
    /// Its pods that fit on no present node.
    fn left_over(&self) -> AssignedWorkload {
        let left = |at: usize| self.short.iter().find(|(set, _)| *set == at).map_or(0, |one| one.1);
        let sets = self.work.pod_sets().enumerate().map(|(at, (_, _, given))| {
            let given = given.cloned().unwrap_or_default();
            AssignedPodSet { count: left(at), ..given }
        });
        AssignedWorkload::new(Arc::clone(&self.work.request), sets.collect())
    }
}
