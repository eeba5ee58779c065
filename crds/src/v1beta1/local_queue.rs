//! LocalQueue: the queue of a namespace, which points to a ClusterQueue.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::v1beta2::{LocalQueueFairSharingStatus, LocalQueueResourceUsage};
use crate::{
    meta::{Condition, Taint},
    schema::{ConditionShape, DnsSubdomain, TaintShape},
};

/// Observed state of a LocalQueue.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueStatus {
    /// Workloads admitted and not finished.
    #[serde(default)]
    pub admitted_workloads: i32,
    /// Conditions, one of a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ConditionShape>", extend("x-list" = "map type"))]
    pub conditions: Vec<Condition>,
    /// Current share under admission fair sharing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<LocalQueueFairSharingStatus>,
    /// Quota used by admitted Workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 64, "x-list" = "map name"))]
    pub flavor_usage: Vec<LocalQueueFlavorUsage>,
    /// Flavors of the ClusterQueue; no longer written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 64, "x-list" = "map name"))]
    pub flavors: Vec<LocalQueueFlavorStatus>,
    /// Quota held by Workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 64, "x-list" = "map name"))]
    pub flavors_reservation: Vec<LocalQueueFlavorUsage>,
    /// Workloads waiting for quota.
    #[serde(default)]
    pub pending_workloads: i32,
    /// Workloads holding quota.
    #[serde(default)]
    pub reserving_workloads: i32,
}

/// What the LocalQueue uses of one flavor.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "resources"]))]
pub struct LocalQueueFlavorUsage {
    /// Name.
    #[serde(default)]
    #[schemars(with = "DnsSubdomain")]
    pub name: String,
    /// Usage by resource.
    #[serde(default)]
    #[schemars(extend("maxItems" = 64, "x-list" = "map name"))]
    pub resources: Vec<LocalQueueResourceUsage>,
}

/// A flavor that the LocalQueue can use.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct LocalQueueFlavorStatus {
    /// Name.
    #[serde(default)]
    #[schemars(with = "DnsSubdomain")]
    pub name: String,
    /// Labels of the nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8, "x-kubernetes-map-type" = "atomic"))]
    pub node_labels: BTreeMap<String, String>,
    /// Taints of the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<TaintShape>", extend("maxItems" = 8, "x-list" = "atomic"))]
    pub node_taints: Vec<Taint>,
    /// Resources of the flavor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 64, "x-list" = "set"))]
    pub resources: Vec<String>,
    /// The topology of the flavor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyInfo>,
}

/// The topology behind a flavor.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["levels", "name"]))]
pub struct TopologyInfo {
    /// Levels from the broadest to the narrowest, as node label keys.
    #[serde(default)]
    #[schemars(extend("minItems" = 1, "maxItems" = 16, "x-list" = "atomic"))]
    pub levels: Vec<String>,
    /// Name of the Topology.
    #[serde(default)]
    #[schemars(with = "DnsSubdomain")]
    pub name: String,
}
