//! A RayService: Serve applications in a cluster that is replaced without interruption.

use std::collections::BTreeMap;

use crds::{
    kind::is_unset,
    meta::Condition,
    schema::{AnyObject, ConditionShape, Timestamp},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{RayClusterSpec, RayClusterStatus};
use crate::rules;

/// What a RayService serves, and where.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["rayClusterConfig"]))]
pub struct RayServiceSpec {
    /// Without effect.
    pub deployment_unhealthy_second_threshold: Option<i32>,
    /// Whether the head serves nothing.
    pub exclude_head_pod_from_serve_svc: bool,
    /// The controller of this object: the built-in one, or MultiKueue.
    #[schemars(extend("x-kubernetes-validations" = rules::MANAGED_BY))]
    pub managed_by: Option<String>,
    /// The cluster.
    pub ray_cluster_config: RayClusterSpec,
    /// Seconds until a replaced cluster is removed.
    #[schemars(extend("minimum" = 0))]
    pub ray_cluster_deletion_delay_seconds: Option<i32>,
    /// The applications, as YAML.
    pub serve_config_v2: String,
    /// The Service in place of the generated one.
    #[schemars(with = "Option<AnyObject>")]
    pub serve_service: Option<Value>,
    /// Without effect.
    pub service_unhealthy_second_threshold: Option<i32>,
    /// Whether everything is removed.
    pub suspend: bool,
    /// How a cluster is replaced.
    pub upgrade_strategy: Option<RayServiceUpgradeStrategy>,
}

/// How a cluster is replaced.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RayServiceUpgradeStrategy {
    /// Steps of the incremental upgrade.
    pub cluster_upgrade_options: Option<ClusterUpgradeOptions>,
    /// `NewCluster`, `NewClusterWithIncrementalUpgrade` or `None`.
    pub r#type: Option<String>,
}

/// Steps of the incremental upgrade.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["gatewayClassName", "intervalSeconds", "stepSizePercent"]))]
pub struct ClusterUpgradeOptions {
    /// The class of the Gateway.
    pub gateway_class_name: String,
    /// Seconds between two steps.
    pub interval_seconds: Option<i32>,
    /// The most capacity above 100 percent.
    #[schemars(extend("x-default" = 100))]
    pub max_surge_percent: Option<i32>,
    /// Traffic that moves in a step, in percent.
    pub step_size_percent: Option<i32>,
}

/// The state of a RayService.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RayServiceStatuses {
    /// The cluster that serves.
    #[serde(skip_serializing_if = "is_unset")]
    pub active_service_status: RayServiceStatus,
    /// Conditions by type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ConditionShape>", extend("x-list" = "map type"))]
    pub conditions: Vec<Condition>,
    /// When this status was last written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub last_update_time: Option<String>,
    /// Pods that serve.
    #[serde(skip_serializing_if = "is_unset")]
    pub num_serve_endpoints: i32,
    /// The generation that this status speaks of.
    #[serde(skip_serializing_if = "is_unset")]
    pub observed_generation: i64,
    /// The cluster that is to serve.
    #[serde(skip_serializing_if = "is_unset")]
    pub pending_service_status: RayServiceStatus,
    /// `Running`, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_status: String,
}

/// The state of one cluster of a RayService.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RayServiceStatus {
    /// Applications by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub application_statuses: BTreeMap<String, AppStatus>,
    /// When traffic last moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub last_traffic_migrated_time: Option<String>,
    /// The cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ray_cluster_name: String,
    /// A copy of the cluster's status.
    #[serde(skip_serializing_if = "is_unset")]
    pub ray_cluster_status: RayClusterStatus,
    /// Capacity in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_capacity: Option<i32>,
    /// Traffic in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_routed_percent: Option<i32>,
}

/// The state of an application.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppStatus {
    /// The human-readable message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Deployments by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub serve_deployment_statuses: BTreeMap<String, ServeDeploymentStatus>,
    /// `RUNNING`, `DEPLOYING` and the like.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
}

/// The state of a deployment.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServeDeploymentStatus {
    /// The human-readable message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// `HEALTHY`, `UPDATING` and the like.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
}
