//! Replaces failed nodes of reserving Workloads, or evicts the Workloads.
//!
//! Failures are handled before heads and take no quota. One failed node is replaced. A Workload with several failed
//! nodes is evicted, and so is one without a replacement, unless an eviction in progress or pods that are to leave free a place, or
//! the gate TASFailedNodeReplacementFailFast is off: then the attempt is repeated when capacity changes. Source:
//! docs/reference/kueue.md §3.7, §4.8 step 3, §4.11.

use crate::cycle::entry::{CycleEntry, CycleOutcome, RequeueDestination};
use crate::flavors::assignment::{Assignment, FlavorAssignmentMode, PodSetFlavorAssignment};
use crate::ids::{QueueId, TopologyNodeId, WorkloadId};
use crate::names::Names;
use crate::preemption::simulation::{simulate_leaving, simulate_removal};
use crate::reason::NoFitReason;
use crate::reservations::{mark_evicted, move_pods};
use crate::state::State;
use crate::topology;
use crate::topology::PlacementFailure;
use crate::topology::layer::TopologyLayer;
use crate::topology::node_failures::NodeFailure;
use crate::workloads::layer::WorkloadLayer;

/// Failures to attempt now; the most urgent Workload comes last. Workloads that are being evicted are dropped.
pub(super) fn take_pending(
    names: &Names,
    workloads: &WorkloadLayer,
    topology: &mut TopologyLayer,
) -> Vec<NodeFailure> {
    let mut pending = topology.node_failures_mut().take_pending(|failure| {
        let admission =
            workloads.get(failure.workload).and_then(|workload| workload.admission.as_deref());
        // The pods of an evicted Workload end anyway.
        admission.is_some_and(|admission| !admission.evicted)
    });
    pending.sort_by_key(|failure| {
        let workload = workloads.at(failure.workload);
        let name = names.workloads.name(failure.workload).to_owned();
        (std::cmp::Reverse(workload.priority), workload.queued_at, name)
    });
    pending.reverse();
    pending
}

/// Decides about one failure. `None` if the Workload has no pods on these nodes any more.
pub(super) fn replace(state: &mut State, mut failure: NodeFailure) -> Option<CycleEntry> {
    let entry = decide(state, &mut failure)?;
    if entry.outcome == CycleOutcome::NodeNotReplaced {
        state.topology.node_failures_mut().retry_later(failure);
    }
    Some(entry)
}

fn decide(state: &mut State, failure: &mut NodeFailure) -> Option<CycleEntry> {
    let id = failure.workload;
    let admission = state.workloads.admission(id)?;
    let (queue, held) = (admission.queue, admission.pod_sets.clone());
    failure
        .nodes
        .retain(|node| topology::is_assigned_to(&state.names, &state.topology, &held, *node));
    // Nodes from which the pods were moved already are gone from the list.
    let &first = failure.nodes.first()?;
    // One failed node is replaced; a second failure evicts the Workload (§4.11).
    if failure.nodes.len() > 1 {
        return Some(evict(state, failure, queue));
    }
    Some(match topology::find_replacement_assignment(state, id, first) {
        Ok(moved) => {
            state.topology.node_failures_mut().replaced(id, held);
            move_pods(&mut state.workloads, &mut state.topology, id, moved);
            entry(state, id, queue, CycleOutcome::NodeReplaced)
        }
        Err(_)
            if state.settings.tas_failed_node_replacement_fail_fast
                && !ends_free_a_place(state, id, first) =>
        {
            evict(state, failure, queue)
        }
        // The Workload keeps its other pods, and the attempt is repeated when capacity changes.
        Err((pod_set, reason)) => {
            let mut entry = entry(state, id, queue, CycleOutcome::NodeNotReplaced);
            explain(&mut entry, pod_set, reason);
            entry
        }
    })
}

/// Whether there is a replacement once the Workloads that are being evicted are gone, and pods that are to leave have left: the pods
/// of an evicted Workload may take their room longer than its reservation lasts. Cost: a pass over all reserving Workloads and one
/// search, only before an eviction.
fn ends_free_a_place(state: &mut State, id: WorkloadId, node: TopologyNodeId) -> bool {
    let reserving = state.queues.ids().flat_map(|queue| &state.queues.at(queue).reserving);
    let leaves = |id: &WorkloadId| {
        let admission = state.workloads.admission(*id);
        admission.is_some_and(|one| one.evicted && !one.taken_over)
    };
    let evicted: Vec<WorkloadId> = reserving.copied().filter(leaves).collect();
    if evicted.is_empty() && !state.topology.has_leaving() {
        return false;
    }
    simulate_leaving(state, |state| {
        simulate_removal(state, &evicted, |state| {
            topology::find_replacement_assignment(state, id, node).is_ok()
        })
    })
}

/// Evicts a Workload whose failed nodes have no replacement.
fn evict(state: &mut State, failure: &NodeFailure, queue: QueueId) -> CycleEntry {
    let mut entry = entry(state, failure.workload, queue, CycleOutcome::NodesFailed);
    let nodes = failure.nodes.iter().copied().collect();
    if let Some(one) = entry.assignment.pod_sets.first_mut() {
        one.reasons.push(NoFitReason::NodesFailed(nodes));
    }
    mark_evicted(state, failure.workload);
    entry
}

/// The entry of a decision, with the present admission as its assignment.
fn entry(state: &mut State, id: WorkloadId, queue: QueueId, outcome: CycleOutcome) -> CycleEntry {
    let admission = state.workloads.admission(id);
    let held = admission.map(|one| one.pod_sets.clone()).unwrap_or_default();
    let held = held.into_iter().enumerate();
    let pod_sets = held.map(|(pod_set, one)| {
        let assigned = PodSetFlavorAssignment::held(&mut state.quota, pod_set, &one);
        PodSetFlavorAssignment { domains: one.domains, ..assigned }
    });
    let pod_sets = pod_sets.collect();
    CycleEntry {
        workload: id,
        queue,
        outcome,
        assignment: Assignment { pod_sets, ..Assignment::default() },
        targets: Vec::new(),
        replaced_slice: None,
        targets_recomputed: false,
        targets_taken: false,
        requeue: RequeueDestination::NotRequeued,
        further_keys: Vec::new(),
        lacks_quota: false,
        nominated_borrow: 0,
        reserved: false,
        generation: state.queues.at(queue).generation,
        class: state.class_of(id),
    }
}

fn explain(entry: &mut CycleEntry, pod_set: usize, reason: PlacementFailure) {
    let one = &mut entry.assignment.pod_sets[pod_set];
    one.reasons.push(NoFitReason::TopologyPlacement(Box::new(reason)));
    one.flavor_assignments
        .iter_mut()
        .for_each(|choice| choice.mode = FlavorAssignmentMode::Preempt);
}
