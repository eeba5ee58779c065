//! ClusterQueue: quota, and the rules of admission.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::resource_group::ResourceGroup;
use crate::v1beta2::{ClusterQueuePreemption, FairSharing};
use crate::{
    meta::LabelSelector,
    rules,
    schema::{DnsSubdomain, Selector, Text},
};

/// Quota, and the rules by which Workloads get it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::CLUSTER_QUEUE_V1BETA1))]
pub struct ClusterQueueSpec {
    /// Checks for every flavor. Excludes `admissionChecksStrategy`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Text<0, 316>>")]
    pub admission_checks: Vec<String>,
    /// The checks, each with the flavors it applies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission_checks_strategy: Option<AdmissionChecksStrategy>,
    /// How Workloads are ordered over LocalQueues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission_scope: Option<AdmissionScope>,
    /// The Cohort that this queue borrows from and lends to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsSubdomain")]
    pub cohort: String,
    /// Weight under fair sharing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharing>,
    /// When to try the next flavor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = {}, "x-kubernetes-validations" = rules::FUNGIBILITY))]
    pub flavor_fungibility: Option<FlavorFungibility>,
    /// Namespaces that may use the queue: unset for none, empty for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Selector")]
    pub namespace_selector: Option<LabelSelector>,
    /// Workloads that those of this queue may preempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = {}, "x-kubernetes-validations" = rules::PREEMPTION))]
    pub preemption: Option<ClusterQueuePreemption>,
    /// Whether a head that does not fit blocks the following Workloads.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["StrictFIFO", "BestEffortFIFO"], "x-default" = "BestEffortFIFO"))]
    pub queueing_strategy: String,
    /// Quota by group of resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 16, "x-list" = "atomic"))]
    pub resource_groups: Vec<ResourceGroup>,
    /// Whether admission is stopped, and whether admitted Workloads are evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["None", "Hold", "HoldAndDrain"], "x-default" = "None"))]
    pub stop_policy: Option<String>,
}

/// When the next flavor is tried before borrowing or preempting in this one.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlavorFungibility {
    /// What to prefer among flavors that all need borrowing or preemption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["BorrowingOverPreemption", "PreemptionOverBorrowing"]))]
    pub preference: Option<String>,
    /// What to do where the Workload fits only by borrowing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["MayStopSearch", "TryNextFlavor", "Borrow"], "x-default" = "MayStopSearch"))]
    pub when_can_borrow: String,
    /// What to do where the Workload fits only by preempting.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["MayStopSearch", "TryNextFlavor", "Preempt"], "x-default" = "TryNextFlavor"))]
    pub when_can_preempt: String,
}

/// How Workloads of one ClusterQueue are ordered over its LocalQueues.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["admissionMode"]))]
pub struct AdmissionScope {
    /// The mode of ordering.
    #[serde(default)]
    pub admission_mode: String,
}

/// The checks that Workloads of a ClusterQueue must pass.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionChecksStrategy {
    /// The checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub admission_checks: Vec<AdmissionCheckStrategyRule>,
}

/// One check, and the flavors it applies to.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct AdmissionCheckStrategyRule {
    /// Name of the AdmissionCheck.
    #[serde(default)]
    #[schemars(with = "Text<0, 316>")]
    pub name: String,
    /// Flavors that need the check; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<DnsSubdomain>")]
    pub on_flavors: Vec<String>,
}
