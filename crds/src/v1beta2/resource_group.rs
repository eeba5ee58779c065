//! Quota of a ClusterQueue or Cohort: resources, flavors, amounts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{quantity::Quantity, rules, schema::DnsSubdomain};

/// Resources that are taken from the same flavors.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["coveredResources", "flavors"], "x-kubernetes-validations" = rules::RESOURCE_GROUP))]
pub struct ResourceGroup {
    /// The resources of the group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1, "maxItems" = 64, "x-list" = "atomic"))]
    pub covered_resources: Vec<String>,
    /// The flavors of the group, in the order they are tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1, "maxItems" = 64, "x-list" = "map name"))]
    pub flavors: Vec<FlavorQuotas>,
}

/// The quota of one flavor, by resource.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "resources"]))]
pub struct FlavorQuotas {
    /// Name of the ResourceFlavor.
    #[serde(default)]
    #[schemars(with = "DnsSubdomain")]
    pub name: String,
    /// Quota by resource, in the order of `coveredResources`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1, "maxItems" = 64, "x-list" = "map name"))]
    pub resources: Vec<ResourceQuota>,
}

/// The quota of one resource in one flavor.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "nominalQuota"]))]
pub struct ResourceQuota {
    /// What may be borrowed from the cohort at most; unlimited when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub borrowing_limit: Option<Quantity>,
    /// What may be lent to the cohort at most; everything when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lending_limit: Option<Quantity>,
    /// Name of the resource.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What belongs to this queue or cohort.
    #[serde(default)]
    pub nominal_quota: Quantity,
}
