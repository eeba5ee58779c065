//! Settings of the engine and the index, from the configuration and the feature gates.

use config::{
    Configuration, CustomLabel, LabelSource, PreemptionStrategy, QuotaCheckStrategy,
    RequeuingTimestamp, SourceKind, Transformation, TransformationStrategy,
    gates::{Gate, Gates},
};
use engine::FairStrategy;
use index::{MetadataKey, WorkloadLabelRule, WorkloadLabelRules, local_queue_usage::UsageWeights};
use jobs::construct_workload::KeysToCopy;

use super::scheduling::UsageSettings;

/// Nanoseconds until a failed node is replaced: the first delay of second passes (docs/reference/kueue.md §3.7).
const NODE_REPLACEMENT_DELAY: i64 = 1_000_000_000;

pub(super) fn engine_settings(file: &Configuration, gates: &Gates) -> engine::EngineSettings {
    let on = |gate| gates.enabled(gate);
    let strategy = |one: &PreemptionStrategy| match one {
        PreemptionStrategy::LessThanOrEqualToFinalShare => {
            FairStrategy::LessThanOrEqualToFinalShare
        }
        PreemptionStrategy::LessThanInitialShare => FairStrategy::LessThanInitialShare,
    };
    let fair = file.fair_sharing.as_ref();
    engine::EngineSettings {
        fair_sharing: fair.map(|fair| fair.preemption_strategies.iter().map(strategy).collect()),
        partial_admission: on(Gate::PartialAdmission),
        flavor_fungibility: on(Gate::FlavorFungibility),
        flavor_fungibility_preserve_scan_progress: on(Gate::FlavorFungibilityPreserveScanProgress),
        scheduling_equivalence_hashing: on(Gate::SchedulingEquivalenceHashing),
        fair_sharing_preempt_within_nominal: on(Gate::FairSharingPreemptWithinNominal),
        fair_sharing_prioritize_non_borrowing: on(Gate::FairSharingPrioritizeNonBorrowing),
        priority_sorting_within_cohort: on(Gate::PrioritySortingWithinCohort),
        prioritize_preemptor_workloads: on(Gate::PrioritizePreemptorWorkloads),
        tas_profile_mixed: on(Gate::TASProfileMixed),
        reevaluate_refused: false,
        requeue_over_shared_nodes: true,
        release_failed_preemptors: true,
        count_pods_in_preemption: true,
        check_pod_sets_together: true,
        node_replacement_delay: NODE_REPLACEMENT_DELAY,
        tas_balanced_placement: on(Gate::TASBalancedPlacement),
        tas_respect_node_affinity_preferred: on(Gate::TASRespectNodeAffinityPreferred),
        tas_node_feasibility_for_all_levels: on(Gate::TASNodeFeasibilityForAllLevels),
        tas_failed_node_replacement: on(Gate::TASFailedNodeReplacement),
        tas_failed_node_replacement_fail_fast: on(Gate::TASFailedNodeReplacementFailFast),
        elastic_jobs_via_workload_slices: on(Gate::ElasticJobsViaWorkloadSlices),
        elastic_jobs_via_workload_slices_with_tas: on(Gate::ElasticJobsViaWorkloadSlicesWithTAS),
        multi_kueue_orchestrated_preemption: on(Gate::MultiKueueOrchestratedPreemption),
        concurrent_admission: on(Gate::ConcurrentAdmission),
        recompute_upon_target_overlap: on(Gate::RecomputeAssignmentUponPreemptionTargetsOverlap),
        tas_recompute_within_cycle: on(Gate::TASRecomputeAssignmentWithinSchedulingCycle),
    }
}

