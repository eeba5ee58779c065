//! The case format: Kubernetes objects as far as scheduling reads them, events, expectations.

use std::collections::BTreeMap;

use serde::Deserialize;

pub(crate) type Map = BTreeMap<String, String>;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Case {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) config: Config,
    #[serde(default)]
    pub(crate) namespaces: Vec<Object<()>>,
    #[serde(default)]
    pub(crate) resource_flavors: Vec<Object<FlavorSpec>>,
    #[serde(default)]
    pub(crate) cohorts: Vec<Object<CohortSpec>>,
    #[serde(default)]
    pub(crate) cluster_queues: Vec<Object<QueueSpec>>,
    #[serde(default)]
    pub(crate) local_queues: Vec<Object<LocalQueueSpec>>,
    #[serde(default)]
    pub(crate) topologies: Vec<Object<TopologySpec>>,
    #[serde(default)]
    pub(crate) nodes: Vec<Object<NodeSpec>>,
    #[serde(default)]
    pub(crate) workloads: Vec<Object<WorkloadSpec>>,
    #[serde(default)]
    pub(crate) events: Vec<Event>,
    pub(crate) expect: Expect,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Config {
    pub(crate) fair_sharing: Option<FairSharing>,
    #[serde(default)]
    pub(crate) feature_gates: BTreeMap<String, bool>,
    #[serde(default)]
    pub(crate) release_delay_steps: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FairSharing {
    #[serde(default)]
    pub(crate) preemption_strategies: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Object<S> {
    pub(crate) metadata: Metadata,
    #[serde(default = "none")]
    pub(crate) spec: Option<S>,
    #[serde(default)]
    pub(crate) status: Status,
}

fn none<T>() -> Option<T> {
    None
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespace: String,
    #[serde(default)]
    pub(crate) uid: String,
    pub(crate) creation_timestamp: Option<jiff_time::Stamp>,
    #[serde(default)]
    pub(crate) labels: Map,
}

/// RFC 3339 times as nanoseconds.
pub(crate) mod jiff_time {
    use serde::{Deserialize, Deserializer, de::Error};

    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Stamp(pub(crate) i64);

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
pub(crate) struct Status {
    pub(crate) admission: Option<Admission>,
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
    #[serde(default)]
    pub(crate) reclaimable_pods: Vec<Reclaimable>,
    #[serde(default)]
    pub(crate) allocatable: Map,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) last_transition_time: Option<jiff_time::Stamp>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Admission {
    pub(crate) cluster_queue: String,
    #[serde(default)]
    pub(crate) pod_set_assignments: Vec<PodSetAssignment>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodSetAssignment {
    #[serde(default)]
    pub(crate) flavors: Map,
    #[serde(default)]
    pub(crate) resource_usage: Map,
    pub(crate) count: Option<i64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Reclaimable {
    pub(crate) name: String,
    pub(crate) count: i64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FlavorSpec {
    #[serde(default)]
    pub(crate) node_labels: Map,
    #[serde(default)]
    pub(crate) node_taints: Vec<Taint>,
    #[serde(default)]
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) topology_name: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Taint {
    pub(crate) key: String,
    #[serde(default)]
    pub(crate) value: String,
    pub(crate) effect: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Toleration {
    #[serde(default)]
    pub(crate) key: String,
    #[serde(default)]
    pub(crate) operator: String,
    #[serde(default)]
    pub(crate) value: String,
    #[serde(default)]
    pub(crate) effect: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CohortSpec {
    pub(crate) parent_name: Option<String>,
    #[serde(default)]
    pub(crate) resource_groups: Vec<ResourceGroup>,
    pub(crate) fair_sharing: Option<FairSharingWeight>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct FairSharingWeight {
    pub(crate) weight: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceGroup {
    #[serde(default)]
    pub(crate) covered_resources: Vec<String>,
    #[serde(default)]
    pub(crate) flavors: Vec<FlavorQuotas>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct FlavorQuotas {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) resources: Vec<ResourceQuota>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceQuota {
    pub(crate) name: String,
    pub(crate) nominal_quota: Option<String>,
    pub(crate) borrowing_limit: Option<String>,
    pub(crate) lending_limit: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueueSpec {
    pub(crate) cohort_name: Option<String>,
    pub(crate) namespace_selector: Option<LabelSelector>,
    #[serde(default)]
    pub(crate) queueing_strategy: String,
    #[serde(default)]
    pub(crate) stop_policy: String,
    #[serde(default)]
    pub(crate) resource_groups: Vec<ResourceGroup>,
    #[serde(default)]
    pub(crate) preemption: PreemptionSpec,
    #[serde(default)]
    pub(crate) flavor_fungibility: FungibilitySpec,
    pub(crate) fair_sharing: Option<FairSharingWeight>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LabelSelector {
    #[serde(default)]
    pub(crate) match_labels: Map,
    #[serde(default)]
    pub(crate) match_expressions: Vec<Expression>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Expression {
    pub(crate) key: String,
    pub(crate) operator: String,
    #[serde(default)]
    pub(crate) values: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreemptionSpec {
    #[serde(default)]
    pub(crate) within_cluster_queue: String,
    #[serde(default)]
    pub(crate) reclaim_within_cohort: String,
    pub(crate) borrow_within_cohort: Option<BorrowWithinCohort>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BorrowWithinCohort {
    #[serde(default)]
    pub(crate) policy: String,
    pub(crate) max_priority_threshold: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FungibilitySpec {
    #[serde(default)]
    pub(crate) when_can_borrow: String,
    #[serde(default)]
    pub(crate) when_can_preempt: String,
    #[serde(default)]
    pub(crate) preference: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LocalQueueSpec {
    pub(crate) cluster_queue: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct TopologySpec {
    #[serde(default)]
    pub(crate) levels: Vec<Level>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Level {
    pub(crate) node_label: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct NodeSpec {
    #[serde(default)]
    pub(crate) taints: Vec<Taint>,
    #[serde(default)]
    pub(crate) unschedulable: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkloadSpec {
    #[serde(default)]
    pub(crate) pod_sets: Vec<PodSet>,
    #[serde(default)]
    pub(crate) queue_name: String,
    pub(crate) priority: Option<i64>,
    pub(crate) active: Option<bool>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodSet {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) count: i64,
    pub(crate) min_count: Option<i64>,
    #[serde(default)]
    pub(crate) template: Template,
    pub(crate) topology_request: Option<TopologyRequest>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Template {
    #[serde(default)]
    pub(crate) spec: PodSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodSpec {
    #[serde(default)]
    pub(crate) containers: Vec<Container>,
    #[serde(default)]
    pub(crate) init_containers: Vec<Container>,
    #[serde(default)]
    pub(crate) overhead: Map,
    #[serde(default)]
    pub(crate) node_selector: Map,
    #[serde(default)]
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) affinity: Option<Affinity>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Container {
    #[serde(default)]
    pub(crate) resources: Resources,
    #[serde(default)]
    pub(crate) restart_policy: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Resources {
    #[serde(default)]
    pub(crate) requests: Map,
    #[serde(default)]
    pub(crate) limits: Map,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Affinity {
    pub(crate) node_affinity: Option<NodeAffinity>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub(crate) required: Option<NodeSelector>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeSelector {
    #[serde(default)]
    pub(crate) node_selector_terms: Vec<NodeSelectorTerm>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeSelectorTerm {
    #[serde(default)]
    pub(crate) match_expressions: Vec<Expression>,
    #[serde(default)]
    pub(crate) match_fields: Vec<Expression>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TopologyRequest {
    pub(crate) required: Option<String>,
    pub(crate) preferred: Option<String>,
    #[serde(default)]
    pub(crate) unconstrained: Option<bool>,
    pub(crate) pod_set_slice_required_topology: Option<String>,
    pub(crate) pod_set_slice_size: Option<i64>,
    pub(crate) pod_set_group_name: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum Change {
    Create {
        workload: Box<Object<WorkloadSpec>>,
    },
    Finish {
        name: String,
    },
    Delete {
        name: String,
    },
    SetPriority {
        name: String,
        priority: i64,
    },
    Reclaim {
        name: String,
        reclaimable_pods: Vec<Reclaimable>,
    },
    #[serde(rename = "update_clusterqueue")]
    UpdateClusterQueue {
        cluster_queue: Box<Object<QueueSpec>>,
    },
    UpdateCohort {
        cohort: Box<Object<CohortSpec>>,
    },
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Event {
    pub(crate) step: u64,
    #[serde(flatten)]
    pub(crate) change: Change,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Expect {
    pub(crate) steps: u64,
    #[serde(default)]
    pub(crate) messages: Vec<String>,
    #[serde(default)]
    pub(crate) cycles: Vec<CycleExpect>,
    #[serde(rename = "final")]
    pub(crate) end: End,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CycleExpect {
    pub(crate) step: u64,
    #[serde(default)]
    pub(crate) heads: Vec<Head>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Head {
    pub(crate) wl: String,
    pub(crate) cq: String,
    pub(crate) result: String,
    #[serde(default)]
    pub(crate) borrow: u32,
    #[serde(default)]
    pub(crate) pod_sets: Vec<HeadPodSet>,
    #[serde(default)]
    pub(crate) targets: Vec<HeadTarget>,
    #[serde(default)]
    pub(crate) reason: String,
    pub(crate) msg: Option<usize>,
    #[serde(default)]
    pub(crate) flavors: BTreeMap<String, Map>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct HeadPodSet {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) count: i64,
    #[serde(default)]
    pub(crate) flavors: Map,
    #[serde(default)]
    pub(crate) usage: Map,
    pub(crate) topology: Option<HeadTopology>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct HeadTopology {
    pub(crate) levels: Vec<String>,
    pub(crate) domains: Vec<HeadDomain>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct HeadDomain {
    pub(crate) values: Vec<String>,
    pub(crate) count: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct HeadTarget {
    pub(crate) wl: String,
    pub(crate) reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct End {
    #[serde(default)]
    pub(crate) cluster_queues: BTreeMap<String, QueueEnd>,
    #[serde(default)]
    pub(crate) cohort_usage: BTreeMap<String, Map>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct QueueEnd {
    #[serde(default)]
    pub(crate) admitted: Vec<String>,
    #[serde(default)]
    pub(crate) active: Vec<String>,
    #[serde(default)]
    pub(crate) inadmissible: Vec<String>,
    #[serde(default)]
    pub(crate) usage: Map,
}
