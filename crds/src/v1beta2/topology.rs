//! Topology: the levels of node domains.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{kind::kind, rules, schema::LabelKey};

kind! {
    /// How the nodes of a cluster are grouped.
    Topology, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta2" / "topologies" {
        /// What is wanted.
        #[serde(default)]
        spec: TopologySpec,
    }
}

/// How the nodes of a cluster are grouped.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["levels"]))]
pub struct TopologySpec {
    /// Levels from the broadest to the narrowest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1, "maxItems" = 16, "x-list" = "atomic", "x-kubernetes-validations" = rules::LEVELS))]
    pub levels: Vec<TopologyLevel>,
}

/// One level of a topology.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["nodeLabel"]))]
pub struct TopologyLevel {
    /// Node label key of the level.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "LabelKey", extend("minLength" = 1, "maxLength" = 316))]
    pub node_label: String,
}
