//! The derived numbers of all tables as text: usage, quotas and topology usage.
//!
//! Engines that saw equivalent events have equal dumps, and a what-if leaves none of its changes. Tests compare
//! dumps. Lines are sorted by name; zeros are left out. Sums of quotas are those of the last cycle.

use std::collections::BTreeSet;

use crate::engine::Engine;
use crate::ids::{FlavorId, NodeId, ResourceId, Slot};
use crate::names::Names;
use crate::quota::layer::QuotaLayer;
use crate::topology::layer::TopologyLayer;

impl Engine {
    /// All lines of the dump.
    pub fn debug_dump(&self) -> String {
        let state = &self.state;
        let mut lines = BTreeSet::new();
        for node in state.quota.tree().ids() {
            quota_lines(&state.names, &state.quota, node, &mut lines);
        }
        for flavor in 0..state.names.flavors.len() {
            topology_lines(&state.names, &state.topology, FlavorId::from(flavor), &mut lines);
        }
        if !state.quota.tree().is_settled() {
            lines.insert("an open what-if".to_owned());
        }
        lines.into_iter().map(|line| line + "\n").collect()
    }
}

fn quota_lines(names: &Names, quota: &QuotaLayer, node: NodeId, lines: &mut BTreeSet<String>) {
    let kind = if quota.tree().node(node).queue.is_some() { "queue" } else { "cohort" };
    for (slot, cell) in quota.tree().row(node).iter().enumerate() {
        let (flavor, resource) = quota.tree().flavor_and_resource(Slot::from(slot));
        let numbers = [cell.usage, cell.subtree, cell.local].map(|amount| amount.0);
        // A slot that was ever named has a cell in every node; zeros would differ between engines.
        if numbers != [0; 3] {
            let [usage, subtree, local] = numbers;
            lines.insert(format!(
                "{kind} {} {}/{}: {usage} of {subtree}, {local} of it local",
                quota.node_name(names, node),
                names.resources.name(resource),
                names.flavors.name(flavor),
            ));
        }
    }
}

fn topology_lines(
    names: &Names,
    topology: &TopologyLayer,
    flavor: FlavorId,
    lines: &mut BTreeSet<String>,
) {
    let Some(tree) = topology.tree(flavor) else {
        return;
    };
    for leaf in tree.leaves() {
        for resource in 0..names.resources.len() {
            let resource = ResourceId::from(resource);
            let used = topology.topologies().used(tree, leaf, resource).0;
            // A resource that was ever interned has a column; zeros would differ between engines.
            if used != 0 {
                lines.insert(format!(
                    "place {} {}: {used} {}",
                    names.flavors.name(flavor),
                    tree.path(leaf).join("/"),
                    names.resources.name(resource),
                ));
            }
        }
    }
}
