//! The nodes of leaves that aggregate nodes, and the free capacity of each.

use std::collections::HashMap;

use crate::amount::Amount;
use crate::ids::{ResourceId, TopologyNodeId};
use crate::topology::resource_table::ResourceTable;

/// Nodes by leaf; empty where leaves are nodes, or pods are not counted by node.
#[derive(Debug, Clone, Default)]
pub(super) struct AggregatedNodes {
    /// Leaf by leaf.
    nodes: Vec<TopologyNodeId>,
    /// The end of each leaf in `nodes`.
    ends: Vec<usize>,
    rows: HashMap<TopologyNodeId, usize>,
    /// Free capacity without TAS usage, by row of node.
    capacity: ResourceTable,
}

/// One of these nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct AggregatedNode<'a> {
    pub(super) id: TopologyNodeId,
    /// Its row in [`CountRequest::taken`](super::leaf_counts::CountRequest::taken): those of the leaves precede.
    pub(super) row: usize,
    /// Free capacity without TAS usage.
    pub(super) capacity: &'a [Amount],
}

impl AggregatedNodes {
    /// The nodes of all leaves, in the order of the leaves, without capacity.
    pub(super) fn new<'a>(
        leaves: impl Iterator<Item = &'a [TopologyNodeId]>,
        width: usize,
    ) -> Self {
        let mut all = Self::default();
        for members in leaves {
            all.nodes.extend_from_slice(members);
            all.ends.push(all.nodes.len());
        }
        all.rows = all.nodes.iter().enumerate().map(|(row, &node)| (node, row)).collect();
        all.capacity.reset(all.nodes.len(), width);
        all
    }

    /// Adds amounts to the capacity of a node; subtracts them if `sign` is negative.
    pub(super) fn add(
        &mut self,
        node: TopologyNodeId,
        amounts: &[(ResourceId, Amount)],
        sign: i64,
    ) {
        if let Some(&row) = self.rows.get(&node) {
            for &(resource, amount) in amounts {
                self.capacity.add(row, resource, amount.times(sign));
            }
        }
    }

    /// Nodes of a leaf, by its row.
    pub(super) fn of(&self, row: usize) -> impl Iterator<Item = AggregatedNode<'_>> {
        let end = self.ends.get(row).copied().unwrap_or_default();
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let at = |row: usize| {
            let id = *self.nodes.get(row)?;
            let capacity = self.capacity.row(row);
            Some(AggregatedNode { id, row: self.ends.len() + row, capacity })
        };
        (start.unwrap_or_default()..end).filter_map(at)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }
}
