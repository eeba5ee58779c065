//! LocalQueue: the queue of a namespace, which points to a ClusterQueue.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fair_sharing::FairSharing;
use crate::{
    kind::kind,
    meta::Condition,
    quantity::Quantity,
    rules,
    schema::{ConditionShape, DnsSubdomain, Timestamp},
};

kind! {
    /// The door of a namespace to a ClusterQueue.
    LocalQueue, NamespaceResourceScope, "kueue.x-k8s.io" / "v1beta2" / "localqueues" {
        /// What is wanted.
        #[serde(default)]
        spec: LocalQueueSpec,
        /// What is observed.
        #[serde(default)]
        status: LocalQueueStatus,
    }
}

/// The ClusterQueue that a namespace submits to.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueSpec {
    /// The ClusterQueue. Cannot be changed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsSubdomain", extend("x-kubernetes-validations" = rules::IMMUTABLE))]
    pub cluster_queue: String,
    /// Weight under fair sharing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharing>,
    /// Whether admission is stopped, and whether admitted Workloads are evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["None", "Hold", "HoldAndDrain"], "x-default" = "None"))]
    pub stop_policy: Option<String>,
}

/// Observed state of a LocalQueue.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueStatus {
    /// Workloads admitted and not finished.
    #[serde(default)]
    pub admitted_workloads: i32,
    /// Conditions, one of a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ConditionShape>", extend("maxItems" = 16, "x-list" = "map type"))]
    pub conditions: Vec<Condition>,
    /// Current share under admission fair sharing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<LocalQueueFairSharingStatus>,
    /// Quota held by Workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 64, "x-list" = "map name"))]
    pub flavors_reservation: Vec<LocalQueueFlavorUsage>,
    /// Quota used by admitted Workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 64, "x-list" = "map name"))]
    pub flavors_usage: Vec<LocalQueueFlavorUsage>,
    /// Workloads waiting for quota.
    #[serde(default)]
    pub pending_workloads: i32,
    /// Workloads holding quota.
    #[serde(default)]
    pub reserving_workloads: i32,
}

/// The share of a LocalQueue under admission fair sharing.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["weightedShare"]))]
pub struct LocalQueueFairSharingStatus {
    /// Usage over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission_fair_sharing_status: Option<AdmissionFairSharingStatus>,
    /// Share divided by weight, rounded up.
    #[serde(default)]
    pub weighted_share: i64,
}

/// Usage over time that orders LocalQueues under admission fair sharing.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["consumedResources", "lastUpdate"]))]
pub struct AdmissionFairSharingStatus {
    /// Decayed usage by resource.
    #[serde(default)]
    pub consumed_resources: BTreeMap<String, Quantity>,
    /// When the usage was last sampled.
    #[serde(
        default,
        deserialize_with = "crate::stored_time::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Timestamp")]
    pub last_update: Option<Time>,
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 64, "x-list" = "map name"))]
    pub resources: Vec<LocalQueueResourceUsage>,
}

/// What the LocalQueue uses of one resource.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct LocalQueueResourceUsage {
    /// Name.
    #[serde(default)]
    pub name: String,
    /// The amount used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Quantity>,
}
