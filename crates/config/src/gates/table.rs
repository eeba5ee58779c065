//! The table of feature gates: name, stage, default, lock and dependencies (docs/reference/kueue.md §6.5).

/// The stage of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateStage {
    /// Off by default.
    Alpha,
    /// On by default, with exceptions.
    Beta,
    /// Always on.
    Ga,
    /// To be removed.
    Deprecated,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct GateSpec {
    /// The gate.
    pub gate: Gate,
    /// The stage of its feature.
    pub stage: GateStage,
    /// Whether the gate is on by default.
    pub default: bool,
    /// Whether the gate cannot be changed.
    pub locked: bool,
    /// Gates that must be on for this one to be on.
    pub needs: &'static [Gate],
}

macro_rules! gates {
    ($($name:ident $stage:ident $default:literal $locked:literal [$($needs:ident)*])*) => {
        /// A feature gate; the variant is its name on the command line.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "the name is the feature; the specification describes it")]
        pub enum Gate { $($name),* }

        impl Gate {
            /// The name on the command line and in the configuration file.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }

        /// Every gate, in the order of the enum.
        pub const TABLE: &[GateSpec] = &[$(GateSpec {
            gate: Gate::$name,
            stage: GateStage::$stage,
            default: $default,
            locked: $locked,
            needs: &[$(Gate::$needs),*],
        }),*];
    };
}

#[rustfmt::skip]
gates! {
    ManagedJobsNamespaceSelectorAlwaysRespected Ga true true []
    TLSOptions Ga true false []
    PartialAdmission Beta true false []
    FlavorFungibility Beta true false []
    VisibilityOnDemand Beta true false []
    PrioritySortingWithinCohort Beta true false []
    FairSharingPreemptWithinNominal Beta true false []
    FairSharingPrioritizeNonBorrowing Beta true false []
    MultiKueue Beta true false []
    TopologyAwareScheduling Beta true false []
    LocalQueueMetrics Beta true false []
    TASProfileMixed Beta true false [TopologyAwareScheduling]
    AdmissionFairSharing Beta true false []
    TASFailedNodeReplacement Beta true false [TopologyAwareScheduling]
    TASFailedNodeReplacementFailFast Beta true false [TopologyAwareScheduling TASFailedNodeReplacement]
    ElasticJobsViaWorkloadSlices Beta true false []
    TASReplaceNodeOnPodTermination Beta true false [TopologyAwareScheduling TASFailedNodeReplacement]
    TASReplaceNodeOnNodeTaints Beta true false [TopologyAwareScheduling]
    SkipReassignmentForPodOwnedWorkloads Beta true false []
    TASAssignmentsEncodingByHostnamePrefix Beta true false []
    KueueDRAIntegration Beta true false []
    KueueDRAIntegrationExtendedResource Beta true false [KueueDRAIntegration]
    KueueDRAIntegrationPartitionableDevices Beta true false [KueueDRAIntegration]
    KueueDRARejectWorkloadsWhenDRADisabled Beta true false []
    MultiKueueAdaptersForCustomJobs Beta true false []
    MultiKueueKubeConfigPathValidation Beta true false []
    MultiKueueIncrementalDispatcherConfig Beta true false []
    MultiKueueIncrementalDispatcherRespectConfigOrder Beta true false []
    MultiKueueRemoteSpecSync Beta true false []
    ReclaimablePods Beta true false []
    RemoveFinalizersWithStrictPatch Beta true false []
    AssignQueueLabelsForPods Beta true false []
    TASMultiLayerTopology Beta true false [TopologyAwareScheduling]
    SchedulingEquivalenceHashing Beta true false []
    AdmissionGatedBy Beta true false []
    FinishOrphanedWorkloads Beta true false []
    QuotaCheckStrategy Beta true false []
    MetricForWorkloadCreationLatency Beta true false []
    WorkloadIdentifierAnnotations Beta true false []
    WorkloadPriorityClassDefaulting Beta true false []
    MetricsForCohorts Beta true false []
    CleanupProvisioningRequestsOnEviction Beta true false []
    TASHandleOverlappingFlavors Beta true false [TopologyAwareScheduling]
    UnadmittedWorkloadsObservability Beta true false []
    TASRecomputeAssignmentWithinSchedulingCycle Beta true false [TopologyAwareScheduling]
    DeferRayServiceFinalizationForRedisCleanup Beta true false []
    TASCacheNodeMatchResults Beta true false []
    TASCachingRemainingResources Beta true false []
    TASCacheTopologyTree Beta true false []
    VectorizedResourceRequests Beta true false []
    WorkloadValidateResourcesAreNonNegative Beta true false []
    TASValidateWorkloadSliceSize Beta true false []
    WorkloadValidationForPodSetMetadata Beta true false []
    LWSImmutableGroupSize Beta true false []
    FlavorFungibilityPreserveScanProgress Beta true false [FlavorFungibility]
    SkipAncestorCheckForDeletedWorkloads Beta true false []
    RecomputeAssignmentUponPreemptionTargetsOverlap Beta true false []
    PodIntegrationValidateGroupOwner Beta true false []
    PodIntegrationVerifyRoleRequests Beta true false []
    ValidateRayAndSparkJobUpdates Beta true false []
    LocalQueueDefaultingPerNamespace Beta true false []
    MultiKueueBatchJobClearingTTLSecondsAfterFinishedOnWorkerCluster Beta true false []
    SchedulingEquivalenceHashingIgnorePodSetName Beta true false [SchedulingEquivalenceHashing]
    // Recorded decisions have been made without it.
    TASNodeFeasibilityForAllLevels Beta false false [TopologyAwareScheduling]
    UnadmittedWorkloadsExplicitStatus Beta false false [UnadmittedWorkloadsObservability]
    // Beta and on in the later version of Kueue that has it. A file that starts under v0.20 has to start here, also with `AllBeta`.
    // Stages that later versions changed stay those of v0.20: RejectUpdatesToCQWithInvalidOnFlavors and MultiKueueOrchestratedPreemption
    // are Beta and on there, DeferRayServiceFinalizationForRedisCleanup is Deprecated and off, TLSOptions is locked.
    ReservedResourceNameValidation Alpha false false []
    DisableWaitForPodsReady Alpha false false []
    ElasticJobsViaWorkloadSlicesWithTAS Alpha false false [ElasticJobsViaWorkloadSlices TopologyAwareScheduling]
    TASBalancedPlacement Alpha false false [TopologyAwareScheduling]
    KueueDRAIntegrationConsumableCapacity Alpha false false [KueueDRAIntegration]
    WorkloadRequestUseMergePatch Alpha false false []
    MultiKueueClusterProfile Alpha false false []
    FailureRecoveryPolicy Alpha false false []
    CustomMetricLabels Alpha false false []
    SparkApplicationIntegration Alpha false false []
    MultiKueueOrchestratedPreemption Alpha false false []
    PriorityBoost Alpha false false []
    ShortWorkloadNames Alpha false false []
    FastQuotaReleaseInPodIntegration Alpha false false []
    RejectUpdatesToCQWithInvalidOnFlavors Alpha false false []
    ConcurrentAdmission Alpha false false []
    TASRespectNodeAffinityPreferred Alpha false false [TopologyAwareScheduling]
    MultiKueueManagerQuotaAutomation Alpha false false []
    SchedulerLibraryIntegration Alpha false false []
    PrioritizePreemptorWorkloads Alpha false false []
    FairSharingReevaluatePreemptionCandidates Alpha false false []
    DynamicQuotaOrchestration Alpha false false []
    ElasticJobsViaWorkloadSlicesWithPartialReplicaScaleUp Alpha false false []
    TASReplaceNodeDueToNotReadyOverFixedTime Deprecated false false [TopologyAwareScheduling TASFailedNodeReplacement]
}
