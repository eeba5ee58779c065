//! AdmissionCheck: a condition for admission beyond quota.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    kind::kind,
    meta::Condition,
    rules,
    schema::{ConditionShape, DnsLabel, DnsSubdomain, KindName, Text},
};

kind! {
    /// A check that a Workload must pass after quota is reserved.
    AdmissionCheck, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta2" / "admissionchecks" {
        /// What is wanted.
        #[serde(default)]
        spec: AdmissionCheckSpec,
        /// What is observed.
        #[serde(default)]
        status: AdmissionCheckStatus,
    }
}

/// The controller of a check, and its parameters.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["controllerName"]))]
pub struct AdmissionCheckSpec {
    /// The controller that runs the check. Cannot be changed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Text<1, 253>", extend("x-kubernetes-validations" = rules::IMMUTABLE))]
    pub controller_name: String,
    /// Parameters of the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<AdmissionCheckParametersReference>,
}

/// The object that configures an AdmissionCheck.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["apiGroup", "kind", "name"]))]
pub struct AdmissionCheckParametersReference {
    /// Group of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsSubdomain", extend("minLength" = 1))]
    pub api_group: String,
    /// Kind of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "KindName", extend("minLength" = 1))]
    pub kind: String,
    /// Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsLabel", extend("minLength" = 1))]
    pub name: String,
}

/// Observed state of an AdmissionCheck.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheckStatus {
    /// Conditions, one of a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ConditionShape>", extend("maxItems" = 16, "x-list" = "map type"))]
    pub conditions: Vec<Condition>,
}
