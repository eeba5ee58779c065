//! Settings of the engine: fair sharing, and feature gates that change decisions. Defaults are upstream's.

/// A rule that allows a fair-sharing preemption. Source: docs/reference/kueue.md §4.10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FairStrategy {
    /// The preemptor's share is at most the share that the target's ClusterQueue keeps.
    LessThanOrEqualToFinalShare,
    /// The preemptor's share is below the present share of the target's ClusterQueue.
    LessThanInitialShare,
}

/// Settings of one engine. Fields named after a gate switch that feature.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "feature gates are independent switches")]
pub struct EngineSettings {
    /// `Some` switches fair sharing on; the strategies are tried in order.
    pub fair_sharing: Option<Vec<FairStrategy>>,
    /// Gate PartialAdmission.
    pub partial_admission: bool,
    /// Gate FlavorFungibility.
    pub flavor_fungibility: bool,
    /// Gate FlavorFungibilityPreserveScanProgress.
    pub flavor_fungibility_preserve_scan_progress: bool,
    /// Gate SchedulingEquivalenceHashing.
    pub scheduling_equivalence_hashing: bool,
    /// Gate FairSharingPreemptWithinNominal.
    pub fair_sharing_preempt_within_nominal: bool,
    /// Gate FairSharingPrioritizeNonBorrowing.
    pub fair_sharing_prioritize_non_borrowing: bool,
    /// Gate PrioritySortingWithinCohort.
    pub priority_sorting_within_cohort: bool,
    /// Gate PrioritizePreemptorWorkloads.
    pub prioritize_preemptor_workloads: bool,
    /// Evaluates heads even if their refusal can be predicted, as upstream does. Decisions are equal; messages of
    /// pending Workloads are newer.
    pub reevaluate_refused: bool,
    /// A released topology assignment requeues ClusterQueues of other cohort trees that use its nodes. Upstream leaves their
    /// Workloads inadmissible until something else requeues them.
    pub requeue_over_shared_nodes: bool,
    /// A preemptor loses its mark when it is requeued for another reason than its preemptions. The recorded version of upstream keeps
    /// the mark until the Workload gets quota; its releases do not any more.
    pub release_failed_preemptors: bool,
    /// A search for preemption targets counts the implicit resource `pods`. The recorded version of upstream leaves it out, and finds
    /// too few targets where several must leave for it; later versions do not.
    pub count_pods_in_preemption: bool,
    /// The check of topology domains within a cycle counts all pod sets of a Workload together. Upstream checks each of them
    /// alone, and may charge a node for more than it has.
    pub check_pod_sets_together: bool,
    /// Nanoseconds between the first failure of a node under a Workload and the attempt to replace it, by the time that
    /// [`Engine::second_pass`](crate::Engine::second_pass) is given. Nodes of a rack fail one after the other, and a Workload
    /// under which several fail is evicted.
    pub node_replacement_delay: i64,
    /// Gate TASProfileMixed.
    pub tas_profile_mixed: bool,
    /// Gate TASBalancedPlacement.
    pub tas_balanced_placement: bool,
    /// Gate TASRespectNodeAffinityPreferred.
    pub tas_respect_node_affinity_preferred: bool,
    /// Gate TASNodeFeasibilityForAllLevels: where the lowest level is not the hostname, each node of a domain is checked.
    pub tas_node_feasibility_for_all_levels: bool,
    /// Gate TASFailedNodeReplacement.
    pub tas_failed_node_replacement: bool,
    /// Gate TASFailedNodeReplacementFailFast.
    pub tas_failed_node_replacement_fail_fast: bool,
    /// Gate ElasticJobsViaWorkloadSlices.
    pub elastic_jobs_via_workload_slices: bool,
    /// Gate ElasticJobsViaWorkloadSlicesWithTAS.
    pub elastic_jobs_via_workload_slices_with_tas: bool,
    /// Gate MultiKueueOrchestratedPreemption: preemption gates are respected.
    pub multi_kueue_orchestrated_preemption: bool,
    /// Gate ConcurrentAdmission: variants; preemption gates are respected.
    pub concurrent_admission: bool,
    /// Gate RecomputeAssignmentUponPreemptionTargetsOverlap.
    pub recompute_upon_target_overlap: bool,
    /// Gate TASRecomputeAssignmentWithinSchedulingCycle.
    pub tas_recompute_within_cycle: bool,
}

impl EngineSettings {
    /// Whether a closed preemption gate prevents preemption.
    pub(crate) fn respects_preemption_gates(&self) -> bool {
        self.multi_kueue_orchestrated_preemption || self.concurrent_admission
    }
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            fair_sharing: None,
            partial_admission: true,
            flavor_fungibility: true,
            flavor_fungibility_preserve_scan_progress: true,
            scheduling_equivalence_hashing: true,
            fair_sharing_preempt_within_nominal: true,
            fair_sharing_prioritize_non_borrowing: true,
            priority_sorting_within_cohort: true,
            prioritize_preemptor_workloads: false,
            reevaluate_refused: false,
            requeue_over_shared_nodes: false,
            release_failed_preemptors: false,
            count_pods_in_preemption: false,
            check_pod_sets_together: false,
            node_replacement_delay: 0,
            tas_profile_mixed: true,
            tas_balanced_placement: false,
            tas_respect_node_affinity_preferred: false,
            tas_node_feasibility_for_all_levels: false,
            tas_failed_node_replacement: true,
            tas_failed_node_replacement_fail_fast: true,
            elastic_jobs_via_workload_slices: true,
            elastic_jobs_via_workload_slices_with_tas: false,
            multi_kueue_orchestrated_preemption: false,
            concurrent_admission: false,
            recompute_upon_target_overlap: true,
            tas_recompute_within_cycle: true,
        }
    }
}