/// Settings of an index, which a follower needs as well as a leader.
#[must_use]
pub fn index_settings(file: &Configuration, gates: &Gates) -> index::IndexConfig {
    let on = |gate| gates.enabled(gate);
    let resources = &file.resources;
    let requeuing = file.wait_for_pods_ready.as_ref().map(|wait| wait.requeuing_strategy.timestamp);
    index::IndexConfig {
        exclude_prefixes: resources.exclude_resource_prefixes.clone(),
        transformations: resources.transformations.iter().map(transformation).collect(),
        ignore_uncovered_resources: on(Gate::QuotaCheckStrategy)
            && resources.quota_check_strategy == QuotaCheckStrategy::IgnoreUndeclared,
        eviction_timestamp: requeuing.is_none_or(|one| one == RequeuingTimestamp::Eviction),
        partial_admission: on(Gate::PartialAdmission),
        reclaimable_pods: on(Gate::ReclaimablePods),
        priority_boost: on(Gate::PriorityBoost),
        priority_sorting: on(Gate::PrioritySortingWithinCohort),
        concurrent_admission: on(Gate::ConcurrentAdmission),
        admission_gated_by: on(Gate::AdmissionGatedBy),
        topology_aware_scheduling: on(Gate::TopologyAwareScheduling),
        refuse_device_claims: on(Gate::KueueDRARejectWorkloadsWhenDRADisabled),
        agent: None,
        workload_labels: workload_labels(file, gates),
    }
}

/// Labels of metrics that come from Workloads (gate CustomMetricLabels).
fn workload_labels(file: &Configuration, gates: &Gates) -> WorkloadLabelRules {
    let labels = file.metrics.custom_labels.iter();
    let labels = labels.filter(|label| label.source_kind == SourceKind::Workload);
    let labels = labels.filter(|_| gates.enabled(Gate::CustomMetricLabels));
    let rule = |label: &CustomLabel| WorkloadLabelRule {
        source: match label.source() {
            LabelSource::Label(key) => MetadataKey::Label(key.to_owned()),
            LabelSource::Annotation(key) => MetadataKey::Annotation(key.to_owned()),
        },
        tracked: label.tracked_values.clone(),
    };
    WorkloadLabelRules(labels.map(rule).collect())
}

/// What jobs give to their Workloads: the configured labels, and what labels of metrics come from.
pub(super) fn keys_to_copy(file: &Configuration, gates: &Gates) -> KeysToCopy {
    let mut keys = KeysToCopy {
        labels: file.integrations.label_keys_to_copy.clone(),
        ..KeysToCopy::default()
    };
    for rule in workload_labels(file, gates).0 {
        let (all, key) = match rule.source {
            MetadataKey::Label(key) => (&mut keys.labels, key),
            MetadataKey::Annotation(key) => (&mut keys.annotations, key),
        };
        if !all.contains(&key) {
            keys.measured.push(key.clone());
            all.push(key);
        }
    }
    keys
}

/// Weights of resources under admission fair sharing, which a follower needs as well as a leader; `None` without it.
#[must_use]
pub fn usage_weights(file: &Configuration, gates: &Gates) -> Option<UsageWeights> {
    usage_settings(file, gates).map(|settings| settings.weights)
}

/// Admission fair sharing, with its gate.
pub(super) fn usage_settings(file: &Configuration, gates: &Gates) -> Option<UsageSettings> {
    let block = file.admission_fair_sharing.as_ref();
    let block = block.filter(|_| gates.enabled(Gate::AdmissionFairSharing))?;
    let weights =
        block.resource_weights.iter().map(|(name, weight)| (name.clone(), nanos(*weight)));
    Some(UsageSettings {
        half_life: block.usage_half_life_time.positive().unwrap_or_default(),
        interval: block.usage_sampling_interval.positive().unwrap_or_default(),
        weights: UsageWeights(weights.collect()),
    })
}

/// A weight in units of 10^-9. Negative ones were refused with the configuration.
fn nanos(weight: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from float saturates"
    )]
    let nanos = (weight * 1e9).round() as u64;
    nanos
}

/// Outputs that are no quantities were refused with the configuration.
fn transformation(one: &Transformation) -> index::ResourceTransformation {
    let outputs = one.amounts().filter_map(|(name, amount)| Some((name.to_owned(), amount?)));
    index::ResourceTransformation {
        input: one.input.clone(),
        strategy: match one.strategy {
            TransformationStrategy::Retain => index::InputRetention::Retain,
            TransformationStrategy::Replace => index::InputRetention::Replace,
        },
        multiply_by: one.multiply_by.clone(),
        outputs: outputs.collect(),
    }
}
