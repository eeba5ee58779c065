//! Configuration of the index: the parts of the configuration file and the feature gates that change the meaning of
//! objects.
//!
//! Source: docs/reference/kueue.md §2.7, §2.8, §3.2, §6.4. Defaults are Kueue's.

use crds::quantity::Quantity;
use crds::v1beta2::Workload;

use crate::metric_labels::WorkloadLabelRules;

/// Whether a transformation keeps its input resource (`strategy`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InputRetention {
    /// The input counts as well.
    #[default]
    Retain,
    /// Only the outputs count.
    Replace,
}

/// A resource transformation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceTransformation {
    /// Input resource.
    pub input: String,
    /// Whether the input counts as well.
    pub strategy: InputRetention,
    /// Resource whose request multiplies the outputs.
    pub multiply_by: Option<String>,
    /// Output amounts per unit of the input.
    pub outputs: Vec<(String, Quantity)>,
}

/// Configuration of an index.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "feature gates are independent switches")]
pub struct IndexConfig {
    /// Prefixes of resource names that do not count.
    pub exclude_prefixes: Vec<String>,
    /// Resource transformations.
    pub transformations: Vec<ResourceTransformation>,
    /// Ignore requests for resources that the queue does not cover, instead of refusing the Workload.
    pub ignore_uncovered_resources: bool,
    /// The queue-order timestamp after an eviction by PodsReady timeout is the time of the eviction, not of the
    /// creation.
    pub eviction_timestamp: bool,
    /// Gate PartialAdmission.
    pub partial_admission: bool,
    /// Gate ReclaimablePods. Without it, pods that will not run again keep their quota.
    pub reclaimable_pods: bool,
    /// Gate PriorityBoost.
    pub priority_boost: bool,
    /// Gate PrioritySortingWithinCohort. Without it a preempted Workload is ordered behind the borrower that
    /// preempted it.
    pub priority_sorting: bool,
    /// Gate ConcurrentAdmission: a Workload with variants is not queued itself.
    pub concurrent_admission: bool,
    /// Gate AdmissionGatedBy.
    pub admission_gated_by: bool,
    /// Gate TopologyAwareScheduling. Without it no flavor and no pod set has a topology.
    pub topology_aware_scheduling: bool,
    /// Gate KueueDRARejectWorkloadsWhenDRADisabled: a Workload whose pods claim devices is not admitted, since devices are not
    /// charged.
    pub refuse_device_claims: bool,
    /// How the agent of a worker admits clones; `None` in a manager (docs/reference/dispatch.md §4).
    pub agent: Option<AdmissionMode>,
    /// Labels of metrics that come from Workloads (`metrics.customLabels` of `sourceKind: Workload`).
    pub workload_labels: WorkloadLabelRules,
}

/// How the agent of a worker admits clones (docs/reference/dispatch.md §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionMode {
    /// One internal queue takes every clone; its quota is the capacity of the cluster.
    Thin,
    /// Clones queue in the LocalQueues of the worker, under the quotas of its ClusterQueues.
    Quota,
}

impl IndexConfig {
    /// Pods of a pod set that will not run again, as far as they release quota.
    pub(crate) fn reclaimable(&self, workload: &Workload, pod_set: &str) -> i32 {
        let mut known = workload.status.reclaimable_pods.iter();
        let found = known.find(|one| self.reclaimable_pods && one.name == pod_set);
        found.map_or(0, |one| one.count)
    }

    /// One internal queue takes every Workload.
    pub(crate) fn has_internal_queue(&self) -> bool {
        self.agent == Some(AdmissionMode::Thin)
    }

    /// Whether a Workload has variants that compete in its place.
    #[must_use]
    pub fn is_parent(&self, workload: &Workload) -> bool {
        self.concurrent_admission && workload.has_variants()
    }
}

impl Default for IndexConfig {
    fn default() -> Self {
        Self {
            exclude_prefixes: Vec::new(),
            transformations: Vec::new(),
            ignore_uncovered_resources: false,
            eviction_timestamp: true,
            partial_admission: true,
            reclaimable_pods: true,
            priority_boost: false,
            priority_sorting: true,
            concurrent_admission: false,
            admission_gated_by: true,
            topology_aware_scheduling: true,
            refuse_device_claims: true,
            agent: None,
            workload_labels: WorkloadLabelRules::default(),
        }
    }
}
