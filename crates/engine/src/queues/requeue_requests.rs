//! Requests to requeue the inadmissible Workloads of cohort trees, carried out when the next cycle begins.
//!
//! A request names any node of a tree. Trees with a cohort cycle are left out, as upstream does. Source:
//! docs/reference/kueue.md §3.6.

use crate::ids::NodeId;
use crate::quota::tree::QuotaTree;

/// Nodes whose cohort trees are to be requeued; duplicates are resolved when the requests are taken.
#[derive(Debug, Default, Clone)]
pub(crate) struct RequeueRequests(Vec<NodeId>);

impl RequeueRequests {
    /// Requests a requeue of the tree that `node` is in when the next cycle begins.
    pub(crate) fn add(&mut self, node: NodeId) {
        // Releases in one ClusterQueue often follow each other; other duplicates are removed when
        // requests are taken.
        if self.0.last() != Some(&node) {
            self.0.push(node);
        }
    }

    /// True if nothing is requested.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all requests and hands the root of every requested tree to `requeue`, each once.
    pub(crate) fn take(&mut self, tree: &QuotaTree, mut requeue: impl FnMut(NodeId)) {
        self.0.retain_mut(|node| {
            // A cohort cycle blocks its whole tree (§3.6).
            let cyclic = tree.node(*node).cyclic;
            *node = tree.root(*node);
            !cyclic
        });
        self.0.sort_unstable();
        self.0.dedup();
        self.0.drain(..).for_each(&mut requeue);
    }
}
