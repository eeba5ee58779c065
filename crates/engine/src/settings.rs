//! Switches of the engine: fair sharing and the feature gates that change decisions. Defaults are upstream's.

/// A rule that allows a fair-sharing preemption. Source: docs/reference/kueue.md §4.10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FairStrategy {
    /// The preemptor's share stays at or below what the victim's queue has left.
    LessThanOrEqualToFinalShare,
    /// The preemptor's share stays below what the victim's queue had.
    LessThanInitialShare,
}

/// Settings of one engine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "feature gates are independent switches")]
pub struct Settings {
    /// `Some` switches fair sharing on; the strategies are tried in order.
    pub fair_sharing: Option<Vec<FairStrategy>>,
    /// Gate PartialAdmission.
    pub partial_admission: bool,
    /// Gate FlavorFungibility.
    pub fungibility: bool,
    /// Gate FlavorFungibilityPreserveScanProgress.
    pub preserve_scan_progress: bool,
    /// Gate SchedulingEquivalenceHashing.
    pub park_by_shape: bool,
    /// Gate FairSharingPreemptWithinNominal.
    pub preempt_within_nominal: bool,
    /// Gate FairSharingPrioritizeNonBorrowing.
    pub prioritize_non_borrowing: bool,
    /// Gate PrioritySortingWithinCohort.
    pub priority_sorting: bool,
    /// Gate PrioritizePreemptorWorkloads.
    pub prioritize_preemptors: bool,
    /// Evaluate also heads whose refusal is known in advance, as upstream does. Decisions are the same; what is said
    /// about those who wait is newer.
    pub look_again: bool,
    /// Gate TASProfileMixed.
    pub topology_mixed: bool,
    /// Gate TASBalancedPlacement.
    pub topology_balanced: bool,
    /// Gate TASRespectNodeAffinityPreferred.
    pub topology_preferred: bool,
    /// Gate TASFailedNodeReplacement.
    pub replace_failed_nodes: bool,
    /// Gate TASFailedNodeReplacementFailFast.
    pub evict_unreplaced: bool,
    /// Gate ElasticJobsViaWorkloadSlices.
    pub elastic_slices: bool,
    /// Gate ElasticJobsViaWorkloadSlicesWithTAS.
    pub elastic_places: bool,
    /// Gate MultiKueueOrchestratedPreemption: closed preemption gates count.
    pub orchestrated_preemption: bool,
    /// Gate ConcurrentAdmission: variants. Closed preemption gates count then, too.
    pub concurrent_admission: bool,
}

impl Settings {
    /// Whether a Workload whose preemption gates are closed is kept from preempting.
    pub(crate) fn heeds_gates(&self) -> bool {
        self.orchestrated_preemption || self.concurrent_admission
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            fair_sharing: None,
            partial_admission: true,
            fungibility: true,
            preserve_scan_progress: true,
            park_by_shape: true,
            preempt_within_nominal: true,
            prioritize_non_borrowing: true,
            priority_sorting: true,
            prioritize_preemptors: false,
            look_again: false,
            topology_mixed: true,
            topology_balanced: false,
            topology_preferred: false,
            replace_failed_nodes: true,
            evict_unreplaced: true,
            elastic_slices: true,
            elastic_places: false,
            orchestrated_preemption: false,
            concurrent_admission: false,
        }
    }
}
