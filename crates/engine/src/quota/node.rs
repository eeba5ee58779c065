//! A node of the quota tree without its quotas: its place in the hierarchy.

use crate::ids::{NodeId, QueueId};
use crate::spec::FairSharingWeight;

/// A node of the quota tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct QuotaNode {
    /// The parent cohort.
    pub(crate) parent: Option<NodeId>,
    /// Children, in no particular order.
    pub(crate) children: Vec<NodeId>,
    /// The ClusterQueue, when this is a leaf.
    pub(crate) queue: Option<QueueId>,
    /// The root of its tree. Meaningless in a cohort cycle.
    pub(crate) root: Option<NodeId>,
    /// Number of levels below: 0 for a ClusterQueue, 1 for a cohort with ClusterQueues only.
    pub(crate) height: u32,
    /// The node is in a cohort cycle, or below one.
    pub(crate) cyclic: bool,
    /// Fair-sharing weight.
    pub(crate) weight: FairSharingWeight,
    /// Its rank in the order of names.
    pub(crate) rank: u32,
}
