//! ResourceFlavor: a set of nodes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    kind::kind,
    meta::{Taint, Toleration},
    rules,
    schema::{DnsSubdomain, TaintShape, TolerationShape},
};

kind! {
    /// A kind of nodes that quota is counted in.
    ResourceFlavor, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta2" / "resourceflavors" {
        /// What is wanted.
        #[serde(default)]
        spec: ResourceFlavorSpec,
    }
}

/// The nodes of a flavor.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::RESOURCE_FLAVOR))]
pub struct ResourceFlavorSpec {
    /// Labels of the nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8, "x-kubernetes-map-type" = "atomic"))]
    pub node_labels: BTreeMap<String, String>,
    /// Taints of the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<TaintShape>", extend("maxItems" = 8, "x-list" = "atomic", "x-kubernetes-validations" = rules::TAINTS))]
    pub node_taints: Vec<Taint>,
    /// Tolerations added to the pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<TolerationShape>", extend("maxItems" = 8, "x-list" = "atomic", "x-kubernetes-validations" = rules::TOLERATIONS))]
    pub tolerations: Vec<Toleration>,
    /// The Topology of the nodes. Cannot be changed once set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DnsSubdomain")]
    pub topology_name: Option<String>,
}
