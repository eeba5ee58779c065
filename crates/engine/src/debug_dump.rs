//! The derived numbers of all tables as text: usage, quotas and topology usage.
//!
//! Engines that saw equivalent events have equal dumps, and a what-if leaves none of its changes. Tests compare
//! dumps. Lines are sorted by name; zeros are left out. Sums of quotas are those of the last cycle.

use std::collections::BTreeSet;

use crate::engine::Engine;
use crate::ids::{FlavorId, NodeId, ResourceId, Slot};
use crate::state::State;

impl Engine {
    /// All lines of the dump.
    pub fn debug_dump(&self) -> String {
        let state = &self.state;
        let mut lines = BTreeSet::new();
        for node in state.tree.ids() {
            quota_lines(state, node, &mut lines);
        }
        for flavor in 0..state.names.flavors.len() {
            place_lines(state, FlavorId::from(flavor), &mut lines);
        }
        if !state.tree.journal.is_empty() {
            lines.insert("an open what-if".to_owned());
        }
        lines.into_iter().map(|line| line + "\n").collect()
    }
}

fn quota_lines(state: &State, node: NodeId, lines: &mut BTreeSet<String>) {
    let kind = if state.tree.node(node).queue.is_some() { "queue" } else { "cohort" };
    for (slot, cell) in state.tree.row(node).iter().enumerate() {
        let (flavor, resource) = state.tree.pair(Slot::from(slot));
        let numbers = [cell.usage, cell.subtree, cell.local].map(|amount| amount.0);
        if numbers != [0; 3] {
            let [usage, subtree, local] = numbers;
            lines.insert(format!(
                "{kind} {} {}/{}: {usage} of {subtree}, {local} of it local",
                state.node_name(node),
                state.names.resources.name(resource),
                state.names.flavors.name(flavor),
            ));
        }
    }
}

fn place_lines(state: &State, flavor: FlavorId, lines: &mut BTreeSet<String>) {
    let Some(tree) = state.topologies.tree(flavor) else {
        return;
    };
    for leaf in tree.leaves() {
        for resource in 0..state.names.resources.len() {
            let resource = ResourceId::from(resource);
            let used = state.topologies.used(tree, leaf, resource).0;
            if used != 0 {
                lines.insert(format!(
                    "place {} {}: {used} {}",
                    state.names.flavors.name(flavor),
                    tree.path(leaf).join("/"),
                    state.names.resources.name(resource),
                ));
            }
        }
    }
}
