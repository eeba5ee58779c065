//! The states of the admission checks of a Workload.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    meta::Toleration,
    rules,
    schema::{DnsLabel, Text, Timestamp, TolerationShape},
};

/// The state of one admission check.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["lastTransitionTime", "message", "name", "state"]))]
pub struct AdmissionCheckState {
    /// When the state last changed.
    #[serde(
        default,
        deserialize_with = "crate::stored_time::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Timestamp")]
    pub last_transition_time: Option<Time>,
    /// The human-readable message.
    #[serde(default)]
    #[schemars(with = "Text<0, 32768>")]
    pub message: String,
    /// Name of the AdmissionCheck.
    #[serde(default)]
    #[schemars(with = "Text<0, 316>")]
    pub name: String,
    /// What the check adds to the pods, by pod set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 18, "x-list" = "atomic"))]
    pub pod_set_updates: Vec<PodSetUpdate>,
    /// Seconds to wait before the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    pub requeue_after_seconds: Option<i32>,
    /// Attempts after the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    pub retry_count: Option<i32>,
    /// Pending, Ready, Retry or Rejected.
    #[serde(default)]
    #[schemars(extend("enum" = ["Pending", "Ready", "Retry", "Rejected"]))]
    pub state: String,
}

/// What a check adds to the pods of one pod set.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct PodSetUpdate {
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Name of the pod set.
    #[serde(default)]
    #[schemars(with = "DnsLabel")]
    pub name: String,
    /// Node selector.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations added to the pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<TolerationShape>", extend("maxItems" = 8, "x-kubernetes-validations" = rules::TOLERATIONS))]
    pub tolerations: Vec<Toleration>,
}
