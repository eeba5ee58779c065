//! The flavors that a scan looked at before it assigned others, in upstream's words: a part of the Event QuotaReserved.
//!
//! Source: docs/reference/kueue.md §6.3.

use crate::cycle::entry::CycleEntry;
use crate::engine::Engine;
use crate::explain::condition_message::reason_messages;
use crate::flavors::assignment::{FlavorTrialResult, PodSetFlavorAssignment};
use crate::flavors::granular_mode::PreemptionMode;

/// Pod sets with the flavors that do not simply fit them: the mode, the height of borrowing, the reasons. Empty if all fit
/// without borrowing.
pub fn considered_flavors(engine: &Engine, entry: &CycleEntry) -> String {
    let pod_sets = entry.assignment.pod_sets.iter().zip(&entry.class.pod_sets);
    let considered = pod_sets.filter(|(one, _)| !one.trials.is_empty());
    let parts = considered.map(|(one, spec)| format!("{}: {}", spec.name, of_pod_set(engine, one)));
    parts.collect::<Vec<_>>().join(" | ")
}

fn of_pod_set(engine: &Engine, pod_set: &PodSetFlavorAssignment) -> String {
    let trials = pod_set.trials.iter().map(|one| of_flavor(engine, one));
    trials.collect::<Vec<_>>().join(", ")
}

fn of_flavor(engine: &Engine, trial: &FlavorTrialResult) -> String {
    let mode = match trial.granular_mode.preemption_mode {
        PreemptionMode::NoFit(_) => "NoFit",
        PreemptionMode::NoCandidates => "preemptionMode=NoCandidates",
        PreemptionMode::Preempt => "preemptionMode=Preempt",
        PreemptionMode::Reclaim => "preemptionMode=Reclaim",
        PreemptionMode::Fit => "Fit",
    };
    let mut parts = vec![mode.to_owned()];
    if trial.granular_mode.borrow > 0 {
        parts.push(format!("borrow={}", trial.granular_mode.borrow));
    }
    if !trial.reasons.is_empty() {
        parts.push(reason_messages(engine, &trial.reasons).join(", "));
    }
    format!("{}({})", engine.names().flavors.name(trial.flavor), parts.join(";"))
}
