//! The pod template of a pod set: fields that decisions read are typed, the others are kept unchanged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{exact, meta::Toleration, quantity::Quantity, shared_maps};
pub use crate::{
    label_map::LabelMap,
    shared::Shared,
    shared_fields::{NamedItem, SharedFields},
    shared_maps::SharedNames,
    shared_parts::{SharedPodMetadata, SharedResources},
    shared_pod_spec::SharedPodSpec,
};

/// A pod template.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct PodTemplate {
    /// Labels and annotations of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<SharedPodMetadata>,
    /// The pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<SharedPodSpec>,
}

/// The part of a pod's metadata that a template carries.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct PodMetadata {
    /// Annotations.
    #[serde(default, skip_serializing_if = "shared_maps::is_empty")]
    pub annotations: SharedNames,
    /// Labels.
    #[serde(default, skip_serializing_if = "LabelMap::is_empty")]
    pub labels: LabelMap,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The fields of a pod spec that determine scheduling and requests.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// Containers.
    #[serde(default, deserialize_with = "exact::list", skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Container>,
    /// Containers that run before the others, or beside them.
    #[serde(default, deserialize_with = "exact::list", skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Container>,
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations.
    #[serde(default, deserialize_with = "exact::list", skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// What the runtime itself costs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overhead: BTreeMap<String, Quantity>,
    /// Requests and limits of the pod as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<SharedResources>,
    /// The priority class.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub priority_class_name: String,
    /// The runtime class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_class_name: Option<String>,
    /// Volumes.
    #[serde(
        default,
        deserialize_with = "exact::optional_list",
        skip_serializing_if = "Option::is_none"
    )]
    pub volumes: Option<Vec<NamedItem>>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: SharedFields,
}

/// The fields of a container that determine requests.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// Name, unique in the pod.
    #[serde(default)]
    pub name: String,
    /// Requests and limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<SharedResources>,
    /// `Always` makes an init container a sidecar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<String>,
    /// Mounts of volumes.
    #[serde(
        default,
        deserialize_with = "exact::optional_list",
        skip_serializing_if = "Option::is_none"
    )]
    pub volume_mounts: Option<Vec<NamedItem>>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: SharedFields,
}

/// Requests and limits.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ResourceRequirements {
    /// The most that may be used.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, Quantity>,
    /// What must be there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, Quantity>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}
