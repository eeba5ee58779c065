//! The feature gates of webhooks.

use config::gates::{Gate, Gates};

/// The feature gates of webhooks. The default has Kueue's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookGates {
    /// PartialAdmission: pod sets may have a `minCount`.
    pub partial_admission: bool,
    /// ConcurrentAdmission: the policy of ClusterQueues is checked.
    pub concurrent_admission: bool,
    /// PriorityBoost: the annotation must be a number.
    pub priority_boost: bool,
    /// AdmissionGatedBy: the annotation must name gates, which can only be removed.
    pub admission_gated_by: bool,
    /// ElasticJobsViaWorkloadSlices: elastic Workloads may shrink.
    pub elastic_jobs: bool,
    /// WorkloadValidateResourcesAreNonNegative: requests must not be negative.
    pub non_negative_resources: bool,
    /// TASValidateWorkloadSliceSize: the size of slices needs their topology.
    pub slice_size: bool,
    /// WorkloadValidationForPodSetMetadata: labels and annotations of templates must be well-formed.
    pub pod_set_metadata: bool,
    /// RejectUpdatesToCQWithInvalidOnFlavors: an update must not keep an admission check on a flavor that is not there.
    pub reject_invalid_on_flavors: bool,
    /// TopologyAwareScheduling: topology assignments may change while quota is reserved.
    pub topology_aware_scheduling: bool,
}

impl Default for WebhookGates {
    fn default() -> Self {
        Self::from(&Gates::default())
    }
}

impl From<&Gates> for WebhookGates {
    fn from(gates: &Gates) -> Self {
        let on = |gate| gates.enabled(gate);
        Self {
            partial_admission: on(Gate::PartialAdmission),
            concurrent_admission: on(Gate::ConcurrentAdmission),
            priority_boost: on(Gate::PriorityBoost),
            admission_gated_by: on(Gate::AdmissionGatedBy),
            elastic_jobs: on(Gate::ElasticJobsViaWorkloadSlices),
            non_negative_resources: on(Gate::WorkloadValidateResourcesAreNonNegative),
            slice_size: on(Gate::TASValidateWorkloadSliceSize),
            pod_set_metadata: on(Gate::WorkloadValidationForPodSetMetadata),
            reject_invalid_on_flavors: on(Gate::RejectUpdatesToCQWithInvalidOnFlavors),
            topology_aware_scheduling: on(Gate::TopologyAwareScheduling),
        }
    }
}
