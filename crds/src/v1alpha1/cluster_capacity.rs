//! ClusterCapacity: the free capacity of a worker cluster.
//!
//! The manager writes the spec (the node labels that it needs), the agent writes the status. Amounts are rounded down, so they
//! never exceed what is free.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    kind::kind,
    meta::Taint,
    quantity::Quantity,
    schema::{LabelKey, TaintShape, Timestamp},
};

/// The name of the one object on a worker.
pub const LOCAL: &str = "local";

kind! {
    /// The free capacity of a worker cluster.
    ClusterCapacity, ClusterResourceScope, "sluice.dev" / "v1alpha1" / "clustercapacities" {
        /// The manager's request.
        #[serde(default)]
        spec: ClusterCapacitySpec,
        /// What the agent reports.
        #[serde(default)]
        status: ClusterCapacityStatus,
    }
}

/// The manager's request.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCapacitySpec {
    /// Node label keys that the manager's flavors and topologies use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<LabelKey>", extend("maxItems" = 64, "x-list" = "set"))]
    pub label_keys: Vec<String>,
    /// The managers that use the worker. Each writes its own entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 16, "x-list" = "map origin"))]
    pub managers: Vec<WorkerManager>,
}

/// A manager that uses a worker.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["origin"]))]
pub struct WorkerManager {
    /// Its origin, which no other manager of the worker has.
    #[serde(default)]
    #[schemars(extend("minLength" = 1, "maxLength" = 63))]
    pub origin: String,
    /// The uid of the namespace kube-system of its cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("maxLength" = 64))]
    pub cluster: String,
    /// Node label keys that its flavors and topologies use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<LabelKey>", extend("maxItems" = 64, "x-list" = "set"))]
    pub label_keys: Vec<String>,
}

impl ClusterCapacitySpec {
    /// The node label keys that any manager uses, sorted.
    #[must_use]
    pub fn all_label_keys(&self) -> Vec<String> {
        let of_managers = self.managers.iter().flat_map(|manager| &manager.label_keys);
        let all: BTreeSet<&String> = self.label_keys.iter().chain(of_managers).collect();
        all.into_iter().cloned().collect()
    }
}

/// What the agent reports.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCapacityStatus {
    /// Version of the dispatch protocol.
    #[serde(default)]
    #[schemars(extend("minimum" = 0))]
    pub protocol: i32,
    /// How the worker admits clones.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Thin", "Quota"]))]
    pub mode: String,
    /// resourceVersion of the newest Workload in the report.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("maxLength" = 64))]
    pub as_of: String,
    /// When the agent last wrote the report: at every change, and every 10 seconds.
    #[serde(
        default,
        deserialize_with = "crate::stored_time::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Timestamp")]
    pub reported_at: Option<Time>,
    /// Kinds of jobs that can run now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 64, "x-list" = "atomic"))]
    pub kinds: Vec<JobKind>,
    /// Equal nodes, and the free resources of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 64, "x-list" = "atomic"))]
    pub node_classes: Vec<NodeClass>,
    /// Nodes that an autoscaler could still add.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 64, "x-list" = "atomic"))]
    pub elastic: Vec<ElasticCapacity>,
    /// Quota by flavor, in mode Quota.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 1024, "x-list" = "atomic"))]
    pub flavors: Vec<FlavorCapacity>,
    /// Workloads that wait.
    #[serde(default)]
    pub pending: WorkloadCounts,
    /// Workloads that run.
    #[serde(default)]
    pub running: WorkloadCounts,
}

/// A kind of job.
#[derive(
    Clone, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["kind", "version"]))]
pub struct JobKind {
    /// Group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Version.
    #[serde(default)]
    pub version: String,
    /// Kind.
    #[serde(default)]
    pub kind: String,
}

/// Nodes with the same labels, taints and free resources.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["count"]))]
pub struct NodeClass {
    /// Number of nodes.
    #[serde(default)]
    #[schemars(extend("minimum" = 1))]
    pub count: i32,
    /// The labels that the manager requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Taints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<TaintShape>", extend("maxItems" = 64, "x-list" = "atomic"))]
    pub taints: Vec<Taint>,
    /// What is free on each node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub free: BTreeMap<String, Quantity>,
    /// What is free on each node when nothing dispatched runs there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub size: BTreeMap<String, Quantity>,
}

/// Nodes that could be added.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["maxMore", "nodeShape"]))]
pub struct ElasticCapacity {
    /// The properties of these nodes.
    #[serde(default)]
    pub node_shape: NodeShape,
    /// How many more there can be.
    #[serde(default)]
    #[schemars(extend("minimum" = 0))]
    pub max_more: i32,
}

/// An empty node.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeShape {
    /// The labels that the manager requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Taints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<TaintShape>", extend("maxItems" = 64, "x-list" = "atomic"))]
    pub taints: Vec<Taint>,
    /// What pods can use of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, Quantity>,
}

/// Quota of one resource in one flavor of one ClusterQueue.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["clusterQueue", "flavor", "nominal", "resource"]))]
pub struct FlavorCapacity {
    /// The ClusterQueue on the worker.
    #[serde(default)]
    pub cluster_queue: String,
    /// The flavor.
    #[serde(default)]
    pub flavor: String,
    /// The resource.
    #[serde(default)]
    pub resource: String,
    /// What belongs to the queue.
    #[serde(default)]
    pub nominal: Quantity,
    /// What is used.
    #[serde(default)]
    pub used: Quantity,
    /// What could still be borrowed.
    #[serde(default)]
    pub borrowable: Quantity,
}

/// Workloads by origin.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct WorkloadCounts {
    /// Of this manager.
    #[serde(default)]
    #[schemars(extend("minimum" = 0))]
    pub own: i32,
    /// All other usage.
    #[serde(default)]
    #[schemars(extend("minimum" = 0))]
    pub others: i32,
}
