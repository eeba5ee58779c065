//! Topology: the levels of node domains.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{rules, schema::LabelKey};

/// How the nodes of a cluster are grouped.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["levels"]))]
pub struct TopologySpec {
    /// Levels from the broadest to the narrowest.
    #[serde(default)]
    #[schemars(extend("minItems" = 1, "maxItems" = 16, "x-list" = "atomic", "x-kubernetes-validations" = rules::LEVELS_V1BETA1))]
    pub levels: Vec<TopologyLevel>,
}

/// One level of a topology.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["nodeLabel"]))]
pub struct TopologyLevel {
    /// Node label key of the level.
    #[serde(default)]
    #[schemars(with = "LabelKey", extend("minLength" = 1, "maxLength" = 316))]
    pub node_label: String,
}
