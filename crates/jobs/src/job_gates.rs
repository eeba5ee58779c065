//! Feature gates and settings of job kinds (docs/reference/kueue.md §6.4, §6.5).

/// Feature gates and settings that jobs read. The defaults are Kueue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each gate is a switch of its own")]
pub struct JobGates {
    /// `AdmissionGatedBy`.
    pub admission_gated_by: bool,
    /// `AssignQueueLabelsForPods`.
    pub assign_queue_labels: bool,
    /// `ElasticJobsViaWorkloadSlices`.
    pub elastic_jobs: bool,
    /// `PartialAdmission`.
    pub partial_admission: bool,
    /// `TopologyAwareScheduling`.
    pub topology: bool,
    /// `TASMultiLayerTopology`.
    pub topology_layers: bool,
    /// `WorkloadIdentifierAnnotations`.
    pub identifier_annotations: bool,
    /// `WorkloadPriorityClassDefaulting`.
    pub default_priority_class: bool,
    /// `ReclaimablePods`.
    pub reclaimable_pods: bool,
    /// `ShortWorkloadNames`.
    pub short_names: bool,
    /// `LWSImmutableGroupSize`.
    pub immutable_group_size: bool,
    /// `FastQuotaReleaseInPodIntegration`.
    pub fast_quota_release: bool,
    /// `PodIntegrationValidateGroupOwner`.
    pub validate_group_owner: bool,
    /// `PodIntegrationVerifyRoleRequests`.
    pub verify_role_requests: bool,
    /// `FinishOrphanedWorkloads`.
    pub finish_orphans: bool,
    /// `DeferRayServiceFinalizationForRedisCleanup`.
    pub quota_for_redis_cleanup: bool,
    /// `MultiKueueRemoteSpecSync`.
    pub remote_spec_sync: bool,
    /// `SchedulerLibraryIntegration`.
    pub scheduler_library: bool,
    /// `ValidateRayAndSparkJobUpdates`.
    pub ray_and_spark_updates: bool,
    /// Setting `manageJobsWithoutQueueName`.
    pub manage_without_queue_name: bool,
}

impl Default for JobGates {
    fn default() -> Self {
        Self {
            admission_gated_by: true,
            assign_queue_labels: true,
            elastic_jobs: true,
            partial_admission: true,
            topology: true,
            topology_layers: true,
            identifier_annotations: true,
            default_priority_class: true,
            reclaimable_pods: true,
            short_names: false,
            immutable_group_size: true,
            fast_quota_release: false,
            validate_group_owner: true,
            verify_role_requests: true,
            finish_orphans: true,
            quota_for_redis_cleanup: true,
            remote_spec_sync: true,
            scheduler_library: false,
            ray_and_spark_updates: true,
            manage_without_queue_name: false,
        }
    }
}
