//! Changes of quotas, the cohort tree and flavors that the next cycle has to apply.
//!
//! Events only note what changed; sums, ranks and the state of ClusterQueues are recomputed once per cycle.

use crate::ids::NodeId;

/// Configuration changes since the last rebuild.
#[derive(Debug, Default, Clone)]
pub(crate) struct ConfigurationChanges {
    rebuild: bool,
    pending: PendingChanges,
    /// Number of nodes that have a rank.
    ranked: usize,
}

/// The nodes that changes concern. A node may be listed more than once.
#[derive(Debug, Default, Clone)]
pub(crate) struct PendingChanges {
    /// A flavor or topology changed, so every ClusterQueue is concerned.
    pub(crate) flavors: bool,
    /// Nodes whose configuration changed.
    pub(crate) configured: Vec<NodeId>,
    /// Nodes whose quotas or parent changed, and their former parents.
    pub(crate) quota_changed: Vec<NodeId>,
    /// Nodes that lost a child.
    pub(crate) former_parents: Vec<NodeId>,
}

impl ConfigurationChanges {
    /// Whether a rebuild is needed.
    pub(crate) fn need_rebuild(&self) -> bool {
        self.rebuild
    }

    /// Requests a rebuild although no node changed, e.g. after a change of an AdmissionCheck.
    pub(crate) fn request_rebuild(&mut self) {
        self.rebuild = true;
    }

    /// Notes that flavors or topologies changed.
    pub(crate) fn flavors_changed(&mut self) {
        (self.rebuild, self.pending.flavors) = (true, true);
    }

    /// Notes that the configuration of a node changed.
    pub(crate) fn node_changed(&mut self, node: NodeId) {
        self.rebuild = true;
        self.pending.configured.push(node);
    }

    /// Notes that quotas or parent of a node change: flavor scans of its tree, and of the tree that it leaves, start again.
    pub(crate) fn quotas_changed(&mut self, node: NodeId, parent: Option<NodeId>) {
        self.pending.quota_changed.push(node);
        self.pending.quota_changed.extend(parent);
    }

    /// Notes that a child may have left `parent`.
    pub(crate) fn child_left(&mut self, parent: NodeId) {
        self.pending.former_parents.push(parent);
    }

    /// Ends the rebuild and returns what it has to apply.
    pub(crate) fn take(&mut self) -> PendingChanges {
        self.rebuild = false;
        std::mem::take(&mut self.pending)
    }

    /// Whether nodes were added since the ranks were computed. Notes that they are computed now for `nodes` nodes.
    pub(crate) fn take_unranked(&mut self, nodes: usize) -> bool {
        std::mem::replace(&mut self.ranked, nodes) != nodes
    }
}
