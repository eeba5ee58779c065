//! Which Workloads a policy allows as candidates, and their order under fair sharing.
//!
//! Source: docs/reference/kueue.md §4.9, §4.10.

use std::cmp::Ordering;

use crate::ids::{NodeId, QueueId, Slot, WorkloadId};
use crate::preemption::candidate_pool::by_usage;
use crate::preemption::fit::uses;
use crate::preemption::request::PreemptionRequest;
use crate::preemption::simulation::queue_of;
use crate::spec::PreemptionPolicy;
use crate::state::State;

/// Whether `policy` allows the preemptor to preempt `candidate`.
pub(super) fn allowed(
    state: &State,
    preemptor: WorkloadId,
    candidate: WorkloadId,
    policy: PreemptionPolicy,
) -> bool {
    let (own, other) = (state.workloads.at(preemptor), state.workloads.at(candidate));
    let lower = other.priority < own.priority;
    match policy {
        PreemptionPolicy::Never => false,
        PreemptionPolicy::LowerPriority => lower,
        PreemptionPolicy::LowerOrNewerEqualPriority => {
            lower || (other.priority == own.priority && own.queued_at < other.queued_at)
        }
        PreemptionPolicy::Any => true,
    }
}

/// Reserving Workloads of `queue` that `policy` allows and that use a contested slot.
pub(super) fn of_queue<'a>(
    state: &'a State,
    need: &'a PreemptionRequest<'_>,
    queue: QueueId,
    policy: PreemptionPolicy,
) -> impl Iterator<Item = WorkloadId> + 'a {
    state.queue(queue).reserving.iter().copied().filter(move |&id| {
        // A hidden Workload is removed by an enclosing simulation. The old slice hands its quota
        // over to the preemptor and is finished, not preempted (§4.13).
        !state.workloads.at(id).hidden
            && need.attempt.old != Some(id)
            && allowed(state, need.attempt.workload, id, policy)
            && uses(state, id, need.contested)
    })
}

/// Order of candidates: evicted first, then other ClusterQueues, then more LocalQueue usage (admission fair sharing), lower
/// priority, later quota reservation, uid.
pub(super) fn order(state: &State, own: QueueId, left: WorkloadId, right: WorkloadId) -> Ordering {
    let evicted = |id: WorkloadId| is_evicted(state, id);
    let own_queue = |id: WorkloadId| queue_of(state, id) == own;
    let since = |id| state.workloads.at(id).admission.as_deref().map(|one| one.reserved_at);
    let (a, b) = (state.workloads.at(left), state.workloads.at(right));
    evicted(right)
        .cmp(&evicted(left))
        .then(own_queue(left).cmp(&own_queue(right)))
        .then_with(|| {
            by_usage(
                &state.queues,
                &state.workloads,
                (queue_of(state, left), left),
                (queue_of(state, right), right),
            )
        })
        .then(a.priority.cmp(&b.priority))
        .then(since(right).cmp(&since(left)))
        .then(a.uid.cmp(&b.uid))
}

/// Whether a Workload is being evicted already.
pub(super) fn is_evicted(state: &State, id: WorkloadId) -> bool {
    state.workloads.at(id).admission.as_deref().is_some_and(|one| one.evicted)
}

/// Whether a node stays within its own quota in all of `slots`.
pub(super) fn within_quota(state: &State, node: NodeId, slots: &[Slot]) -> bool {
    slots.iter().all(|&slot| {
        let cell = state.tree.at(node, slot);
        cell.usage <= cell.subtree
    })
}
