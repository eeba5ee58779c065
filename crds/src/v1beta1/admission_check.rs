//! AdmissionCheck: a condition for admission beyond quota.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    meta::Condition,
    rules,
    schema::{ConditionShape, DnsLabel, DnsSubdomain, KindName},
};

/// The controller of a check, and its parameters.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["controllerName"]))]
pub struct AdmissionCheckSpec {
    /// The controller that runs the check. Cannot be changed.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-validations" = rules::IMMUTABLE))]
    pub controller_name: String,
    /// Parameters of the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<AdmissionCheckParametersReference>,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = 15))]
    pub retry_delay_minutes: Option<i64>,
}

/// The object that configures an AdmissionCheck.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["apiGroup", "kind", "name"]))]
pub struct AdmissionCheckParametersReference {
    /// Group of the object.
    #[serde(default)]
    #[schemars(with = "DnsSubdomain")]
    pub api_group: String,
    /// Kind of the object.
    #[serde(default)]
    #[schemars(with = "KindName")]
    pub kind: String,
    /// Name.
    #[serde(default)]
    #[schemars(with = "DnsLabel")]
    pub name: String,
}

/// Observed state of an AdmissionCheck.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheckStatus {
    /// Conditions, one of a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ConditionShape>", extend("x-list" = "map type"))]
    pub conditions: Vec<Condition>,
}
