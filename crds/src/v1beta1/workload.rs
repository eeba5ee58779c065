//! Workload: the pod sets of a job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    pod::PodTemplate,
    rules,
    schema::{DnsLabel, DnsSubdomain, PodTemplateShape},
};

/// The topology constraints of a pod set.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSetTopologyRequest {
    /// Pod label that holds the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_index_label: Option<String>,
    /// Pod sets of one name share flavors and domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_set_group_name: Option<String>,
    /// Level that holds a whole slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_set_slice_required_topology: Option<String>,
    /// Pods of a slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1))]
    pub pod_set_slice_size: Option<i32>,
    /// Level that should hold all pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<String>,
    /// Level that must hold all pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<String>,
    /// Number of groups of equal pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_group_count: Option<i32>,
    /// Pod label that holds the index of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_group_index_label: Option<String>,
    /// Any node will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconstrained: Option<bool>,
}

/// Equal pods of a Workload.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["count", "template"], "x-kubernetes-validations" = rules::POD_SET))]
pub struct PodSet {
    /// Number of pods.
    #[serde(default)]
    #[schemars(extend("minimum" = 0, "x-default" = 1))]
    pub count: i32,
    /// The minimum count; enables partial admission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1))]
    pub min_count: Option<i32>,
    /// Name, unique in the Workload.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsLabel", extend("x-default" = "main"))]
    pub name: String,
    /// The pod.
    #[serde(default)]
    #[schemars(with = "PodTemplateShape")]
    pub template: PodTemplate,
    /// The topology constraints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_request: Option<PodSetTopologyRequest>,
}

/// What is to be run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["podSets"], "x-kubernetes-validations" = rules::WORKLOAD_SPEC_V1BETA1))]
pub struct WorkloadSpec {
    /// Whether the Workload may run; switching it off evicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = true))]
    pub active: Option<bool>,
    /// Longest run time in seconds, over all attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1))]
    pub maximum_execution_time_seconds: Option<i32>,
    /// The pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1, "maxItems" = 18, "x-list" = "map name"))]
    pub pod_sets: Vec<PodSet>,
    /// The priority; higher values are first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Name of the priority class.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsSubdomain")]
    pub priority_class_name: String,
    /// Kind of the priority class.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass", ""], "x-default" = ""))]
    pub priority_class_source: String,
    /// The LocalQueue.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsSubdomain")]
    pub queue_name: String,
}
