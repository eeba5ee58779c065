//! A Node, as failure recovery sees it.

use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};

use crate::control::observed::Reduced;

/// The taint of the node controller: the kubelet does not report.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// Whether the kubelet of a node can still end its pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeReachability {
    pub(super) reachable: bool,
}

impl Reduced for NodeReachability {
    type Kind = Node;
    type Object = Node;

    fn metadata(node: &Node) -> &ObjectMeta {
        &node.metadata
    }

    fn of(node: &Node) -> Self {
        let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        Self { reachable: taints.into_iter().all(|taint| taint.key != UNREACHABLE) }
    }
}
