//! Headroom of a cluster: the nodes that its autoscaler can still add, from the autoscaler's own objects
//! (docs/reference/dispatch.md §2).
//!
//! Headroom is never overstated: a node group without a known shape is left out, as is one that the autoscaler does not scale up at
//! present.
//!
//! | module | concept |
//! |---|---|
//! | [`autoscaler_status`] | node groups in the status of cluster-autoscaler |
//! | [`machine_deployment`] | shapes of node groups of Cluster API, declared for scaling from zero |
//! | [`node_group`] | which nodes belong to a node group |
//! | [`karpenter`] | NodePools and NodeClaims |

pub mod autoscaler_status;
pub mod karpenter;
pub mod machine_deployment;
pub mod node_group;

use std::collections::BTreeMap;

use crds::{meta::Taint, quantity::Quantity};

pub use autoscaler_status::AutoscalerStatus;
pub use karpenter::{NodeClaim, NodePool, pool_headroom};
pub use machine_deployment::MachineDeployment;
pub use node_group::has_node;

/// What a new node of a group is like.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewNodeShape {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// What pods can use of it.
    pub allocatable: BTreeMap<String, Quantity>,
}

/// A node group, and how many more nodes it can have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupHeadroom {
    /// The name of the group.
    pub name: String,
    /// The shape of its nodes; `None` if only an existing node shows it.
    pub shape: Option<NewNodeShape>,
    /// A node of the group, if it is known. New nodes run the same DaemonSets.
    pub node: Option<String>,
    /// Nodes that were not requested yet.
    pub max_more: i64,
    /// Nodes that were requested and are not ready yet.
    pub upcoming: i64,
}

/// The node groups of cluster-autoscaler that it can scale up. Those of Cluster API have the shape that they declare.
#[must_use]
pub fn group_headroom(
    status: &AutoscalerStatus,
    deployments: &[&MachineDeployment],
) -> Vec<GroupHeadroom> {
    let groups = status.scalable_groups();
    let shape = |name: &str| deployments.iter().find(|one| one.is_group(name))?.declared_shape();
    groups.map(|group| GroupHeadroom { shape: shape(&group.name), ..group }).collect()
}

/// Whether a taint belongs to a state of one node, so that new nodes of its group do not have it.
#[must_use]
pub fn is_of_one_node(taint: &Taint) -> bool {
    taint.key.starts_with("node.kubernetes.io/")
        || taint.key.starts_with("node.cloudprovider.kubernetes.io/")
        || taint.key.ends_with("ByClusterAutoscaler")
        || taint.key.ends_with("OfClusterAutoscaler")
        || taint.key == "karpenter.sh/disrupted"
}
