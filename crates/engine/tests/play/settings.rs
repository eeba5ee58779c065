//! The line `settings`: `fair=final`, `fair=initial` or both with a comma, and one word per switch that is not as usual.

use engine::{FairStrategy, Settings};

use crate::play::words::Words;

pub(super) fn settings(words: &Words<'_>) -> Settings {
    let mut settings = Settings::default();
    for word in std::iter::once(words.name()).chain(words.rest().iter().copied()) {
        match word {
            "" => {}
            "no-partial" => settings.partial_admission = false,
            "no-fungibility" => settings.fungibility = false,
            "no-scan-progress" => settings.preserve_scan_progress = false,
            "no-shapes" => settings.park_by_shape = false,
            "no-within-nominal" => settings.preempt_within_nominal = false,
            "no-owners-first" => settings.prioritize_non_borrowing = false,
            "no-priority-sorting" => settings.priority_sorting = false,
            "preemptors-first" => settings.prioritize_preemptors = true,
            "look-again" => settings.look_again = true,
            "no-mixed" => settings.topology_mixed = false,
            "no-replacement" => settings.replace_failed_nodes = false,
            "no-fail-fast" => settings.evict_unreplaced = false,
            "no-slices" => settings.elastic_slices = false,
            "elastic-places" => settings.elastic_places = true,
            "orchestrated" => settings.orchestrated_preemption = true,
            "concurrent" => settings.concurrent_admission = true,
            "preferences" => settings.topology_preferred = true,
            "balanced" => settings.topology_balanced = true,
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
