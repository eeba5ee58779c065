//! Cohort: a node of the quota tree.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{fair_sharing::FairSharingStatus, resource_group::ResourceGroup};
use crate::schema::DnsSubdomain;
use crate::v1beta2::FairSharing;

/// A node of the quota tree.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CohortSpec {
    /// Weight under fair sharing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharing>,
    /// The parent in the quota tree; a root when unset.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsSubdomain")]
    pub parent_name: String,
    /// Quota by group of resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 16, "x-list" = "atomic"))]
    pub resource_groups: Vec<ResourceGroup>,
}

/// Observed state of a Cohort.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CohortStatus {
    /// Current share under fair sharing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharingStatus>,
}
