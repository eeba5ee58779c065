//! Which slots the quotas of a node name, and those of the nodes below it.
//!
//! A quota of nothing is a quota: only what somebody names can be borrowed, lent and counted as a share. What is still
//! used of a flavor that a queue does not have any more is charged, and no share of anything. Source: spec/kueue-core.md
//! §4.3, §4.7: a node's quota lists what its own lines and its children's list. Cost: looked at only where more is used
//! than there is.

use crate::ids::{NodeId, Slot};

/// The slots of all nodes.
#[derive(Debug, Default, Clone)]
pub(super) struct Lines {
    rows: Vec<Row>,
}

#[derive(Debug, Default, Clone)]
struct Row {
    /// Named by the node itself.
    own: Vec<Slot>,
    /// By slot: named by the node or below it.
    named: Vec<bool>,
}

impl Lines {
    /// One more node, without quotas.
    pub(super) fn add(&mut self) {
        self.rows.push(Row::default());
    }

    /// The quotas of a node name these slots now.
    pub(super) fn set(&mut self, node: NodeId, slots: impl Iterator<Item = Slot>) {
        let row = &mut self.rows[node.index()];
        row.own.clear();
        row.own.extend(slots);
    }

    /// Forgets what the children of a node name.
    pub(super) fn begin(&mut self, node: NodeId, slots: usize) {
        let Row { own, named } = &mut self.rows[node.index()];
        named.clear();
        named.resize(slots, false);
        own.iter().for_each(|slot| named[slot.index()] = true);
    }

    /// What `child` names, `node` names as well.
    pub(super) fn adopt(&mut self, node: NodeId, child: NodeId) {
        let below = std::mem::take(&mut self.rows[child.index()].named);
        for (named, &also) in self.rows[node.index()].named.iter_mut().zip(&below) {
            *named |= also;
        }
        self.rows[child.index()].named = below;
    }

    /// Whether the quotas of a node, or of somebody below it, name the slot.
    pub(super) fn name(&self, node: NodeId, slot: Slot) -> bool {
        self.rows[node.index()].named.get(slot.index()).copied().unwrap_or_default()
    }
}
