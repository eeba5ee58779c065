//! The flavors that a scan looked at before it assigned others, in upstream's words: a part of the Event QuotaReserved.
//!
//! Source: docs/reference/kueue.md §6.3.

use crate::cycle::entry::CycleEntry;
use crate::engine::Engine;
use crate::explain::condition_message::{in_assignment_order, reason_messages};
use crate::flavors::assignment::{FlavorTrialResult, PodSetFlavorAssignment};
use crate::flavors::granular_mode::PreemptionMode;

/// Pod sets with the flavors that do not simply fit them: the mode, the height of borrowing, the reasons. Empty if all fit
/// without borrowing.
pub fn considered_flavors(engine: &Engine, entry: &CycleEntry) -> String {
    let pod_sets = in_assignment_order(entry).into_iter();
    let considered = pod_sets.filter(|(one, _)| !one.trials.is_empty());
    let parts = considered.map(|(one, spec)| format!("{}: {}", spec.name, of_pod_set(engine, one)));
    parts.collect::<Vec<_>>().join(" | ")
}

fn of_pod_set(engine: &Engine, pod_set: &PodSetFlavorAssignment) -> String {
    let name = |trial: &FlavorTrialResult| engine.names().flavors.name(trial.flavor);
    let mut trials: Vec<&FlavorTrialResult> = pod_set.trials.iter().collect();
    trials.sort_by(|left, right| name(left).cmp(name(right)));
    trials.into_iter().map(|one| of_flavor(engine, one)).collect::<Vec<_>>().join(", ")
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
    // Several resources may have the same reason.
    let mut reasons = reason_messages(engine, &trial.reasons);
    reasons.sort();
    reasons.dedup();
    parts.extend(reasons);
    format!("{}({})", engine.names().flavors.name(trial.flavor), parts.join(";"))
}
