//! The evaluation of one Workload as if it were the only head, for what-ifs.

use crate::cycle::entry::CycleEntry;
use crate::cycle::nominate::{EvaluationLimits, evaluate};
use crate::cycle::process::has_usable_targets;
use crate::flavors::assignment::FlavorAssignmentMode;
use crate::ids::{QueueId, WorkloadId};
use crate::state::State;

/// How a Workload would come to its quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admissibility {
    /// Enough is free, or will be when evicted Workloads have left.
    Fits,
    /// It would preempt other Workloads.
    Preempts,
}

/// Evaluates a Workload that is in no cycle; `None` if it would get no quota. Clusters do not count. Every flavor is tried, also
/// those that an earlier scan has passed. Usage is as before afterwards.
pub(crate) fn evaluate_alone(
    state: &mut State,
    queue: QueueId,
    workload: WorkloadId,
) -> Option<Admissibility> {
    let mark = state.quota.begin_simulation();
    let mut entry = CycleEntry::new(state, queue, workload);
    evaluate(state, &mut entry, EvaluationLimits::default());
    let found = admissibility(state, &entry);
    state.quota.end_simulation(mark);
    found
}

fn admissibility(state: &mut State, entry: &CycleEntry) -> Option<Admissibility> {
    match entry.assignment.mode() {
        FlavorAssignmentMode::NoFit => None,
        FlavorAssignmentMode::Fit | FlavorAssignmentMode::DeferredFit => Some(Admissibility::Fits),
        FlavorAssignmentMode::Preempt => {
            has_usable_targets(state, entry, &[]).then_some(Admissibility::Preempts)
        }
    }
}
