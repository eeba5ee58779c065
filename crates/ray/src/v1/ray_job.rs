//! A RayJob: a cluster, and a program that runs in it.

use std::collections::BTreeMap;

use crds::{
    kind::is_unset,
    schema::{AnyObject, Number, PodTemplateShape, PositiveInt, Timestamp},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{RayClusterSpec, RayClusterStatus};
use crate::rules;

/// What a RayJob runs, and where.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RayJobSpec {
    /// The most seconds from the start to the end.
    pub active_deadline_seconds: Option<i32>,
    /// How many failed attempts are repeated.
    #[schemars(extend("x-default" = 0))]
    pub backoff_limit: Option<i32>,
    /// Selects a cluster that exists.
    pub cluster_selector: BTreeMap<String, String>,
    /// What is removed after the end.
    #[schemars(extend("x-kubernetes-validations" = rules::DELETION_STRATEGY))]
    pub deletion_strategy: Option<DeletionStrategy>,
    /// The command.
    pub entrypoint: String,
    /// CPUs of the command.
    #[schemars(with = "Number")]
    pub entrypoint_num_cpus: f32,
    /// GPUs of the command.
    #[schemars(with = "Number")]
    pub entrypoint_num_gpus: f32,
    /// Other resources of the command, as JSON.
    pub entrypoint_resources: String,
    /// The id of the job in Ray.
    pub job_id: String,
    /// The controller of this object: the built-in one, or MultiKueue.
    #[schemars(extend("x-kubernetes-validations" = rules::MANAGED_BY))]
    pub managed_by: Option<String>,
    /// Metadata of the job in Ray.
    #[schemars(with = "Option<AnyObject>")]
    pub metadata: Option<Value>,
    /// The most seconds from the start until the job runs.
    #[schemars(with = "Option<PositiveInt>")]
    pub pre_running_deadline_seconds: Option<i32>,
    /// The cluster to make.
    pub ray_cluster_spec: Option<RayClusterSpec>,
    /// The runtime environment of the job.
    #[serde(rename = "runtimeEnvYAML")]
    pub runtime_env_yaml: String,
    /// Whether the cluster is removed after the end.
    pub shutdown_after_job_finishes: bool,
    /// How the job is submitted: `K8sJobMode`, `HTTPMode`, `InteractiveMode` or `SidecarMode`.
    #[schemars(extend("x-default" = "K8sJobMode"))]
    pub submission_mode: String,
    /// The submitter.
    pub submitter_config: Option<SubmitterConfig>,
    /// The pod of the submitter.
    #[schemars(with = "Option<PodTemplateShape>")]
    pub submitter_pod_template: Option<Value>,
    /// Whether the cluster is removed, and the job with it.
    pub suspend: bool,
    /// Seconds from the end to the removal.
    #[schemars(extend("x-default" = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
}

/// The submitter of a RayJob.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SubmitterConfig {
    /// How many failed submitter pods are repeated.
    pub backoff_limit: Option<i32>,
}

/// What is removed after the end: by the two old fields, or by rules.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DeletionStrategy {
    /// Rules.
    #[schemars(extend("minItems" = 1, "x-list" = "atomic"))]
    pub deletion_rules: Option<Vec<DeletionRule>>,
    /// After a failure.
    pub on_failure: Option<DeletionPolicy>,
    /// After a success.
    pub on_success: Option<DeletionPolicy>,
}

impl DeletionStrategy {
    /// The rules. An empty list, which the schema refuses, is none.
    pub(crate) fn rules(&self) -> Option<&[DeletionRule]> {
        self.deletion_rules.as_deref().filter(|rules| !rules.is_empty())
    }
}

/// What is removed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DeletionPolicy {
    /// What is removed.
    #[schemars(extend("enum" = ["DeleteCluster", "DeleteWorkers", "DeleteSelf", "DeleteNone"]))]
    pub policy: Option<String>,
}

/// What is removed, and when.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["condition", "policy"]))]
pub struct DeletionRule {
    /// When.
    #[schemars(extend("x-kubernetes-validations" = rules::DELETION_CONDITION))]
    pub condition: DeletionCondition,
    /// What is removed.
    #[schemars(extend("enum" = ["DeleteCluster", "DeleteWorkers", "DeleteSelf", "DeleteNone"]))]
    pub policy: String,
}

/// When a deletion rule applies.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DeletionCondition {
    /// The end of the deployment.
    #[schemars(extend("enum" = ["Failed"]))]
    pub job_deployment_status: Option<String>,
    /// The end of the job in Ray.
    #[schemars(extend("enum" = ["SUCCEEDED", "FAILED"]))]
    pub job_status: Option<String>,
    /// Seconds from the end to the removal.
    #[schemars(extend("minimum" = 0, "x-default" = 0))]
    pub ttl_seconds: i32,
}

/// The state of a RayJob.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RayJobStatus {
    /// The address of the head's dashboard.
    #[serde(rename = "dashboardURL", skip_serializing_if = "String::is_empty")]
    pub dashboard_url: String,
    /// When the job ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub end_time: Option<String>,
    /// Failed attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = 0))]
    pub failed: Option<i32>,
    /// The phase.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub job_deployment_status: String,
    /// The id of the job in Ray.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub job_id: String,
    /// The state of the job in Ray.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub job_status: String,
    /// Since when the head does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub job_status_check_failure_start_time: Option<String>,
    /// The human-readable message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The generation that this status speaks of.
    #[serde(skip_serializing_if = "is_unset")]
    pub observed_generation: i64,
    /// The cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ray_cluster_name: String,
    /// A copy of the cluster's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ray_cluster_status: Option<RayClusterStatus>,
    /// What Ray says of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ray_job_info: Option<RayJobInfo>,
    /// For programs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// When the first attempt began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub start_time: Option<String>,
    /// Successful attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = 0))]
    pub succeeded: Option<i32>,
}

/// What Ray says of a job.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RayJobInfo {
    /// When the job ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub end_time: Option<String>,
    /// When the job began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub start_time: Option<String>,
}
