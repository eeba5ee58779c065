//! The status of a Workload: quota, admission checks, evictions, the cluster.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{admission_check_state::AdmissionCheckState, topology_assignment::TopologyAssignment};
use crate::{
    meta::{Condition, find, find_true},
    names::{
        conditions::{ADMITTED, EVICTED, QUOTA_RESERVED},
        reasons::{DEACTIVATED, ON_HOLD},
    },
    quantity::Quantity,
    rules,
    schema::{ConditionShape, DnsLabel, DnsSubdomain, Text, Timestamp},
    shared_maps::{self, SharedNames, SharedQuantities},
};

/// Observed state of a Workload.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::WORKLOAD_STATUS))]
pub struct WorkloadStatus {
    /// Seconds run in earlier attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accumulated_past_execution_time_seconds: Option<i32>,
    /// Where quota is reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,
    /// The states of admission checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 8, "x-list" = "map name"))]
    pub admission_checks: Vec<AdmissionCheckState>,
    /// The worker that runs the Workload. Cannot be changed once set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text<0, 256>")]
    pub cluster_name: Option<String>,
    /// Conditions, one of a type.
    #[serde(
        default,
        deserialize_with = "crate::exact::list",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(with = "Vec<ConditionShape>", extend("maxItems" = 16, "x-list" = "map type"))]
    pub conditions: Vec<Condition>,
    /// The nominated clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Text<0, 256>>", extend("maxItems" = 20, "x-list" = "atomic"))]
    pub nominated_cluster_names: Vec<String>,
    /// Which preemption gates are open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 8, "x-list" = "map name"))]
    pub preemption_gates: Vec<PreemptionGateState>,
    /// Pods no longer needed, by pod set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 18, "x-list" = "map name"))]
    pub reclaimable_pods: Vec<ReclaimablePod>,
    /// Backoff after evictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_state: Option<Box<RequeueState>>,
    /// The requests while the Workload is pending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 18, "x-list" = "map name"))]
    pub resource_requests: Vec<PodSetRequest>,
    /// Counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_stats: Option<SchedulingStats>,
    /// Failed nodes of the assignment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 8, "x-list" = "map name"))]
    pub unhealthy_nodes: Vec<UnhealthyNode>,
}

impl WorkloadStatus {
    /// Whether the job of the Workload keeps it out of its queue.
    #[must_use]
    pub fn is_on_hold(&self) -> bool {
        let reserved = find(&self.conditions, QUOTA_RESERVED);
        reserved.is_some_and(|one| one.status != "True" && one.reason == ON_HOLD)
    }

    /// Since when its run time counts: its admission, else its reservation. `None` without either.
    #[must_use]
    pub fn started_at(&self) -> Option<jiff::Timestamp> {
        let since = |condition| find_true(&self.conditions, condition)?.transitioned_at();
        since(ADMITTED).or_else(|| since(QUOTA_RESERVED))
    }

    /// The condition of an eviction by a deactivation that has a cause, such as a rejected check.
    #[must_use]
    pub fn deactivation_with_cause(&self) -> Option<&Condition> {
        let evicted = find_true(&self.conditions, EVICTED)?;
        let cause = evicted.reason.strip_prefix(DEACTIVATED)?;
        cause.starts_with("DueTo").then_some(evicted)
    }

    /// The state of a preemption gate that is open.
    #[must_use]
    pub fn open_gate(&self, gate: &str) -> Option<&PreemptionGateState> {
        let mut known = self.preemption_gates.iter();
        known.find(|one| one.name == gate && one.position == PreemptionGateState::OPEN)
    }
}

impl PreemptionGateState {
    /// The position of an open gate.
    pub const OPEN: &str = "Open";
}

/// Where quota is reserved and with which flavors.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Admission {
    /// The ClusterQueue that holds the quota.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsSubdomain")]
    pub cluster_queue: String,
    /// Flavors and usage by pod set.
    #[serde(
        default,
        deserialize_with = "crate::exact::list",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(extend("maxItems" = 18, "x-list" = "map name"))]
    pub pod_set_assignments: Vec<PodSetAssignment>,
}

/// Flavors and usage of one pod set.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSetAssignment {
    /// Number of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    pub count: Option<i32>,
    /// Whether the topology is still to be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text<0, 7>", extend("enum" = ["Pending", "Ready"]))]
    pub delayed_topology_request: Option<String>,
    /// Flavor by resource.
    #[serde(default, skip_serializing_if = "shared_maps::is_empty")]
    #[schemars(with = "BTreeMap<String, DnsSubdomain>")]
    pub flavors: SharedNames,
    /// Name of the pod set.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsLabel", extend("x-default" = "main"))]
    pub name: String,
    /// Usage of the whole pod set by resource.
    #[serde(default, skip_serializing_if = "shared_maps::is_empty")]
    #[schemars(with = "BTreeMap<String, Quantity>")]
    pub resource_usage: SharedQuantities,
    /// The domains of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules::TOPOLOGY_ASSIGNMENT))]
    pub topology_assignment: Option<TopologyAssignment>,
}

/// Pods of a pod set that are finished for good.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["count", "name"]))]
pub struct ReclaimablePod {
    /// Number of pods.
    #[serde(default)]
    #[schemars(extend("minimum" = 0))]
    pub count: i32,
    /// Name of the pod set.
    #[serde(default)]
    #[schemars(with = "DnsLabel")]
    pub name: String,
}

/// Backoff after an eviction.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequeueState {
    /// Evictions that count towards the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    pub count: Option<i32>,
    /// Not before this time.
    #[serde(
        default,
        deserialize_with = "crate::stored_time::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Timestamp")]
    pub requeue_at: Option<Time>,
}

/// The requests of a pending pod set, after defaults and transformations.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct PodSetRequest {
    /// Name of the pod set.
    #[serde(default)]
    #[schemars(with = "DnsLabel")]
    pub name: String,
    /// Requested amount by resource.
    #[serde(default, skip_serializing_if = "shared_maps::is_empty")]
    #[schemars(with = "BTreeMap<String, Quantity>")]
    pub resources: SharedQuantities,
}

/// Counters over the lifetime of a Workload.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingStats {
    /// Evictions by reason and cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 256, "x-list" = "map reason underlyingCause"))]
    pub evictions: Vec<WorkloadSchedulingStatsEviction>,
}

/// How often a Workload was evicted for one reason.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["count", "reason", "underlyingCause"]))]
pub struct WorkloadSchedulingStatsEviction {
    /// Number of evictions.
    #[serde(default)]
    #[schemars(extend("minimum" = 0))]
    pub count: i32,
    /// Reason of the eviction.
    #[serde(default)]
    #[schemars(with = "Text<0, 316>")]
    pub reason: String,
    /// Cause behind the reason; may be empty.
    #[serde(default)]
    #[schemars(with = "Text<0, 316>")]
    pub underlying_cause: String,
}

/// A node of the assignment that failed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct UnhealthyNode {
    /// Name of the node.
    #[serde(default)]
    #[schemars(with = "Text<0, 63>")]
    pub name: String,
}

/// Whether a preemption gate is open.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["lastTransitionTime", "name", "position"]))]
pub struct PreemptionGateState {
    /// When the state last changed.
    #[serde(
        default,
        deserialize_with = "crate::stored_time::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Timestamp")]
    pub last_transition_time: Option<Time>,
    /// Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Text<1, 63>")]
    pub name: String,
    /// Open or Closed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Closed", "Open"]))]
    pub position: String,
}
