//! Which slots the quotas of a node declare, directly or below it.
//!
//! A declared quota of zero counts: only declared slots can be borrowed, lent and counted in a share. Usage of a
//! flavor that a ClusterQueue does not declare any more is charged, but is no part of a share. Source:
//! docs/reference/kueue.md §4.3, §4.7. Cost: read only if usage exceeds the subtree quota.

use crate::ids::{NodeId, Slot};

/// Declared slots of all nodes, in rows like the cells of the tree.
#[derive(Debug, Default, Clone)]
pub(super) struct DeclaredQuotas {
    marks: Vec<Mark>,
    stride: usize,
}

#[derive(Debug, Default, Clone, Copy)]
struct Mark {
    /// Declared by the node itself.
    at_node: bool,
    /// Declared by the node or below it.
    in_subtree: bool,
}

impl DeclaredQuotas {
    /// Makes the table large enough for this many nodes and slots.
    pub(super) fn resize(&mut self, nodes: usize, stride: usize) {
        if stride != self.stride && self.stride > 0 {
            let mut wider = vec![Mark::default(); nodes * stride];
            for (new, old) in wider.chunks_mut(stride).zip(self.marks.chunks(self.stride)) {
                new.iter_mut().zip(old).for_each(|(new, old)| *new = *old);
            }
            self.marks = wider;
        }
        self.stride = stride;
        self.marks.resize(nodes * stride, Mark::default());
    }

    /// Replaces the slots that a node itself declares.
    pub(super) fn set(&mut self, node: NodeId, slots: impl Iterator<Item = Slot>) {
        let row = self.row(node);
        row.iter_mut().for_each(|mark| mark.at_node = false);
        slots.for_each(|slot| row[slot.index()].at_node = true);
    }

    /// Resets a node to what it declares itself.
    pub(super) fn reset_to_own(&mut self, node: NodeId) {
        self.row(node).iter_mut().for_each(|mark| mark.in_subtree = mark.at_node);
    }

    /// Adds what `child` declares to `node`.
    pub(super) fn add_child(&mut self, node: NodeId, child: NodeId) {
        let (node, child) = (node.index() * self.stride, child.index() * self.stride);
        for slot in 0..self.stride {
            self.marks[node + slot].in_subtree |= self.marks[child + slot].in_subtree;
        }
    }

    /// Whether the quotas of a node, or below it, declare the slot.
    pub(super) fn contains(&self, node: NodeId, slot: Slot) -> bool {
        self.marks[node.index() * self.stride + slot.index()].in_subtree
    }

    fn row(&mut self, node: NodeId) -> &mut [Mark] {
        let start = node.index() * self.stride;
        &mut self.marks[start..start + self.stride]
    }
}
