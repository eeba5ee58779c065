//! The line `settings`: `fair=final`, `fair=initial` or both with a comma, and one word per setting that differs
//! from its default.

use engine::{EngineSettings, FairStrategy};

use crate::play::words::Words;

pub(super) fn settings(words: &Words<'_>) -> EngineSettings {
    let mut settings = EngineSettings::default();
    for word in std::iter::once(words.name()).chain(words.rest().iter().copied()) {
        match word {
            "" => {}
            "no-partial" => settings.partial_admission = false,
            "no-fungibility" => settings.flavor_fungibility = false,
            "no-scan-progress" => settings.flavor_fungibility_preserve_scan_progress = false,
            "no-scheduling-hashes" => settings.scheduling_equivalence_hashing = false,
            "no-within-nominal" => settings.fair_sharing_preempt_within_nominal = false,
            "no-prioritize-non-borrowing" => settings.fair_sharing_prioritize_non_borrowing = false,
            "no-priority-sorting" => settings.priority_sorting_within_cohort = false,
            "prioritize-preemptors" => settings.prioritize_preemptor_workloads = true,
            "no-overlap-recompute" => settings.recompute_upon_target_overlap = false,
            "no-topology-recompute" => settings.tas_recompute_within_cycle = false,
            "reevaluate-refused" => settings.reevaluate_refused = true,
            "requeue-over-nodes" => settings.requeue_over_shared_nodes = true,
            "release-preemptors" => settings.release_failed_preemptors = true,
            "count-pods" => settings.count_pods_in_preemption = true,
            "pod-sets-together" => settings.check_pod_sets_together = true,
            "delayed-replacement" => settings.node_replacement_delay = 1_000_000_000,
            "no-mixed-profile" => settings.tas_profile_mixed = false,
            "no-replacement" => settings.tas_failed_node_replacement = false,
            "no-fail-fast" => settings.tas_failed_node_replacement_fail_fast = false,
            "no-slices" => settings.elastic_jobs_via_workload_slices = false,
            "elastic-tas" => settings.elastic_jobs_via_workload_slices_with_tas = true,
            "orchestrated-preemption" => settings.multi_kueue_orchestrated_preemption = true,
            "concurrent-admission" => settings.concurrent_admission = true,
            "preferred-affinity" => settings.tas_respect_node_affinity_preferred = true,
            "node-feasibility" => settings.tas_node_feasibility_for_all_levels = true,
            "balanced-placement" => settings.tas_balanced_placement = true,
            other => settings.fair_sharing = Some(strategies(other)),
        }
    }
    settings
}

fn strategies(word: &str) -> Vec<FairStrategy> {
    let list = word.strip_prefix("fair=").expect("a setting");
    let one = |name| match name {
        "final" => FairStrategy::LessThanOrEqualToFinalShare,
        "initial" => FairStrategy::LessThanInitialShare,
        other => unreachable!("unknown strategy {other}"),
    };
    list.split(',').map(one).collect()
}
