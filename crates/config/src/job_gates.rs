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
            scheduler_library: on(Gate::SchedulerLibraryIntegration),
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

    type GateField = fn(&mut JobGates) -> &mut bool;

    /// The gate of each field.
    #[rustfmt::skip]
    const FIELDS: &[(&str, GateField)] = &[
        ("AdmissionGatedBy", |gates| &mut gates.admission_gated_by),
        ("AssignQueueLabelsForPods", |gates| &mut gates.assign_queue_labels),
        ("DeferRayServiceFinalizationForRedisCleanup", |gates| &mut gates.quota_for_redis_cleanup),
        ("FastQuotaReleaseInPodIntegration", |gates| &mut gates.fast_quota_release),
        ("FinishOrphanedWorkloads", |gates| &mut gates.finish_orphans),
        ("LWSImmutableGroupSize", |gates| &mut gates.immutable_group_size),
        ("MultiKueueRemoteSpecSync", |gates| &mut gates.remote_spec_sync),
        ("PartialAdmission", |gates| &mut gates.partial_admission),
        ("PodIntegrationValidateGroupOwner", |gates| &mut gates.validate_group_owner),
        ("PodIntegrationVerifyRoleRequests", |gates| &mut gates.verify_role_requests),
        ("ReclaimablePods", |gates| &mut gates.reclaimable_pods),
        ("SchedulerLibraryIntegration", |gates| &mut gates.scheduler_library),
        ("ShortWorkloadNames", |gates| &mut gates.short_names),
        ("TASMultiLayerTopology", |gates| &mut gates.topology_layers),
        ("ValidateRayAndSparkJobUpdates", |gates| &mut gates.ray_and_spark_updates),
        ("WorkloadIdentifierAnnotations", |gates| &mut gates.identifier_annotations),
        ("WorkloadPriorityClassDefaulting", |gates| &mut gates.default_priority_class),
    ];

    /// Fields that follow from more than a gate.
    const OTHER_FIELDS: [&str; 3] = ["elastic_jobs", "topology", "manage_without_queue_name"];

    #[test]
    fn every_field_has_a_row() {
        // Each field is a bool, so the size is their number.
        assert_eq!(size_of::<JobGates>(), FIELDS.len() + OTHER_FIELDS.len());
    }

    #[test]
    fn a_gate_changes_its_field_for_jobs_and_no_other() {
        for (name, field) in FIELDS {
            for on in [false, true] {
                let gates = Gates::parse(&format!("{name}={on}")).expect(name);
                let mut expected = JobGates::default();
                *field(&mut expected) = on;
                assert_eq!(JobGates::from(&gates), expected, "{name}={on}");
            }
        }
    }
}
