//! A node of the quota tree without its quotas: its place in the hierarchy.

use crate::ids::{NodeId, QueueId};
use crate::spec::FairSharingWeight;

/// A node without its numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    /// The parent cohort.
    pub(crate) parent: Option<NodeId>,
    /// Children, in no particular order.
    pub(crate) children: Vec<NodeId>,
    /// The ClusterQueue, when this is a leaf.
    pub(crate) queue: Option<QueueId>,
    /// The topmost ancestor. Meaningless in a cycle.
    pub(crate) root: Option<NodeId>,
    /// Levels below: 0 for a queue, 1 for a cohort that has only queues.
    pub(crate) height: u32,
    /// The node is its own ancestor, or has such an ancestor.
    pub(crate) cyclic: bool,
    /// Fair-sharing weight.
    pub(crate) weight: FairSharingWeight,
    /// Its place in the order of names.
    pub(crate) rank: u32,
}
