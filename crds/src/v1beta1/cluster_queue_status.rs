//! The status of a ClusterQueue.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fair_sharing::FairSharingStatus;
use crate::v1beta2::ResourceUsage;
use crate::{
    meta::Condition,
    schema::{ConditionShape, DnsSubdomain, Timestamp},
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
    #[schemars(with = "Vec<ConditionShape>", extend("x-list" = "map type"))]
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
    /// The head of the queue; no longer written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_workloads_status: Option<ClusterQueuePendingWorkloadsStatus>,
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
    #[serde(default)]
    #[schemars(extend("maxItems" = 64, "x-list" = "map name"))]
    pub resources: Vec<ResourceUsage>,
}

/// The head of the queue; no longer written.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["lastChangeTime"]))]
pub struct ClusterQueuePendingWorkloadsStatus {
    /// The pending Workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-list" = "atomic"))]
    pub cluster_queue_pending_workload: Vec<ClusterQueuePendingWorkload>,
    /// When the list changed.
    #[serde(
        default,
        deserialize_with = "crate::stored_time::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Timestamp")]
    pub last_change_time: Option<Time>,
}

/// A pending Workload, named.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "namespace"]))]
pub struct ClusterQueuePendingWorkload {
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Namespace of the Workload.
    #[serde(default)]
    pub namespace: String,
}
