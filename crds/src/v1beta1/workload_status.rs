//! The status of a Workload: quota, admission checks, evictions, the cluster.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::admission_check_state::AdmissionCheckState;
use crate::v1beta2::{
    PodSetRequest, ReclaimablePod, RequeueState, WorkloadSchedulingStatsEviction,
};
use crate::{
    meta::Condition,
    quantity::Quantity,
    rules,
    schema::{ConditionShape, DnsLabel, DnsSubdomain},
    shared_maps::{self, SharedNames, SharedQuantities},
};

/// Observed state of a Workload.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::WORKLOAD_STATUS))]
pub struct WorkloadStatus {
    /// Seconds run in earlier attempts (the misspelling is the API's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accumulated_past_exexcution_time_seconds: Option<i32>,
    /// Where quota is reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,
    /// The states of admission checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 8, "x-list" = "map name"))]
    pub admission_checks: Vec<AdmissionCheckState>,
    /// The worker that runs the Workload. Cannot be changed once set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    /// Conditions, one of a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ConditionShape>", extend("x-list" = "map type"))]
    pub conditions: Vec<Condition>,
    /// The nominated clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 20, "x-list" = "atomic"))]
    pub nominated_cluster_names: Vec<String>,
    /// Pods no longer needed, by pod set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 18, "x-list" = "map name"))]
    pub reclaimable_pods: Vec<ReclaimablePod>,
    /// Backoff after evictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_state: Option<RequeueState>,
    /// The requests while the Workload is pending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 18, "x-list" = "map name"))]
    pub resource_requests: Vec<PodSetRequest>,
    /// Counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_stats: Option<SchedulingStats>,
    /// Failed nodes of the assignment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unhealthy_nodes: Vec<UnhealthyNode>,
}

/// Where quota is reserved and with which flavors.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["clusterQueue", "podSetAssignments"]))]
pub struct Admission {
    /// The ClusterQueue that holds the quota.
    #[serde(default)]
    #[schemars(with = "DnsSubdomain")]
    pub cluster_queue: String,
    /// Flavors and usage by pod set.
    #[serde(default)]
    #[schemars(extend("maxItems" = 18, "x-list" = "map name"))]
    pub pod_set_assignments: Vec<PodSetAssignment>,
}

/// Flavors and usage of one pod set.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct PodSetAssignment {
    /// Number of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    pub count: Option<i32>,
    /// Whether the topology is still to be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_topology_request: Option<String>,
    /// Flavor by resource.
    #[serde(default, skip_serializing_if = "shared_maps::is_empty")]
    #[schemars(with = "BTreeMap<String, DnsSubdomain>")]
    pub flavors: SharedNames,
    /// Name of the pod set.
    #[serde(default)]
    #[schemars(with = "DnsLabel", extend("x-default" = "main"))]
    pub name: String,
    /// Usage of the whole pod set by resource.
    #[serde(default, skip_serializing_if = "shared_maps::is_empty")]
    #[schemars(with = "BTreeMap<String, Quantity>")]
    pub resource_usage: SharedQuantities,
    /// The domains of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_assignment: Option<TopologyAssignment>,
}

/// The domains of the pods of a pod set.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["domains", "levels"]))]
pub struct TopologyAssignment {
    /// The domains.
    #[serde(default)]
    pub domains: Vec<TopologyDomainAssignment>,
    /// Levels from the broadest to the narrowest, as node label keys.
    #[serde(default)]
    #[schemars(extend("minItems" = 1, "maxItems" = 16, "x-list" = "atomic"))]
    pub levels: Vec<String>,
}

/// A domain and its number of pods.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["count", "values"]))]
pub struct TopologyDomainAssignment {
    /// Number of pods.
    #[serde(default)]
    #[schemars(extend("minimum" = 1))]
    pub count: i32,
    /// Value of each level.
    #[serde(default)]
    #[schemars(extend("minItems" = 1, "maxItems" = 16, "x-list" = "atomic"))]
    pub values: Vec<String>,
}

/// Counters over the lifetime of a Workload.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingStats {
    /// Evictions by reason and cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-list" = "map reason underlyingCause"))]
    pub evictions: Vec<WorkloadSchedulingStatsEviction>,
}

/// A node of the assignment that failed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct UnhealthyNode {
    /// Name of the node.
    #[serde(default)]
    pub name: String,
}
