//! The feature gates of job kinds.

use jobs::JobGates;

use crate::gates::{Gate, Gates};

impl From<&Gates> for JobGates {
    fn from(gates: &Gates) -> Self {
        let on = |gate| gates.enabled(gate);
        Self {
            admission_gated_by: on(Gate::AdmissionGatedBy),
            assign_queue_labels: on(Gate::AssignQueueLabelsForPods),
            elastic_jobs: on(Gate::ElasticJobsViaWorkloadSlices),
            elastic_jobs_with_topology: on(Gate::ElasticJobsViaWorkloadSlicesWithTAS),
            partial_admission: on(Gate::PartialAdmission),
            topology: on(Gate::TopologyAwareScheduling),
            topology_layers: on(Gate::TASMultiLayerTopology),
            identifier_annotations: on(Gate::WorkloadIdentifierAnnotations),
            default_priority_class: on(Gate::WorkloadPriorityClassDefaulting),
            reclaimable_pods: on(Gate::ReclaimablePods),
            short_names: on(Gate::ShortWorkloadNames),
            immutable_group_size: on(Gate::LWSImmutableGroupSize),
            fast_quota_release: on(Gate::FastQuotaReleaseInPodIntegration),
            validate_group_owner: on(Gate::PodIntegrationValidateGroupOwner),
            verify_role_requests: on(Gate::PodIntegrationVerifyRoleRequests),
            finish_orphans: on(Gate::FinishOrphanedWorkloads),
            quota_for_redis_cleanup: on(Gate::DeferRayServiceFinalizationForRedisCleanup),
            remote_spec_sync: on(Gate::MultiKueueRemoteSpecSync),
            ray_and_spark_updates: on(Gate::ValidateRayAndSparkJobUpdates),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_gates_of_jobs_are_the_feature_gate_defaults() {
        assert_eq!(JobGates::from(&Gates::default()), JobGates::default());
    }

    #[test]
    fn a_disabled_gate_is_disabled_for_jobs() {
        let gates = Gates::parse("PartialAdmission=false").expect("gates");
        let expected = JobGates { partial_admission: false, ..JobGates::default() };
        assert_eq!(JobGates::from(&gates), expected);
    }
}
