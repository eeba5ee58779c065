//! Which slots the quotas of a node name, and those of the nodes below it.
//!
//! A quota of nothing is a quota: only what somebody names can be borrowed, lent and counted as a share. What is still
//! used of a flavor that a queue does not have any more is charged, and no share of anything. Source: docs/reference/kueue.md
//! §4.3, §4.7: a node's quota lists what its own lines and its children's list. Cost: looked at only where more is used
//! than there is.

use crate::ids::{NodeId, Slot};

/// The slots of all nodes, in rows like the cells of the tree.
#[derive(Debug, Default, Clone)]
pub(super) struct DeclaredQuotas {
    marks: Vec<Mark>,
    stride: usize,
}

#[derive(Debug, Default, Clone, Copy)]
struct Mark {
    /// Named by the node itself.
    own: bool,
    /// Named by the node or below it.
    named: bool,
}

impl DeclaredQuotas {
    /// Makes room for so many nodes and slots.
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

    /// The quotas of a node name these slots now.
    pub(super) fn set(&mut self, node: NodeId, slots: impl Iterator<Item = Slot>) {
        let row = self.row(node);
        row.iter_mut().for_each(|mark| mark.own = false);
        slots.for_each(|slot| row[slot.index()].own = true);
    }

    /// Forgets what the children of a node name.
    pub(super) fn begin(&mut self, node: NodeId) {
        self.row(node).iter_mut().for_each(|mark| mark.named = mark.own);
    }

    /// What `child` names, `node` names as well.
    pub(super) fn adopt(&mut self, node: NodeId, child: NodeId) {
        let (node, child) = (node.index() * self.stride, child.index() * self.stride);
        for slot in 0..self.stride {
            self.marks[node + slot].named |= self.marks[child + slot].named;
        }
    }

    /// Whether the quotas of a node, or of somebody below it, name the slot.
    pub(super) fn name(&self, node: NodeId, slot: Slot) -> bool {
        self.marks[node.index() * self.stride + slot.index()].named
    }

    fn row(&mut self, node: NodeId) -> &mut [Mark] {
        let start = node.index() * self.stride;
        &mut self.marks[start..start + self.stride]
    }
}
