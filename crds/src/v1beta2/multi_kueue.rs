//! Worker clusters, and the clusters of an admission check.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    kind::is_unset,
    kind::kind,
    meta::Condition,
    rules,
    schema::{ConditionShape, Text},
};

kind! {
    /// A worker cluster.
    MultiKueueCluster, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta2" / "multikueueclusters" {
        /// What is wanted.
        #[serde(default)]
        spec: MultiKueueClusterSpec,
        /// What is observed.
        #[serde(default)]
        status: MultiKueueClusterStatus,
    }
}

kind! {
    /// A set of worker clusters.
    MultiKueueConfig, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta2" / "multikueueconfigs" {
        /// What is wanted.
        #[serde(default)]
        spec: MultiKueueConfigSpec,
    }
}

/// How a worker cluster is reached.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["clusterSource"]))]
pub struct MultiKueueClusterSpec {
    /// How the cluster is reached.
    #[serde(default, skip_serializing_if = "is_unset")]
    #[schemars(extend("x-kubernetes-validations" = rules::CLUSTER_SOURCE))]
    pub cluster_source: ClusterSource,
}

/// How the worker cluster is reached: exactly one of the two.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSource {
    /// The ClusterProfile with the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_profile_ref: Option<ClusterProfileReference>,
    /// The kubeconfig with the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfig>,
}

/// Where the kubeconfig of a worker is kept.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["location"]))]
pub struct KubeConfig {
    /// Name of the Secret, or path of the file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Text<1, 256>")]
    pub location: String,
    /// Secret or Path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Secret", "Path"], "x-default" = "Secret"))]
    pub location_type: String,
}

/// A ClusterProfile in the manager's namespace.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct ClusterProfileReference {
    /// Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Text<1, 256>")]
    pub name: String,
}

/// Observed state of a worker cluster.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MultiKueueClusterStatus {
    /// Conditions, one of a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ConditionShape>", extend("maxItems" = 16, "x-list" = "map type"))]
    pub conditions: Vec<Condition>,
}

/// The worker clusters that a check dispatches to.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["clusters"]))]
pub struct MultiKueueConfigSpec {
    /// Names of MultiKueueClusters, in order of preference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Text<0, 256>>", extend("minItems" = 1, "maxItems" = 20, "x-list" = "atomic", "x-kubernetes-validations" = rules::UNIQUE_CLUSTERS))]
    pub clusters: Vec<String>,
    /// Whether the manager's quota follows that of the workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Manual", "Automated"]))]
    pub quota_management: Option<String>,
}
