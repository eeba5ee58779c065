//! DispatchPolicy: how the manager selects a worker, and what it does when one is lost.
//!
//! A MultiKueueConfig names its policy in the annotation `sluice.dev/policy`. The defaults are: strategy Spread, a worker is
//! lost after 15 minutes, its Workloads keep running, and no queued Workload moves. Running Workloads are never moved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    kind::kind,
    meta::LabelSelector,
    quantity::Quantity,
    rules,
    schema::{Selector, Text},
    v1alpha1::JobKind,
};

kind! {
    /// How the manager chooses among workers.
    DispatchPolicy, ClusterResourceScope, "sluice.dev" / "v1alpha1" / "dispatchpolicies" {
        /// The policy.
        #[serde(default)]
        spec: DispatchPolicySpec,
    }
}

/// How the manager selects a worker, and what it does when one is lost.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DispatchPolicySpec {
    /// The order of clusters with enough capacity.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Spread", "BinPack", "Ordered"], "x-default" = "Spread"))]
    pub strategy: String,
    /// Clusters beyond those that the MultiKueueConfig lists, by label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Selector")]
    pub cluster_selector: Option<LabelSelector>,
    /// What is special about single clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 500, "x-list" = "map name"))]
    pub clusters: Vec<ClusterPolicy>,
    /// What happens to work on a cluster that cannot be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disconnection: Option<Disconnection>,
    /// Whether Workloads that wait for the queues of workers move to a worker that gets room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebalance: Option<Rebalance>,
    /// When capacity is reserved for the oldest blocked Workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<GangReservation>,
    /// Namespaces whose Workloads may be dispatched; all if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<NamespaceList>,
    /// Kinds of jobs that may be dispatched; all when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<KindList>,
}

/// What is special about one cluster.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct ClusterPolicy {
    /// Name of the MultiKueueCluster.
    #[serde(default)]
    #[schemars(with = "Text<1, 253>")]
    pub name: String,
    /// Multiplies the score of the cluster; 1 if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0, "maximum" = 1000))]
    pub weight: Option<i32>,
    /// Receives no new Workloads, and its own are withdrawn at the deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
    /// Relative cost of a unit of work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_unit: Option<Quantity>,
}

/// A drain.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Drain {
    /// When running Workloads are withdrawn; never if unset.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("format" = "date-time"))]
    pub deadline: String,
}

/// What happens to work on a cluster that cannot be reached. Durations are like `15m` or `90s`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::DISCONNECTION))]
pub struct Disconnection {
    /// How long the cluster may be silent before it counts as lost.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("format" = "duration"))]
    pub lost_after: String,
    /// Whether lost work may run twice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["KeepRunning", "ExactlyOnce"], "x-default" = "KeepRunning"))]
    pub execution: String,
    /// What proves that lost work has stopped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Confirmed", "Timed"]))]
    pub fencing: String,
    /// How long an agent may run ExactlyOnce work without hearing from the manager.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("format" = "duration"))]
    pub lease_duration: String,
}

/// Whether Workloads that wait for the queues of workers move to a worker that gets room.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rebalance {
    /// Whether they do.
    #[serde(default)]
    pub enabled: bool,
    /// The least share of its free capacity that the worker has left after a move, in percent; 0 if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0, "maximum" = 100))]
    pub min_gain: Option<i32>,
    /// How long a Workload stays where it is after its nomination and after a move, like `90s`; 30s if unset.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("format" = "duration", "pattern" = NOT_NEGATIVE))]
    pub cooldown: String,
    /// Moves of a Workload while it keeps its quota; 1 if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1))]
    pub max_moves: Option<i32>,
}

/// A duration in Go's notation without a sign.
const NOT_NEGATIVE: &str = "^(0|([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h))+)$";

/// When capacity is reserved for the oldest blocked Workload.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GangReservation {
    /// How long a Workload is blocked before capacity is reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    pub after_seconds: Option<i32>,
    /// The most of a cluster that may be kept free, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0, "maximum" = 100))]
    pub max_share: Option<i32>,
}

/// Namespaces.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceList {
    /// The namespaces that may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Text<1, 63>>", extend("maxItems" = 1000, "x-list" = "set"))]
    pub allow: Vec<String>,
}

/// Kinds of jobs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KindList {
    /// The kinds that may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 64, "x-list" = "atomic"))]
    pub allow: Vec<JobKind>,
}
