//! Fair sharing: weights and shares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::v1beta2::AdmissionFairSharingStatus;

/// The share that fair sharing compares.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["weightedShare"]))]
pub struct FairSharingStatus {
    /// Usage over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission_fair_sharing_status: Option<AdmissionFairSharingStatus>,
    /// Share divided by weight, rounded up.
    #[serde(default)]
    pub weighted_share: i64,
}
