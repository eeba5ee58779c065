//! The status of a RayCluster.

use std::collections::BTreeMap;

use crds::{
    kind::is_unset,
    meta::Condition,
    quantity::Quantity,
    schema::{ConditionShape, Timestamp},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of a cluster. Numbers that are zero and texts that are empty are left out, as the official operator does.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RayClusterStatus {
    /// Workers in the phase Running.
    #[serde(skip_serializing_if = "is_unset")]
    pub available_worker_replicas: i32,
    /// Conditions by type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ConditionShape>", extend("x-list" = "map type"))]
    pub conditions: Vec<Condition>,
    /// CPUs of all pods.
    #[serde(rename = "desiredCPU", skip_serializing_if = "Option::is_none")]
    pub desired_cpu: Option<Quantity>,
    /// GPUs of all pods.
    #[serde(rename = "desiredGPU", skip_serializing_if = "Option::is_none")]
    pub desired_gpu: Option<Quantity>,
    /// Memory of all pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_memory: Option<Quantity>,
    /// TPUs of all pods.
    #[serde(rename = "desiredTPU", skip_serializing_if = "Option::is_none")]
    pub desired_tpu: Option<Quantity>,
    /// Wanted workers.
    #[serde(skip_serializing_if = "is_unset")]
    pub desired_worker_replicas: i32,
    /// Ports of the head's Service by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub endpoints: BTreeMap<String, String>,
    /// Where the head is.
    #[serde(skip_serializing_if = "is_unset")]
    pub head: HeadInfo,
    /// When this status was last written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>", extend("nullable" = true))]
    pub last_update_time: Option<String>,
    /// The most workers.
    #[serde(skip_serializing_if = "is_unset")]
    pub max_worker_replicas: i32,
    /// The fewest workers.
    #[serde(skip_serializing_if = "is_unset")]
    pub min_worker_replicas: i32,
    /// The generation that this status speaks of.
    #[serde(skip_serializing_if = "is_unset")]
    pub observed_generation: i64,
    /// Workers that are running and ready.
    #[serde(skip_serializing_if = "is_unset")]
    pub ready_worker_replicas: i32,
    /// Why the cluster failed; only ever cleared.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// `ready`, `suspended`, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// When each state began.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, Timestamp>")]
    pub state_transition_times: BTreeMap<String, String>,
}

/// Where the head of a cluster is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeadInfo {
    /// The address of the pod.
    #[serde(rename = "podIP", skip_serializing_if = "String::is_empty")]
    pub pod_ip: String,
    /// The pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    /// The address of the Service, that of the pod if it has none.
    #[serde(rename = "serviceIP", skip_serializing_if = "String::is_empty")]
    pub service_ip: String,
    /// The Service.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_name: String,
}
