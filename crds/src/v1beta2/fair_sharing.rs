//! Fair sharing: weights and shares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;

/// The weight of a queue or cohort among its siblings.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FairSharing {
    /// Relative weight; 0 never wins over others. 1 when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = 1))]
    pub weight: Option<Quantity>,
}

/// The share that fair sharing compares.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["weightedShare"]))]
pub struct FairSharingStatus {
    /// Share divided by weight, rounded up.
    #[serde(default)]
    pub weighted_share: i64,
}
