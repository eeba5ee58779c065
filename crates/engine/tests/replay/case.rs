//! The case format: Kubernetes objects as far as scheduling reads them, events, expectations.

use std::collections::BTreeMap;

use serde::Deserialize;

pub type Map = BTreeMap<String, String>;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    pub id: String,
    #[serde(default)]
    pub config: Config,
    #[serde(default)]
    pub namespaces: Vec<Object<()>>,
    #[serde(default)]
    pub resource_flavors: Vec<Object<FlavorSpec>>,
    #[serde(default)]
    pub cohorts: Vec<Object<CohortSpec>>,
    #[serde(default)]
    pub cluster_queues: Vec<Object<QueueSpec>>,
    #[serde(default)]
    pub local_queues: Vec<Object<LocalQueueSpec>>,
    #[serde(default)]
    pub topologies: Vec<Object<TopologySpec>>,
    #[serde(default)]
    pub nodes: Vec<Object<NodeSpec>>,
    #[serde(default)]
    pub workloads: Vec<Object<WorkloadSpec>>,
    #[serde(default)]
    pub events: Vec<Event>,
    pub expect: Expect,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    pub fair_sharing: Option<FairSharing>,
    #[serde(default)]
    pub feature_gates: BTreeMap<String, bool>,
    #[serde(default)]
    pub release_delay_steps: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FairSharing {
    #[serde(default)]
    pub preemption_strategies: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Object<S> {
    pub metadata: Metadata,
    #[serde(default = "none")]
    pub spec: Option<S>,
    #[serde(default)]
    pub status: Status,
}

fn none<T>() -> Option<T> {
    None
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    pub name: String,
    #[serde(default)]
    pub namespace: String,
    #[serde(default)]
    pub uid: String,
    pub creation_timestamp: Option<jiff_time::Stamp>,
    #[serde(default)]
    pub labels: Map,
}

/// RFC 3339 times as nanoseconds.
pub mod jiff_time {
    use serde::{Deserialize, Deserializer, de::Error};

    #[derive(Debug, Clone, Copy)]
    pub struct Stamp(pub i64);

    impl<'de> Deserialize<'de> for Stamp {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            let time: jiff::Timestamp = text.parse().map_err(D::Error::custom)?;
            i64::try_from(time.as_nanosecond()).map(Self).map_err(D::Error::custom)
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub admission: Option<Admission>,
    #[serde(default)]
    pub conditions: Vec<Condition>,
    #[serde(default)]
    pub reclaimable_pods: Vec<Reclaimable>,
    #[serde(default)]
    pub allocatable: Map,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub last_transition_time: Option<jiff_time::Stamp>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Admission {
    pub cluster_queue: String,
    #[serde(default)]
    pub pod_set_assignments: Vec<PodSetAssignment>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSetAssignment {
    #[serde(default)]
    pub flavors: Map,
    #[serde(default)]
    pub resource_usage: Map,
    pub count: Option<i64>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Reclaimable {
    pub name: String,
    pub count: i64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlavorSpec {
    #[serde(default)]
    pub node_labels: Map,
    #[serde(default)]
    pub node_taints: Vec<Taint>,
    #[serde(default)]
    pub tolerations: Vec<Toleration>,
    pub topology_name: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Taint {
    pub key: String,
    #[serde(default)]
    pub value: String,
    pub effect: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Toleration {
    #[serde(default)]
    pub key: String,
    #[serde(default)]
    pub operator: String,
    #[serde(default)]
    pub value: String,
    #[serde(default)]
    pub effect: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CohortSpec {
    pub parent_name: Option<String>,
    #[serde(default)]
    pub resource_groups: Vec<ResourceGroup>,
    pub fair_sharing: Option<Weight>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Weight {
    pub weight: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceGroup {
    #[serde(default)]
    pub covered_resources: Vec<String>,
    #[serde(default)]
    pub flavors: Vec<FlavorQuotas>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct FlavorQuotas {
    pub name: String,
    #[serde(default)]
    pub resources: Vec<ResourceQuota>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceQuota {
    pub name: String,
    pub nominal_quota: Option<String>,
    pub borrowing_limit: Option<String>,
    pub lending_limit: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueSpec {
    pub cohort_name: Option<String>,
    pub namespace_selector: Option<LabelSelector>,
    #[serde(default)]
    pub queueing_strategy: String,
    #[serde(default)]
    pub stop_policy: String,
    #[serde(default)]
    pub resource_groups: Vec<ResourceGroup>,
    #[serde(default)]
    pub preemption: Preemption,
    #[serde(default)]
    pub flavor_fungibility: Fungibility,
    pub fair_sharing: Option<Weight>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    #[serde(default)]
    pub match_labels: Map,
    #[serde(default)]
    pub match_expressions: Vec<Expression>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Expression {
    pub key: String,
    pub operator: String,
    #[serde(default)]
    pub values: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Preemption {
    #[serde(default)]
    pub within_cluster_queue: String,
    #[serde(default)]
    pub reclaim_within_cohort: String,
    pub borrow_within_cohort: Option<BorrowWithinCohort>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BorrowWithinCohort {
    #[serde(default)]
    pub policy: String,
    pub max_priority_threshold: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fungibility {
    #[serde(default)]
    pub when_can_borrow: String,
    #[serde(default)]
    pub when_can_preempt: String,
    #[serde(default)]
    pub preference: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueSpec {
    pub cluster_queue: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct TopologySpec {
    #[serde(default)]
    pub levels: Vec<Level>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Level {
    pub node_label: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct NodeSpec {
    #[serde(default)]
    pub taints: Vec<Taint>,
    #[serde(default)]
    pub unschedulable: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpec {
    #[serde(default)]
    pub pod_sets: Vec<PodSet>,
    #[serde(default)]
    pub queue_name: String,
    pub priority: Option<i64>,
    pub active: Option<bool>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSet {
    pub name: String,
    #[serde(default)]
    pub count: i64,
    pub min_count: Option<i64>,
    #[serde(default)]
    pub template: Template,
    pub topology_request: Option<TopologyRequest>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct Template {
    #[serde(default)]
    pub spec: PodSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    #[serde(default)]
    pub containers: Vec<Container>,
    #[serde(default)]
    pub init_containers: Vec<Container>,
    #[serde(default)]
    pub overhead: Map,
    #[serde(default)]
    pub node_selector: Map,
    #[serde(default)]
    pub tolerations: Vec<Toleration>,
    pub affinity: Option<Affinity>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    #[serde(default)]
    pub resources: Resources,
    #[serde(default)]
    pub restart_policy: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct Resources {
    #[serde(default)]
    pub requests: Map,
    #[serde(default)]
    pub limits: Map,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Affinity {
    pub node_affinity: Option<NodeAffinity>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelector {
    #[serde(default)]
    pub node_selector_terms: Vec<LabelSelector>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyRequest {
    pub required: Option<String>,
    pub preferred: Option<String>,
    #[serde(default)]
    pub unconstrained: Option<bool>,
    pub pod_set_slice_required_topology: Option<String>,
    pub pod_set_slice_size: Option<i64>,
    pub pod_set_group_name: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Change {
    Create { workload: Box<Object<WorkloadSpec>> },
    Finish { name: String },
    Delete { name: String },
    SetPriority { name: String, priority: i64 },
    Reclaim { name: String, reclaimable_pods: Vec<Reclaimable> },
    #[serde(rename = "update_clusterqueue")]
    UpdateClusterQueue { cluster_queue: Box<Object<QueueSpec>> },
    UpdateCohort { cohort: Box<Object<CohortSpec>> },
}

#[derive(Debug, Clone, Deserialize)]
pub struct Event {
    pub step: u64,
    #[serde(flatten)]
    pub change: Change,
}

#[derive(Debug, Default, Deserialize)]
pub struct Expect {
    pub steps: u64,
    #[serde(default)]
    pub messages: Vec<String>,
    #[serde(default)]
    pub cycles: Vec<CycleExpect>,
    #[serde(rename = "final")]
    pub end: End,
}

#[derive(Debug, Deserialize)]
pub struct CycleExpect {
    pub step: u64,
    #[serde(default)]
    pub heads: Vec<Head>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    pub wl: String,
    pub cq: String,
    pub result: String,
    #[serde(default)]
    pub borrow: u32,
    #[serde(default)]
    pub pod_sets: Vec<HeadPodSet>,
    #[serde(default)]
    pub targets: Vec<HeadTarget>,
    #[serde(default)]
    pub reason: String,
    pub msg: Option<usize>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct HeadPodSet {
    pub name: String,
    #[serde(default)]
    pub count: i64,
    #[serde(default)]
    pub flavors: Map,
    #[serde(default)]
    pub usage: Map,
    pub topology: Option<HeadTopology>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct HeadTopology {
    pub levels: Vec<String>,
    pub domains: Vec<HeadDomain>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct HeadDomain {
    pub values: Vec<String>,
    pub count: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct HeadTarget {
    pub wl: String,
    pub reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    #[serde(default)]
    pub cluster_queues: BTreeMap<String, QueueEnd>,
    #[serde(default)]
    pub cohort_usage: BTreeMap<String, Map>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct QueueEnd {
    #[serde(default)]
    pub admitted: Vec<String>,
    #[serde(default)]
    pub active: Vec<String>,
    #[serde(default)]
    pub inadmissible: Vec<String>,
    #[serde(default)]
    pub usage: Map,
}
