//! Keeps the ledger of admission fair sharing and the pending queues that order by it up to date.
//!
//! A pending queue with admission fair sharing keeps the usage of every LocalQueue that points to it; each change of the
//! ledger is copied there. Source: docs/reference/kueue.md §3.8.
//!
//! Cost: per sample one pass over the reserving Workloads of the ClusterQueue; per reservation one ledger entry; nothing
//! without admission fair sharing.

use crate::admission_fair_sharing::AdmissionFairSharingSettings;
use crate::admission_fair_sharing::ledger::{Sums, covers, exact};
use crate::amount::NanoAmount;
use crate::checks;
use crate::ids::{LocalQueueId, QueueId, ResourceId, WorkloadId};
use crate::queues::layer::QueueLayer;
use crate::quota::layer::QuotaLayer;
use crate::spec::FairSharingWeight;
use crate::time::Time;
use crate::workloads::layer::WorkloadLayer;

/// Applies a new configuration to all ClusterQueues. `None` switches admission fair sharing off.
pub(crate) fn configure(
    workloads: &mut WorkloadLayer,
    queues: &mut QueueLayer,
    settings: Option<AdmissionFairSharingSettings>,
) {
    if settings.is_none() {
        workloads.forget_settled_penalties(None);
    }
    queues.ledger_mut().configure(settings);
    for id in queues.ids() {
        cluster_queue_changed(queues, id);
    }
}

/// Replaces the consumption of a LocalQueue by the one recorded in its status.
pub(crate) fn set_consumed(
    queues: &mut QueueLayer,
    id: LocalQueueId,
    consumed: &[(ResourceId, NanoAmount)],
    at: Time,
) {
    queues.ledger_mut().set_consumed(id, consumed, at);
    update_usage(queues, id);
}

/// Forgets what a deleted LocalQueue consumed, and what it was charged for.
pub(crate) fn local_queue_gone(
    workloads: &mut WorkloadLayer,
    queues: &mut QueueLayer,
    id: LocalQueueId,
) {
    if !queues.ledger().is_on() {
        return;
    }
    queues.ledger_mut().remove(id);
    // One that waits for its finalizers is observed again and again, and Workloads are charged for none that is gone.
    if queues.local_queue(id).is_some() {
        workloads.forget_settled_penalties(Some(id));
    }
}

/// Samples every LocalQueue whose last sample is at least one sampling interval old.
pub(crate) fn sample(
    quota: &QuotaLayer,
    workloads: &WorkloadLayer,
    queues: &mut QueueLayer,
    now: Time,
) {
    if !queues.ledger().is_on() {
        return;
    }
    for id in queues.local_queue_ids() {
        // Each LocalQueue has a sampling interval of its own, from its last sample.
        if queues.ledger().needs_sample(id, now) && sharing_queue(queues, id).is_some() {
            let usage = usage_of_local_queue(quota, workloads, queues, id);
            queues.ledger_mut().sample(id, &usage, now);
            update_usage(queues, id);
        }
    }
}

/// Adds the entry penalty of a Workload that reserved quota. One that returns after an eviction has been charged, unless it uses more
/// now: otherwise a Workload could enter with one pod, and return with any number.
pub(crate) fn add_penalty(
    quota: &QuotaLayer,
    workloads: &WorkloadLayer,
    queues: &mut QueueLayer,
    id: WorkloadId,
) {
    let Some(local_queue) = workloads.at(id).local_queue else {
        return;
    };
    if sharing_queue(queues, local_queue).is_none() {
        return;
    }
    let mut usage = Sums::new();
    add_usage(quota, workloads, id, &mut usage);
    let penalty = queues.ledger().entry_penalty(&usage);
    let settled = workloads.at(id).settled_penalty.as_deref();
    if settled.is_some_and(|settled| covers(settled, &penalty)) {
        return;
    }
    queues.ledger_mut().add_penalty(id, local_queue, penalty);
    update_usage(queues, local_queue);
}

/// Turns the entry penalty of a Workload into consumption when it is admitted.
pub(crate) fn admitted(
    quota: &QuotaLayer,
    workloads: &mut WorkloadLayer,
    queues: &mut QueueLayer,
    id: WorkloadId,
    now: Time,
) {
    if let Some(local_queue) = queues.ledger().penalized(id) {
        let usage = usage_of_local_queue(quota, workloads, queues, local_queue);
        let penalty = queues.ledger_mut().consume_penalty(id, &usage, now);
        update_usage(queues, local_queue);
        // The Workload may have another LocalQueue since its reservation, which was charged nothing.
        if workloads.at(id).local_queue == Some(local_queue)
            && let Some(penalty) = penalty
        {
            workloads.settle_penalty(id, penalty);
        }
    }
}

/// Drops the entry penalty of a Workload that releases its quota before admission.
pub(crate) fn drop_penalty(queues: &mut QueueLayer, id: WorkloadId) {
    if let Some(local_queue) = queues.ledger_mut().drop_penalty(id) {
        update_usage(queues, local_queue);
    }
}

/// Usage of the admitted Workloads of a LocalQueue.
fn usage_of_local_queue(
    quota: &QuotaLayer,
    workloads: &WorkloadLayer,
    queues: &QueueLayer,
    id: LocalQueueId,
) -> Sums {
    let mut usage = Sums::new();
    let Some(queue) = sharing_queue(queues, id) else {
        return usage;
    };
    for &workload in &queues.at(queue).reserving {
        // A reservation that is not admitted counts by its entry penalty (§3.8).
        let own = workloads.at(workload).local_queue == Some(id);
        if own && checks::is_admitted(queues, workloads, workload) {
            add_usage(quota, workloads, workload, &mut usage);
        }
    }
    usage
}

fn add_usage(quota: &QuotaLayer, workloads: &WorkloadLayer, id: WorkloadId, usage: &mut Sums) {
    let admission = workloads.admission(id);
    for &(slot, amount) in admission.iter().flat_map(|one| &one.usage) {
        let (_, resource) = quota.tree().flavor_and_resource(slot);
        *usage.entry(resource).or_default() += exact(amount);
    }
}

/// The ClusterQueue that a LocalQueue points to, if admission fair sharing is on there.
fn sharing_queue(queues: &QueueLayer, id: LocalQueueId) -> Option<QueueId> {
    let queue = queues.local_queue(id)?.queue;
    let spec = queues.at(queue).spec.as_ref()?;
    (spec.admission_fair_sharing && queues.ledger().is_on()).then_some(queue)
}

/// Copies the usage of a LocalQueue to the pending queue that orders by it.
pub(crate) fn update_usage(queues: &mut QueueLayer, id: LocalQueueId) {
    let Some(queue) = sharing_queue(queues, id) else {
        return;
    };
    let spec = queues.local_queue(id);
    let weight = spec.map_or(FairSharingWeight::default(), |spec| spec.weight);
    let usage = queues.ledger().usage(id, weight);
    queues.change_pending(queue, |pending| pending.set_usage(id, usage));
}

/// Switches the order of a ClusterQueue's pending queue after a change of its spec or of the configuration.
pub(crate) fn cluster_queue_changed(queues: &mut QueueLayer, id: QueueId) {
    let Some(queue) = queues.find(id) else {
        return;
    };
    let asked = queue.spec.as_ref().is_some_and(|spec| spec.admission_fair_sharing);
    let sharing = asked && queues.ledger().is_on();
    if sharing != queue.pending.has_fair_sharing() {
        queues.change_pending(id, |pending| pending.use_fair_sharing(sharing));
    }
    if sharing {
        queues.local_queue_ids().for_each(|one| update_usage(queues, one));
    }
}
