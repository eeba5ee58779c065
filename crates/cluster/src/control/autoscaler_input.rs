//! What an agent observes of autoscalers (docs/reference/dispatch.md §2).

use provisioning::headroom::{AutoscalerStatus, MachineDeployment, NodeClaim, NodePool};
use runtime::watch::Change;

/// What an agent observes of autoscalers.
#[derive(Debug)]
pub enum AutoscalerInput {
    /// The status of cluster-autoscaler.
    Status(Change<AutoscalerStatus>),
    /// Node groups of Cluster API.
    MachineDeployment(Change<MachineDeployment>),
    /// NodePools of Karpenter.
    NodePool(Change<NodePool>),
    /// Nodes that Karpenter requested.
    NodeClaim(Change<NodeClaim>),
}
