//! Requeues a head that got no quota: active, inadmissible alone, or inadmissible with its equivalence class.
//!
//! Source: docs/reference/kueue.md §3.4.

use crate::cycle::entry::{CycleEntry, CycleOutcome, RequeueDestination};
use crate::flavors::assignment::FlavorAssignmentMode;
use crate::queues::cluster_queue::ClusterQueueRecord;
use crate::queues::layer::QueueLayer;
use crate::reservations::mark_evicted;
use crate::settings::EngineSettings;
use crate::spec::{PreemptionPolicy, QueueingStrategy};
use crate::state::State;
use crate::time::Time;
use crate::workloads::capacity_waits::CapacityWait;
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::record::{LastAssignment, TriedFlavor};

/// Requeues a head and records how far its flavor scan got.
pub(super) fn requeue(state: &mut State, entry: &mut CycleEntry) {
    let id = entry.workload;
    mark_targets_evicted(state, entry);
    record_last_assignment(&state.settings, &mut state.workloads, &state.queues, entry);
    entry.requeue = destination(&state.settings, &state.workloads, &state.queues, entry);
    // Freed quota does not help this Workload, so a requeue of its cohort tree leaves it out, unless it lacks quota, too.
    match entry.outcome {
        CycleOutcome::NoClusterCapacity(key) => {
            let preempts = entry.assignment.mode() == FlavorAssignmentMode::Preempt;
            let wait = CapacityWait {
                key,
                further_keys: &entry.further_keys,
                awaits_quota: preempts || entry.lacks_quota,
            };
            state.workloads.await_capacity(id, wait);
        }
        _ => state.workloads.end_wait(id),
    }
    let State { settings, queues, workloads, .. } = state;
    let sticky = queues.at(entry.queue).strategy == QueueingStrategy::BestEffortFifo;
    let refused_from = refused_from(workloads, queues.at(entry.queue), entry);
    queues.change_pending(entry.queue, |pending| {
        match entry.requeue {
            RequeueDestination::NotRequeued => {}
            RequeueDestination::Inadmissible => pending.push_inadmissible(id, workloads),
            RequeueDestination::Active => pending.push_active(id, workloads),
            RequeueDestination::InadmissibleClass => {
                pending.push(id, workloads);
                pending.mark_class_inadmissible(id, refused_from, workloads);
            }
        }
        match preemptor_mark(settings, entry) {
            PreemptorMark::Set => pending.set_preemptor(id, sticky),
            PreemptorMark::Unchanged => {}
            PreemptorMark::Cleared => pending.clear_preemptor(id),
        }
    });
}

/// What a requeue does to the mark of the head as preemptor of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PreemptorMark {
    Set,
    Unchanged,
    Cleared,
}

fn preemptor_mark(settings: &EngineSettings, entry: &CycleEntry) -> PreemptorMark {
    match entry.outcome {
        // These wait for evictions, which must not cost the head its position (§3.4).
        CycleOutcome::Preempting | CycleOutcome::Migrating { .. } => PreemptorMark::Set,
        // One that only waits for pods that are to leave evicts nothing, and more urgent heads precede it (§4.11). If it is the
        // preemptor, these may be the pods of its targets.
        CycleOutcome::Deferred if entry.assignment.awaits_leaving_pods => PreemptorMark::Unchanged,
        CycleOutcome::Deferred => PreemptorMark::Set,
        // The same pods may take the room of a cluster, and an inadmissible Workload holds back no other one.
        CycleOutcome::NoClusterCapacity(_) => PreemptorMark::Unchanged,
        // Its preemptions do not help it any more, so that they are no reason to hold back others (§3.4).
        _ if settings.release_failed_preemptors => PreemptorMark::Cleared,
        _ => PreemptorMark::Unchanged,
    }
}

/// Targets count as evicted at once, not only when the watch shows the eviction (§4.8).
fn mark_targets_evicted(state: &mut State, entry: &CycleEntry) {
    match entry.outcome {
        CycleOutcome::Preempting => {
            for target in &entry.targets {
                mark_evicted(state, target.workload);
            }
        }
        CycleOutcome::Migrating { from } => mark_evicted(state, from),
        _ => {}
    }
}

/// Requeues a head that was not processed.
pub(super) fn requeue_unprocessed(
    workloads: &mut WorkloadLayer,
    queues: &mut QueueLayer,
    entry: &mut CycleEntry,
) {
    entry.requeue = RequeueDestination::Active;
    queues.change_pending(entry.queue, |pending| pending.push_active(entry.workload, workloads));
}

fn destination(
    settings: &EngineSettings,
    workloads: &WorkloadLayer,
    queues: &QueueLayer,
    entry: &CycleEntry,
) -> RequeueDestination {
    let queue = queues.at(entry.queue);
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
        _ if workloads.at(entry.workload).last_assignment.is_some() => RequeueDestination::Active,
        CycleOutcome::NoFit | CycleOutcome::NoCandidates
            if settings.scheduling_equivalence_hashing && entry.class.replaced_slice.is_none() =>
        {
            RequeueDestination::InadmissibleClass
        }
        _ => RequeueDestination::Inadmissible,
    }
}

/// The time from which on Workloads of the class are refused with the head; `None` for all of the class. An older one may have
/// preemption candidates that are newer than itself, but not newer than the head (§3.4).
fn refused_from(
    workloads: &WorkloadLayer,
    queue: &ClusterQueueRecord,
    entry: &CycleEntry,
) -> Option<Time> {
    let within = queue.preemption.within_cluster_queue;
    let depends_on_time = entry.outcome == CycleOutcome::NoCandidates
        && within == PreemptionPolicy::LowerOrNewerEqualPriority;
    depends_on_time.then(|| workloads.at(entry.workload).queued_at)
}

/// The flavor scan continues next time only if flavors are left to try and the head was neither admitted nor close to
/// it.
fn record_last_assignment(
    settings: &EngineSettings,
    workloads: &mut WorkloadLayer,
    queues: &QueueLayer,
    entry: &CycleEntry,
) {
    let continues = match entry.outcome {
        CycleOutcome::NoFit | CycleOutcome::NoCandidates | CycleOutcome::MigrationRefused => true,
        // Without the gate a head that lost to another starts its scan again.
        CycleOutcome::Skipped | CycleOutcome::BetterVariantAdmitted => {
            settings.flavor_fungibility_preserve_scan_progress
        }
        _ => false,
    };
    let last_assignment = (continues && entry.assignment.has_untried())
        .then(|| Box::new(last_assignment(queues, entry)));
    workloads.set_last_assignment(entry.workload, last_assignment);
}

fn last_assignment(queues: &QueueLayer, entry: &CycleEntry) -> LastAssignment {
    let mut tried = smallvec::SmallVec::new();
    for one in &entry.assignment.pod_sets {
        let pod_set = u16::try_from(one.pod_set).unwrap_or(u16::MAX);
        for choice in &one.flavor_assignments {
            let resource = choice.resource;
            tried.extend(choice.tried.map(|index| TriedFlavor { pod_set, resource, index }));
        }
    }
    LastAssignment { cycle: queues.cycle(), generation: entry.generation, tried }
}
