//! Requeues a head that got no quota: active, inadmissible alone, or inadmissible with its equivalence class.
//!
//! Source: docs/reference/kueue.md §3.4.

use crate::cycle::entry::{CycleEntry, CycleOutcome, RequeueDestination};
use crate::equivalence_class::EquivalenceClasses;
use crate::ids::WorkloadId;
use crate::queues::pending_queue::PendingQueue;
use crate::spec::QueueingStrategy;
use crate::state::State;
use crate::workloads::record::ScanMemory;
use crate::workloads::table::WorkloadTable;

/// Requeues a head and records how far its flavor scan got.
pub(super) fn requeue(state: &mut State, entry: &mut CycleEntry) {
    let id = entry.workload;
    // Targets count as evicted at once, not only when the watch shows the eviction (§4.8).
    if entry.outcome == CycleOutcome::Preempting {
        for target in &entry.targets {
            crate::reservations::mark_evicted(state, target.workload);
        }
    }
    if let CycleOutcome::Migrating { from } = entry.outcome {
        crate::reservations::mark_evicted(state, from);
    }
    remember(state, entry);
    entry.requeue = destination(state, entry);
    let waits = matches!(
        entry.outcome,
        CycleOutcome::Preempting | CycleOutcome::Deferred | CycleOutcome::Migrating { .. }
    );
    // Freed quota does not help this Workload, so a requeue of its cohort tree leaves it out.
    if let CycleOutcome::NoClusterCapacity(key) = entry.outcome {
        state.workloads.await_capacity(id, key);
    }
    let State { queues, workloads, classes, .. } = state;
    let queue = queues[entry.queue.index()].as_mut().expect("invariant: heads have a queue");
    match entry.requeue {
        RequeueDestination::NotRequeued => {}
        RequeueDestination::Inadmissible => queue.pending.push_inadmissible(id, workloads),
        RequeueDestination::Active => queue.pending.push_active(id, workloads),
        RequeueDestination::InadmissibleClass => {
            queue.pending.push(id, workloads);
            make_class_inadmissible(&mut queue.pending, id, workloads, classes);
        }
    }
    if waits {
        // The preemptor keeps its position until it is admitted, even if its next attempts fail.
        queue.pending.set_preemptor(id, queue.strategy == QueueingStrategy::BestEffortFifo);
    }
    state.list_if_head(entry.queue);
}

/// Makes all pending Workloads of one equivalence class inadmissible. A class is referenced as long as it is
/// inadmissible.
pub(super) fn make_class_inadmissible(
    pending: &mut PendingQueue,
    id: WorkloadId,
    workloads: &WorkloadTable,
    classes: &mut EquivalenceClasses,
) {
    let one = workloads.at(id);
    for _ in 0..pending.mark_class_inadmissible(one.class, one.priority, workloads) {
        classes.retain(one.class);
    }
}

/// Requeues a head that was not processed.
pub(super) fn requeue_unprocessed(state: &mut State, entry: &mut CycleEntry) {
    entry.requeue = RequeueDestination::Active;
    let State { queues, workloads, .. } = state;
    let queue = queues[entry.queue.index()].as_mut().expect("invariant: heads have a queue");
    queue.pending.push_active(entry.workload, workloads);
    state.list_if_head(entry.queue);
}

fn destination(state: &State, entry: &CycleEntry) -> RequeueDestination {
    let queue = state.queue(entry.queue);
    match entry.outcome {
        // Inadmissible under StrictFIFO too (§3.4): the next cycle would refuse them again.
        CycleOutcome::NamespaceMismatch | CycleOutcome::NoClusterCapacity(_) => {
            RequeueDestination::Inadmissible
        }
        // The head of a StrictFIFO queue blocks the queue until it is admitted (§3.4).
        _ if queue.strategy == QueueingStrategy::StrictFifo => RequeueDestination::Active,
        CycleOutcome::Preempting
        | CycleOutcome::Deferred
        | CycleOutcome::Skipped
        | CycleOutcome::BetterVariantAdmitted
        | CycleOutcome::Migrating { .. } => RequeueDestination::Active,
        // Flavors are left to try, and the next cycle continues with them (§3.4).
        _ if state.workloads.at(entry.workload).scan.is_some() => RequeueDestination::Active,
        CycleOutcome::NoFit | CycleOutcome::NoCandidates
            if state.settings.scheduling_equivalence_hashing
                && entry.class.replaced_slice.is_none() =>
        {
            RequeueDestination::InadmissibleClass
        }
        _ => RequeueDestination::Inadmissible,
    }
}

/// The flavor scan continues next time only if flavors are left to try and the head was neither admitted nor close to
/// it.
fn remember(state: &mut State, entry: &CycleEntry) {
    let goes_on = match entry.outcome {
        CycleOutcome::NoFit | CycleOutcome::NoCandidates | CycleOutcome::MigrationRefused => true,
        // Without the gate a head that lost to another starts its scan again.
        CycleOutcome::Skipped | CycleOutcome::BetterVariantAdmitted => {
            state.settings.flavor_fungibility_preserve_scan_progress
        }
        _ => false,
    };
    let memory =
        (goes_on && entry.assignment.has_untried()).then(|| Box::new(memory(state, entry)));
    state.workloads.at_mut(entry.workload).scan = memory;
}

fn memory(state: &State, entry: &CycleEntry) -> ScanMemory {
    let mut tried = smallvec::SmallVec::new();
    for (index, one) in entry.assignment.pod_sets.iter().enumerate() {
        let pod_set = u16::try_from(index).unwrap_or(u16::MAX);
        for choice in &one.flavor_assignments {
            tried.extend(choice.tried.map(|flavor| (pod_set, choice.resource, flavor)));
        }
    }
    ScanMemory { cycle: state.cycle, generation: entry.generation, tried }
}
