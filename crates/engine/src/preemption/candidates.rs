//! Which Workloads a policy allows as candidates, and their order under fair sharing.
//!
//! Source: docs/reference/kueue.md §4.9, §4.10.

use std::cmp::Ordering;

use crate::ids::{NodeId, QueueId, Slot, WorkloadId};
use crate::preemption::candidate_pool::by_usage;
use crate::preemption::fit::uses;
use crate::preemption::request::PreemptionRequest;
use crate::preemption::simulation::queue_of;
use crate::preemption::tables::CandidateTables;
use crate::quota::layer::QuotaLayer;
use crate::spec::PreemptionPolicy;
use crate::workloads::layer::WorkloadLayer;

/// Whether `policy` allows the preemptor to preempt `candidate`.
pub(crate) fn allowed(
    workloads: &WorkloadLayer,
    preemptor: WorkloadId,
    candidate: WorkloadId,
    policy: PreemptionPolicy,
) -> bool {
    let (own, other) = (workloads.at(preemptor), workloads.at(candidate));
    let lower = other.priority < own.priority;
    match policy {
        PreemptionPolicy::Never => false,
        PreemptionPolicy::LowerPriority => lower,
        // Newer is a later queue-order timestamp (§4.9), not a later reservation.
        PreemptionPolicy::LowerOrNewerEqualPriority => {
            lower || (other.priority == own.priority && own.queued_at < other.queued_at)
        }
        PreemptionPolicy::Any => true,
    }
}

/// Reserving Workloads of `queue` that `policy` allows and that use a contested slot.
pub(super) fn of_queue<'a>(
    tables: CandidateTables<'a>,
    request: &'a PreemptionRequest<'_>,
    queue: QueueId,
    policy: PreemptionPolicy,
) -> impl Iterator<Item = WorkloadId> + 'a {
    let CandidateTables { workloads, queues, .. } = tables;
    queues.at(queue).reserving.iter().copied().filter(move |&id| {
        // A removed Workload is taken away by an enclosing simulation. The old slice hands its quota
        // over to the preemptor and is finished, not preempted (§4.13).
        !workloads.at(id).removed
            && request.attempt.replaced_slice != Some(id)
            && request.attempt.considers(id)
            && allowed(workloads, request.attempt.workload, id, policy)
            && uses(workloads, id, request.contested)
    })
}

/// Order of candidates: evicted first, then other ClusterQueues, then more LocalQueue usage (admission fair sharing), lower
/// priority, later quota reservation, uid.
pub(crate) fn order(
    tables: CandidateTables<'_>,
    own: QueueId,
    left: WorkloadId,
    right: WorkloadId,
) -> Ordering {
    let CandidateTables { workloads, queues, .. } = tables;
    let evicted = |id: WorkloadId| is_evicted(workloads, id);
    let own_queue = |id: WorkloadId| queue_of(workloads, id) == own;
    let since = |id| workloads.admission(id).map(|one| one.reserved_at);
    let (a, b) = (workloads.at(left), workloads.at(right));
    evicted(right)
        .cmp(&evicted(left))
        .then(own_queue(left).cmp(&own_queue(right)))
        .then_with(|| {
            by_usage(
                queues,
                workloads,
                (queue_of(workloads, left), left),
                (queue_of(workloads, right), right),
            )
        })
        .then(a.priority.cmp(&b.priority))
        .then(since(right).cmp(&since(left)))
        .then(a.uid.cmp(&b.uid))
}

/// Whether a Workload is being evicted already.
pub(super) fn is_evicted(workloads: &WorkloadLayer, id: WorkloadId) -> bool {
    workloads.admission(id).is_some_and(|one| one.evicted)
}

/// Whether a node stays within its own quota in all of `slots`.
pub(crate) fn within_quota(quota: &QuotaLayer, node: NodeId, slots: &[Slot]) -> bool {
    slots.iter().all(|&slot| {
        let cell = quota.tree().at(node, slot);
        cell.usage <= cell.subtree
    })
}
