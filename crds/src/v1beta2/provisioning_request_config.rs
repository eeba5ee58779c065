//! How ProvisioningRequests of an admission check are created.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    kind::kind,
    schema::{DnsSubdomain, LabelKey, Text},
};

kind! {
    /// How ProvisioningRequests of an admission check are created.
    ProvisioningRequestConfig, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta2" / "provisioningrequestconfigs" {
        /// What is wanted.
        #[serde(default)]
        spec: ProvisioningRequestConfigSpec,
    }
}

/// How ProvisioningRequests of an admission check are created.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["provisioningClassName"]))]
pub struct ProvisioningRequestConfigSpec {
    /// Resources that need a ProvisioningRequest; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 100, "x-list" = "set"))]
    pub managed_resources: Vec<String>,
    /// Parameters handed to the provisioning class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, Text<0, 255>>", extend("maxProperties" = 100))]
    pub parameters: BTreeMap<String, String>,
    /// Which pod sets share one entry of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["IdenticalPodTemplates", "IdenticalWorkloadSchedulingRequirements"]))]
    pub pod_set_merge_policy: Option<String>,
    /// What is added to the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_set_updates: Option<ProvisioningRequestPodSetUpdates>,
    /// The class of the ProvisioningRequest.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsSubdomain", extend("minLength" = 1))]
    pub provisioning_class_name: String,
    /// What happens after a failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = {"backoffBaseSeconds":60,"backoffLimitCount":3,"backoffMaxSeconds":1800}))]
    pub retry_strategy: Option<ProvisioningRequestRetryStrategy>,
}

/// What a provisioned request adds to the pods.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisioningRequestPodSetUpdates {
    /// Node selectors taken from the class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 8, "x-list" = "map key"))]
    pub node_selector: Vec<ProvisioningRequestPodSetUpdatesNodeSelector>,
}

/// A node selector taken from the details of the provisioning class.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["key", "valueFromProvisioningClassDetail"]))]
pub struct ProvisioningRequestPodSetUpdatesNodeSelector {
    /// Key of the node selector.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "LabelKey", extend("minLength" = 1, "maxLength" = 317))]
    pub key: String,
    /// The detail that holds the value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Text<1, 32768>")]
    pub value_from_provisioning_class_detail: String,
}

/// Exponential backoff between attempts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisioningRequestRetryStrategy {
    /// Seconds before the second attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = 60))]
    pub backoff_base_seconds: Option<i32>,
    /// Attempts after the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = 3))]
    pub backoff_limit_count: Option<i32>,
    /// Longest wait in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = 1800))]
    pub backoff_max_seconds: Option<i32>,
}
