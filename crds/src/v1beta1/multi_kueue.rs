//! Worker clusters, and the clusters of an admission check.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    meta::Condition,
    schema::{ConditionShape, Text},
};

/// How a worker cluster is reached.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["kubeConfig"]))]
pub struct MultiKueueClusterSpec {
    /// The ClusterProfile with the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_profile_ref: Option<ClusterProfileReference>,
    /// The kubeconfig with the connection.
    #[serde(default)]
    pub kube_config: KubeConfig,
}

/// Where the kubeconfig of a worker is kept.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["location", "locationType"]))]
pub struct KubeConfig {
    /// Name of the Secret, or path of the file.
    #[serde(default)]
    pub location: String,
    /// Secret or Path.
    #[serde(default)]
    #[schemars(extend("enum" = ["Secret", "Path"], "x-default" = "Secret"))]
    pub location_type: String,
}

/// A ClusterProfile in the manager's namespace.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct ClusterProfileReference {
    /// Name.
    #[serde(default)]
    #[schemars(with = "Text<1, 256>")]
    pub name: String,
}

/// Observed state of a worker cluster.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MultiKueueClusterStatus {
    /// Conditions, one of a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ConditionShape>", extend("x-list" = "map type"))]
    pub conditions: Vec<Condition>,
}

/// The worker clusters that a check dispatches to.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["clusters"]))]
pub struct MultiKueueConfigSpec {
    /// Names of MultiKueueClusters, in order of preference.
    #[serde(default)]
    #[schemars(extend("minItems" = 1, "maxItems" = 20, "x-list" = "set"))]
    pub clusters: Vec<String>,
}
