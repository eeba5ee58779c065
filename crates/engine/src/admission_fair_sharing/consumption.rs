//! Keeps the ledger of admission fair sharing and the pending queues that order by it up to date.
//!
//! A pending queue with admission fair sharing keeps the usage of every LocalQueue that points to it; each change of the
//! ledger is copied there. Source: docs/reference/kueue.md §3.8.
//!
//! Cost: per sample one pass over the reserving Workloads of the ClusterQueue; per reservation one ledger entry; nothing
//! without admission fair sharing.

use crate::admission_fair_sharing::AdmissionFairSharing;
use crate::admission_fair_sharing::ledger::{Sums, exact};
use crate::amount::Amount;
use crate::checks;
use crate::ids::{LocalQueueId, QueueId, ResourceId, WorkloadId};
use crate::spec::FairSharingWeight;
use crate::state::State;
use crate::time::Time;

/// Applies a new configuration to all ClusterQueues. `None` switches admission fair sharing off.
pub(crate) fn configure(state: &mut State, settings: Option<AdmissionFairSharing>) {
    state.ledger.configure(settings);
    for index in 0..state.queues.len() {
        cluster_queue_changed(state, QueueId::from(index));
    }
}

/// Replaces the consumption of a LocalQueue by the one recorded in its status.
pub(crate) fn set_consumed(
    state: &mut State,
    id: LocalQueueId,
    consumed: &[(ResourceId, Amount)],
    at: Time,
) {
    state.ledger.set_consumed(id, consumed, at);
    update_usage(state, id);
}

/// Samples every LocalQueue whose last sample is at least one sampling interval old.
pub(crate) fn sample(state: &mut State, now: Time) {
    if !state.ledger.is_on() {
        return;
    }
    for id in (0..state.local_queues.len()).map(LocalQueueId::from) {
        if state.ledger.needs_sample(id, now) && sharing_queue(state, id).is_some() {
            let usage = usage_of_local_queue(state, id);
            state.ledger.sample(id, &usage, now);
            update_usage(state, id);
        }
    }
}

/// Adds the entry penalty of a Workload that reserved quota.
pub(crate) fn add_penalty(state: &mut State, id: WorkloadId) {
    let Some(local_queue) = state.workloads.at(id).local_queue else {
        return;
    };
    if sharing_queue(state, local_queue).is_none() {
        return;
    }
    let mut usage = Sums::new();
    add_usage(state, id, &mut usage);
    state.ledger.add_penalty(id, local_queue, &usage);
    update_usage(state, local_queue);
}

/// Turns the entry penalty of a Workload into consumption when it is admitted.
pub(crate) fn admitted(state: &mut State, id: WorkloadId, now: Time) {
    if let Some(local_queue) = state.ledger.penalized(id) {
        let usage = usage_of_local_queue(state, local_queue);
        state.ledger.consume_penalty(id, &usage, now);
        update_usage(state, local_queue);
    }
}

/// Drops the entry penalty of a Workload that releases its quota before admission.
pub(crate) fn drop_penalty(state: &mut State, id: WorkloadId) {
    if let Some(local_queue) = state.ledger.drop_penalty(id) {
        update_usage(state, local_queue);
    }
}

/// Usage of the admitted Workloads of a LocalQueue.
fn usage_of_local_queue(state: &State, id: LocalQueueId) -> Sums {
    let mut usage = Sums::new();
    let Some(queue) = sharing_queue(state, id) else {
        return usage;
    };
    for &workload in &state.queue(queue).reserving {
        let own = state.workloads.at(workload).local_queue == Some(id);
        if own && checks::is_admitted(state, workload) {
            add_usage(state, workload, &mut usage);
        }
    }
    usage
}

fn add_usage(state: &State, id: WorkloadId, usage: &mut Sums) {
    let admission = state.workloads.at(id).admission.as_deref();
    for &(slot, amount) in admission.iter().flat_map(|one| &one.usage) {
        let (_, resource) = state.tree.pair(slot);
        *usage.entry(resource).or_default() += exact(amount);
    }
}

/// The ClusterQueue that a LocalQueue points to, if admission fair sharing is on there.
fn sharing_queue(state: &State, id: LocalQueueId) -> Option<QueueId> {
    let queue = state.local_queues.get(id.index())?.as_ref()?.queue;
    let spec = state.queue(queue).spec.as_ref()?;
    (spec.admission_fair_sharing && state.ledger.is_on()).then_some(queue)
}

/// Copies the usage of a LocalQueue to the pending queue that orders by it.
pub(crate) fn update_usage(state: &mut State, id: LocalQueueId) {
    let Some(queue) = sharing_queue(state, id) else {
        return;
    };
    let spec = state.local_queues.get(id.index()).and_then(Option::as_ref);
    let weight = spec.map_or(FairSharingWeight::default(), |spec| spec.weight);
    let usage = state.ledger.usage(id, weight);
    state.queue_mut(queue).pending.set_usage(id, usage);
}

/// Switches the order of a ClusterQueue's pending queue after a change of its spec or of the configuration.
pub(crate) fn cluster_queue_changed(state: &mut State, id: QueueId) {
    let Some(queue) = &state.queues[id.index()] else {
        return;
    };
    let asked = queue.spec.as_ref().is_some_and(|spec| spec.admission_fair_sharing);
    let sharing = asked && state.ledger.is_on();
    if sharing != queue.pending.has_fair_sharing() {
        state.queue_mut(id).pending.use_fair_sharing(sharing);
    }
    if sharing {
        (0..state.local_queues.len()).for_each(|one| update_usage(state, LocalQueueId::from(one)));
    }
}
