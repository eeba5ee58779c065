//! The status of a ClusterQueue.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fair_sharing::FairSharingStatus;
use crate::{
    meta::Condition,
    quantity::Quantity,
    schema::{ConditionShape, DnsSubdomain},
};

/// Observed state of a ClusterQueue.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterQueueStatus {
    /// Workloads admitted and not finished.
    #[serde(default)]
    pub admitted_workloads: i32,
    /// Conditions, one of a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ConditionShape>", extend("maxItems" = 16, "x-list" = "map type"))]
    pub conditions: Vec<Condition>,
    /// Current share under fair sharing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharingStatus>,
    /// Quota held by Workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 64, "x-list" = "map name"))]
    pub flavors_reservation: Vec<FlavorUsage>,
    /// Quota used by admitted Workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 64, "x-list" = "map name"))]
    pub flavors_usage: Vec<FlavorUsage>,
    /// Workloads waiting for quota.
    #[serde(default)]
    pub pending_workloads: i32,
    /// Workloads holding quota.
    #[serde(default)]
    pub reserving_workloads: i32,
}

/// What is used of one flavor.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "resources"]))]
pub struct FlavorUsage {
    /// Name of the ResourceFlavor.
    #[serde(default)]
    #[schemars(with = "DnsSubdomain")]
    pub name: String,
    /// Usage by resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 64, "x-list" = "map name"))]
    pub resources: Vec<ResourceUsage>,
}

/// What is used of one resource.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct ResourceUsage {
    /// The part above nominal quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub borrowed: Option<Quantity>,
    /// Name of the resource.
    #[serde(default)]
    pub name: String,
    /// The amount used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Quantity>,
}
