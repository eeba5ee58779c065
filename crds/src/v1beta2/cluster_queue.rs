//! ClusterQueue: quota, and the rules of admission.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    cluster_queue_status::ClusterQueueStatus, fair_sharing::FairSharing,
    resource_group::ResourceGroup,
};
use crate::{
    kind::is_unset,
    kind::kind,
    meta::LabelSelector,
    rules,
    schema::{DnsSubdomain, Selector, Text},
};

kind! {
    /// A pool of quota that Workloads queue for.
    ClusterQueue, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta2" / "clusterqueues" {
        /// What is wanted.
        #[serde(default)]
        spec: ClusterQueueSpec,
        /// What is observed.
        #[serde(default)]
        status: ClusterQueueStatus,
    }
}

/// Quota, and the rules by which Workloads get it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::CLUSTER_QUEUE))]
pub struct ClusterQueueSpec {
    /// The checks, each with the flavors it applies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission_checks_strategy: Option<AdmissionChecksStrategy>,
    /// How Workloads are ordered over LocalQueues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission_scope: Option<AdmissionScope>,
    /// The Cohort that this queue borrows from and lends to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsSubdomain")]
    pub cohort_name: String,
    /// Lets several flavors be tried at once. Cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrent_admission_policy: Option<ConcurrentAdmissionPolicy>,
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

/// Which Workloads may be preempted for one of this queue.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterQueuePreemption {
    /// Preemption in the cohort while borrowing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = {}))]
    pub borrow_within_cohort: Option<BorrowWithinCohort>,
    /// Workloads in the cohort that one within its quota may preempt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Never", "LowerPriority", "Any"], "x-default" = "Never"))]
    pub reclaim_within_cohort: String,
    /// Workloads in its own queue that a Workload may preempt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Never", "LowerPriority", "LowerOrNewerEqualPriority"], "x-default" = "Never"))]
    pub within_cluster_queue: String,
}

/// Whether preemption in the cohort may happen for a Workload that borrows.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BorrowWithinCohort {
    /// Highest priority that may be preempted while borrowing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_priority_threshold: Option<i32>,
    /// Workloads in the cohort that a borrowing one may preempt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Never", "LowerPriority"], "x-default" = "Never"))]
    pub policy: String,
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
    #[schemars(extend("enum" = ["MayStopSearch", "TryNextFlavor"], "x-default" = "MayStopSearch"))]
    pub when_can_borrow: String,
    /// What to do where the Workload fits only by preempting.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["MayStopSearch", "TryNextFlavor"], "x-default" = "TryNextFlavor"))]
    pub when_can_preempt: String,
}

/// How Workloads of one ClusterQueue are ordered over its LocalQueues.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["admissionMode"]))]
pub struct AdmissionScope {
    /// The mode of ordering.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"]))]
    pub admission_mode: String,
}

/// The checks that Workloads of a ClusterQueue must pass.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["admissionChecks"]))]
pub struct AdmissionChecksStrategy {
    /// The checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1, "maxItems" = 64, "x-list" = "map name"))]
    pub admission_checks: Vec<AdmissionCheckStrategyRule>,
}

/// One check, and the flavors it applies to.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct AdmissionCheckStrategyRule {
    /// Name of the AdmissionCheck.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Text<1, 316>")]
    pub name: String,
    /// Flavors that need the check; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<DnsSubdomain>", extend("maxItems" = 64, "x-list" = "set"))]
    pub on_flavors: Vec<String>,
}

/// Several flavors tried at once, each by a variant of the Workload.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["migration"]))]
pub struct ConcurrentAdmissionPolicy {
    /// What happens once a variant runs.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub migration: ConcurrentAdmissionMigration,
}

/// What happens to a Workload once one of its variants runs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["mode"]))]
pub struct ConcurrentAdmissionMigration {
    /// Bounds of the migration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<MigrationConstraints>,
    /// Whether to move on to a preferred flavor later.
    #[serde(default)]
    #[schemars(with = "Text<0, 253>", extend("enum" = ["TryPreferredFlavors", "RetainFirstAdmission"]))]
    pub mode: String,
}

/// Bounds of a migration.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrationConstraints {
    /// The least preferred flavor that may be tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DnsSubdomain")]
    pub last_acceptable_flavor_name: Option<String>,
}
