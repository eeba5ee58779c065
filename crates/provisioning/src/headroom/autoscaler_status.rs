//! The status of cluster-autoscaler, which it writes as YAML into a ConfigMap.
//!
//! The format is that of version 1.30 and later; an earlier status is prose and has no groups here. A group is scaled up unless it is
//! unhealthy or in backoff after a failed attempt.

use crds::decode::Decode;
use k8s_openapi::{
    NamespaceResourceScope, api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::Deserialize;
use serde_json::Error;

use super::GroupHeadroom;
use crate::api::resource;

/// The name of the ConfigMap.
pub const STATUS_CONFIG_MAP: &str = "cluster-autoscaler-status";

/// The namespace of the ConfigMap.
pub const STATUS_NAMESPACE: &str = "kube-system";

/// The key of the ConfigMap.
const STATUS_KEY: &str = "status";

/// The ConfigMap, decoded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AutoscalerStatus {
    /// Name and version of the ConfigMap.
    pub metadata: ObjectMeta,
    running: bool,
    groups: Vec<NodeGroupStatus>,
}

resource!(
    AutoscalerStatus in NamespaceResourceScope = "",
    "v1",
    "v1",
    "ConfigMap",
    "configmaps"
);

/// The document of the status. What no decision reads is left out.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusDocument {
    #[serde(default)]
    autoscaler_status: String,
    #[serde(default)]
    node_groups: Vec<NodeGroupStatus>,
}

/// A node group.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct NodeGroupStatus {
    #[serde(default)]
    name: String,
    #[serde(default)]
    health: GroupHealth,
    #[serde(default)]
    scale_up: ScaleUp,
}

/// Sizes of a group.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct GroupHealth {
    #[serde(default)]
    status: String,
    #[serde(default)]
    node_counts: NodeCounts,
    #[serde(default)]
    cloud_provider_target: i64,
    #[serde(default)]
    max_size: i64,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
struct NodeCounts {
    #[serde(default)]
    registered: RegisteredNodes,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
struct RegisteredNodes {
    #[serde(default)]
    ready: i64,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
struct ScaleUp {
    #[serde(default)]
    status: String,
}

impl AutoscalerStatus {
    /// The groups that are scaled up, without their shapes.
    pub(super) fn scalable_groups(&self) -> impl Iterator<Item = GroupHeadroom> {
        let groups = self.groups.iter().filter(|group| self.running && group.is_scalable());
        groups.map(|NodeGroupStatus { name, health, .. }| {
            let (target, ready) =
                (health.cloud_provider_target, health.node_counts.registered.ready);
            GroupHeadroom {
                name: name.clone(),
                shape: None,
                node: None,
                max_more: health.max_size.saturating_sub(target).max(0),
                upcoming: target.saturating_sub(ready).max(0),
            }
        })
    }
}

impl NodeGroupStatus {
    fn is_scalable(&self) -> bool {
        self.health.status == "Healthy" && self.scale_up.status != "Backoff"
    }
}

impl Decode for AutoscalerStatus {
    /// A document that is not of the known format has no groups: it is free text of another program.
    #[inline(never)]
    fn decode_text(text: &str) -> Result<Self, Error> {
        let map = ConfigMap::decode_text(text)?;
        let text = map.data.as_ref().and_then(|data| data.get(STATUS_KEY));
        let document = text.and_then(|text| serde_saphyr::from_str(text).ok());
        let StatusDocument { autoscaler_status, node_groups } = document.unwrap_or_default();
        Ok(Self {
            metadata: map.metadata,
            running: autoscaler_status == "Running",
            groups: node_groups,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decoded(text: &str) -> Vec<GroupHeadroom> {
        let map =
            json!({"metadata": {"name": "cluster-autoscaler-status"}, "data": {"status": text}});
        AutoscalerStatus::decode(&map).expect("a ConfigMap").scalable_groups().collect()
    }

    fn group(name: &str, health: &str, scale_up: &str) -> String {
        format!(
            "- name: {name}\n  health:\n    status: {health}\n    nodeCounts: {{registered: {{ready: 2, total: 3}}}}\n    \
             cloudProviderTarget: 3\n    minSize: 0\n    maxSize: 8\n  scaleUp: {{status: {scale_up}, backoffInfo: {{}}}}\n"
        )
    }

    #[test]
    fn a_group_can_grow_from_its_target_to_its_maximum() {
        let text = format!(
            "time: 2026-10-02 14:29:22.9 +0000 UTC\nautoscalerStatus: Running\nclusterWide: {{}}\nnodeGroups:\n{}{}{}",
            group("a", "Healthy", "NoActivity"),
            group("b", "Healthy", "Backoff"),
            group("c", "Unhealthy", "NoActivity"),
        );
        let wanted = GroupHeadroom {
            name: "a".to_owned(),
            max_more: 5,
            upcoming: 1,
            ..GroupHeadroom::default()
        };
        assert_eq!(decoded(&text), [wanted]);
        assert_eq!(decoded(&text.replace("Running", "Initializing")), []);
    }

    #[test]
    fn a_status_in_prose_has_no_groups() {
        let text =
            "Cluster-autoscaler status at 2020-11-25:\nCluster-wide:\n  Health: Healthy (ready=4)";
        assert_eq!(decoded(text), []);
        assert_eq!(AutoscalerStatus::decode(&json!({})).expect("total").groups, []);
    }
}
