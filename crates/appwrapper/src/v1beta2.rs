//! `workload.codeflare.dev/v1beta2`.

use std::collections::BTreeMap;

use crds::{
    kind::is_unset,
    meta::{Condition, Toleration},
    schema::{ConditionShape, TolerationShape},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an AppWrapper contains.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["components"]))]
pub struct AppWrapperSpec {
    /// The objects, in the order in which they are made.
    pub components: Vec<AppWrapperComponent>,
    /// The controller of this object; the built-in one if unset.
    pub managed_by: Option<String>,
    /// Whether the objects are removed.
    pub suspend: bool,
}

/// One object of an AppWrapper.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["template"]))]
pub struct AppWrapperComponent {
    /// For users.
    pub annotations: BTreeMap<String, String>,
    /// What admission adds to the pod sets, in their order.
    pub pod_set_infos: Vec<AppWrapperPodSetInfo>,
    /// The pod sets of the object. Those of known kinds are inferred if there are none.
    pub pod_sets: Vec<AppWrapperPodSet>,
    /// The object.
    #[schemars(with = "EmbeddedObject")]
    pub template: Value,
}

/// Pods of one template within an object.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["path"]))]
pub struct AppWrapperPodSet {
    /// For topologies.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Where the pod template is: `template.spec.template` and the like.
    pub path: String,
    /// How many pods; 1 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

/// What admission adds to a pod set.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppWrapperPodSetInfo {
    /// Annotations of the pods.
    pub annotations: BTreeMap<String, String>,
    /// Labels of the pods.
    pub labels: BTreeMap<String, String>,
    /// Labels that a node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Gates that keep the pods from being scheduled.
    pub scheduling_gates: Vec<PodSchedulingGate>,
    /// Tolerations.
    #[schemars(with = "Vec<TolerationShape>")]
    pub tolerations: Vec<Toleration>,
}

/// A gate that keeps a pod from being scheduled.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["name"]))]
pub struct PodSchedulingGate {
    /// The name.
    pub name: String,
}

/// The state of an AppWrapper.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppWrapperStatus {
    /// The state of each object, in the order of the spec.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub component_status: Vec<AppWrapperComponentStatus>,
    /// Conditions by type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ConditionShape>", extend("x-list" = "map type"))]
    pub conditions: Vec<Condition>,
    /// The phase.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Retries that were used.
    #[serde(skip_serializing_if = "is_unset")]
    pub resetting_count: i32,
}

/// The state of one object.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["apiVersion", "kind", "name", "podSets"]))]
pub struct AppWrapperComponentStatus {
    /// The `apiVersion` of the object.
    pub api_version: String,
    /// Conditions by type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ConditionShape>", extend("x-list" = "map type"))]
    pub conditions: Vec<Condition>,
    /// The kind of the object.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The pod sets, declared or inferred.
    pub pod_sets: Vec<AppWrapperPodSet>,
}

/// A whole object of any kind.
pub struct EmbeddedObject;

impl JsonSchema for EmbeddedObject {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EmbeddedObject".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
        })
    }
}
