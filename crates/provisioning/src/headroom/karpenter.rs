//! Headroom of Karpenter: NodePools within their limits, with the shape of a node that they made.
//!
//! A NodePool chooses among instance types. The largest node that it has is the shape; one that has none has no known shape.

use std::collections::BTreeMap;

use crds::{
    meta::{Condition, Taint, is_deleting, is_true},
    quantity::Quantity,
};
use k8s_openapi::{ClusterResourceScope, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::Deserialize;

use super::{GroupHeadroom, NewNodeShape};
use crate::api::resource;

/// The label of a NodeClaim with the name of its NodePool.
const NODE_POOL_LABEL: &str = "karpenter.sh/nodepool";

/// The limit of the number of nodes.
const NODES: &str = "nodes";

/// The most nodes that are counted for a NodePool. One without limits has no bound of its own.
const MOST_MORE: i64 = 1000;

/// Amounts by resource.
type ResourceList = BTreeMap<String, Quantity>;

/// A NodePool.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct NodePool {
    /// Its name.
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    spec: NodePoolSpec,
    #[serde(default)]
    status: NodePoolStatus,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
struct NodePoolSpec {
    #[serde(default)]
    limits: ResourceList,
    /// Set for a pool of a fixed size.
    #[serde(default)]
    replicas: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
struct NodePoolStatus {
    #[serde(default)]
    resources: ResourceList,
    #[serde(default)]
    conditions: Vec<Condition>,
}

/// A NodeClaim: a node that Karpenter requested.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct NodeClaim {
    /// Its labels are those of the node.
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    spec: NodeClaimSpec,
    #[serde(default)]
    status: NodeClaimStatus,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
struct NodeClaimSpec {
    #[serde(default)]
    taints: Vec<Taint>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct NodeClaimStatus {
    #[serde(default)]
    node_name: String,
    #[serde(default)]
    capacity: ResourceList,
    #[serde(default)]
    allocatable: ResourceList,
    #[serde(default)]
    conditions: Vec<Condition>,
}

resource!(
    NodePool in ClusterResourceScope = "karpenter.sh",
    "v1",
    "karpenter.sh/v1",
    "NodePool",
    "nodepools"
);
resource!(
    NodeClaim in ClusterResourceScope = "karpenter.sh",
    "v1",
    "karpenter.sh/v1",
    "NodeClaim",
    "nodeclaims"
);

crds::decode!(NodePool, NodeClaim);

/// The headroom of a NodePool; `None` if it makes no nodes, or if their shape is not known.
#[must_use]
pub fn pool_headroom(pool: &NodePool, claims: &[&NodeClaim]) -> Option<GroupHeadroom> {
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    let makes_nodes = !is_deleting(&pool.metadata)
        && pool.spec.replicas.is_none()
        && is_true(&pool.status.conditions, "Ready");
    let own: Vec<&NodeClaim> =
        claims.iter().copied().filter(|claim| claim.pool() == Some(name)).collect();
    let largest = own.iter().filter(|claim| claim.has_known_shape());
    let largest = largest.max_by_key(|claim| claim.size()).filter(|_| makes_nodes)?;
    let upcoming = own.iter().filter(|claim| claim.is_upcoming()).count();
    let node = Some(largest.status.node_name.clone()).filter(|name| !name.is_empty());
    Some(GroupHeadroom {
        name: name.to_owned(),
        shape: Some(largest.shape()),
        node,
        max_more: pool.max_more(&own, &largest.status.capacity),
        upcoming: i64::try_from(upcoming).unwrap_or(i64::MAX),
    })
}

impl NodePool {
    /// Nodes of this capacity within the limits. The status of a pool may lag behind its claims, so the larger of both counts.
    fn max_more(&self, claims: &[&NodeClaim], capacity: &ResourceList) -> i64 {
        let bound = |(resource, limit): (&String, &Quantity)| {
            let each = |of: &ResourceList| match of.get(resource) {
                // Each claim is one node, whatever its capacity says.
                _ if resource == NODES => Quantity::from_units(1).nanos(),
                amount => amount.map_or(0, Quantity::nanos),
            };
            let claimed: i128 = claims.iter().map(|claim| each(&claim.status.capacity)).sum();
            let recorded = self.status.resources.get(resource).map_or(0, Quantity::nanos);
            let left = (limit.nanos() - claimed.max(recorded)).max(0);
            // A resource that the shape does not have is not limited for it.
            left.checked_div(each(capacity))
        };
        let least = self.spec.limits.iter().filter_map(bound).min();
        least.map_or(MOST_MORE, |least| i64::try_from(least).unwrap_or(i64::MAX)).min(MOST_MORE)
    }
}

impl NodeClaim {
    fn pool(&self) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(NODE_POOL_LABEL).map(String::as_str)
    }

    /// Karpenter estimates both before the node exists.
    fn has_known_shape(&self) -> bool {
        !self.status.allocatable.is_empty() && !self.status.capacity.is_empty()
    }

    fn is_upcoming(&self) -> bool {
        !is_deleting(&self.metadata) && !is_true(&self.status.conditions, "Initialized")
    }

    /// For the choice of the largest node: accelerators and other extended resources first, then cpu, then memory.
    fn size(&self) -> (i128, i128, i128, std::cmp::Reverse<&str>) {
        let amount = |name: &str| self.status.allocatable.get(name).map_or(0, Quantity::nanos);
        let extended = self.status.allocatable.iter().filter(|(name, _)| name.contains('/'));
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let extended = extended.map(|(_, amount)| amount.nanos()).sum();
        (extended, amount("cpu"), amount("memory"), std::cmp::Reverse(name))
    }

    fn shape(&self) -> NewNodeShape {
        NewNodeShape {
            labels: self.metadata.labels.clone().unwrap_or_default(),
            taints: self.spec.taints.clone(),
            allocatable: self.status.allocatable.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crds::decode::Decode;
    use serde_json::{Value, json};

    use super::*;

    fn pool(spec: &Value, resources: &Value) -> NodePool {
        NodePool::decode(&json!({
            "metadata": {"name": "gpu"},
            "spec": spec,
            "status": {"resources": resources, "conditions": [{"type": "Ready", "status": "True"}]},
        }))
        .expect("a NodePool")
    }

    fn claim(name: &str, pool: &str, cpu: u32, initialized: &str) -> NodeClaim {
        NodeClaim::decode(&json!({
            "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": pool, "zone": "a"}},
            "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            "status": {
                "nodeName": format!("node-{name}"),
                "capacity": {"cpu": cpu.to_string()},
                "allocatable": {"cpu": format!("{}m", cpu * 1000 - 100)},
                "conditions": [{"type": "Initialized", "status": initialized}],
            },
        }))
        .expect("a NodeClaim")
    }

    fn more(pool: &NodePool, claims: &[NodeClaim]) -> Option<(i64, i64)> {
        pool_headroom(pool, &claims.iter().collect::<Vec<_>>())
            .map(|one| (one.max_more, one.upcoming))
    }

    #[test]
    fn limits_bound_the_nodes_of_the_largest_shape() {
        let claims = [
            claim("a", "gpu", 8, "True"),
            claim("b", "gpu", 16, "False"),
            claim("c", "other", 64, "True"),
        ];
        let limited =
            pool(&json!({"limits": {"cpu": "100", "memory": "1Ti"}}), &json!({"cpu": "8"}));
        let headroom =
            pool_headroom(&limited, &claims.iter().collect::<Vec<_>>()).expect("a shape");
        // 24 of 100 cpus are claimed.
        assert_eq!((headroom.max_more, headroom.upcoming), (4, 1));
        assert_eq!(headroom.node.as_deref(), Some("node-b"));
        let shape = headroom.shape.expect("a shape");
        assert_eq!(shape.allocatable["cpu"].to_string(), "15900m");
        assert_eq!((&*shape.labels["zone"], shape.taints.len()), ("a", 1));
        let nodes = pool(&json!({"limits": {"nodes": "5"}}), &json!({}));
        assert_eq!(more(&nodes, &claims), Some((3, 1)));
        let recorded = pool(&json!({"limits": {"cpu": "100"}}), &json!({"cpu": "120"}));
        assert_eq!(more(&recorded, &claims), Some((0, 1)));
        assert_eq!(more(&pool(&json!({}), &json!({})), &claims), Some((1000, 1)));
    }

    #[test]
    fn a_pool_that_makes_no_nodes_has_no_headroom() {
        let claims = [claim("a", "gpu", 8, "True")];
        assert_eq!(more(&pool(&json!({"replicas": 3}), &json!({})), &claims), None);
        assert_eq!(more(&pool(&json!({}), &json!({})), &[]), None, "its shape is not known");
        let mut unready = pool(&json!({}), &json!({}));
        unready.status.conditions.clear();
        assert_eq!(more(&unready, &claims), None);
    }
}
