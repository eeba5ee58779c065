//! What a pending Workload lacks, and the smallest changes that would make it admissible. Each change is found by an evaluation of
//! the Workload on the live tables, which are undone ([`WhatIf`](crate::WhatIf)).
//!
//! Cost: at most 16 evaluations of this Workload, besides that of [`pending_explanation`](mod@super::pending_explanation).

use crate::amount::Amount;
use crate::cycle::alone::Admissibility;
use crate::cycle::preparation::apply_changes;
use crate::engine::Engine;
use crate::explain::change_search::ChangeSearch;
use crate::explain::explanation::{PendingExplanation, PodSetExplanation, QueueingStatus};
use crate::explain::short_flavors::short_flavors;
use crate::ids::{FlavorId, QueueId, ResourceId, WorkloadId};
use crate::pending::dequeue;
use crate::state::State;

/// Why a Workload is pending, and what would make it admissible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionExplanation {
    /// What it lacks.
    pub why: PendingExplanation,
    /// It lacks nothing of its own: other Workloads come first, or a preemption for it has begun.
    pub admissible: bool,
    /// Changes each of which would make it admissible.
    pub changes: Vec<SufficientChange>,
}

/// A change that makes a Workload admissible without any other one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SufficientChange {
    /// More nominal quota of its ClusterQueue, in the flavors of one assignment.
    MoreQuota(Vec<FlavorAmount>, Admissibility),
    /// This priority or a higher one: it would preempt.
    Priority(i64),
    /// The end of a Workload with quota.
    End(WorkloadEnd),
}

/// A Workload with quota that may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadEnd {
    /// The Workload.
    pub workload: WorkloadId,
    /// The ClusterQueue of its quota.
    pub queue: QueueId,
}

/// An amount of a resource in a flavor.
pub type FlavorAmount = (FlavorId, ResourceId, Amount);

impl Engine {
    /// Explains a pending Workload; `None` if it is unknown or holds quota. Leaves no trace.
    pub fn explain_admission(&mut self, id: WorkloadId) -> Option<AdmissionExplanation> {
        let pending = |one: &PendingExplanation| one.status != QueueingStatus::HoldsQuota;
        let mut what_if = self.what_if();
        // Changes of the configuration since the last cycle count as well.
        let state = what_if.state_mut();
        apply_changes(state);
        let why = what_if.explain_pending(id).filter(pending)?;
        let queue = why.queue.filter(|_| !why.pod_sets.is_empty() && why.better.is_none());
        let Some(queue) = queue else {
            return Some(AdmissionExplanation { why, admissible: false, changes: Vec::new() });
        };
        let state = what_if.state_mut();
        dequeue(&mut state.queues, &mut state.workloads, id);
        let (admissible, changes) = search(state, queue, id, &why.pod_sets);
        Some(AdmissionExplanation { why, admissible, changes })
    }
}

fn search(
    state: &mut State,
    queue: QueueId,
    id: WorkloadId,
    pod_sets: &[PodSetExplanation],
) -> (bool, Vec<SufficientChange>) {
    let mut search = ChangeSearch::new(state, queue, id);
    if search.evaluate().is_some() {
        return (true, Vec::new());
    }
    // No change of usage or quota gives a pod set a flavor that suits it.
    if pod_sets.iter().any(|one| !one.may_fit()) {
        return (false, Vec::new());
    }
    let short = short_flavors(search.state(), queue, pod_sets);
    let mut changes = search.more_quota(&short);
    let end = search.end(&short, pod_sets);
    // Last, because the Workload keeps the priority.
    changes.extend(search.priority());
    changes.extend(end);
    (false, changes)
}
