//! Who may be preempted, and in which order they are considered.

use std::cmp::Ordering;

use crate::ids::{NodeId, QueueId, Slot, WorkloadId};
use crate::preemption::{PreemptionRequest, queue_of, uses};
use crate::spec::PreemptionPolicy;
use crate::state::State;

/// Whether `policy` lets the preemptor take `candidate`.
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

/// Workloads of `queue` that `policy` allows and that use something contested.
pub(super) fn of_queue<'a>(
    state: &'a State,
    need: &'a PreemptionRequest<'_>,
    queue: QueueId,
    policy: PreemptionPolicy,
) -> impl Iterator<Item = WorkloadId> + 'a {
    state.queue(queue).reserving.iter().copied().filter(move |&id| {
        !state.workloads.at(id).hidden
            && need.attempt.old != Some(id)
            && allowed(state, need.attempt.workload, id, policy)
            && uses(state, id, need.contested)
    })
}

/// Those already evicted first, then other queues, at home those whose LocalQueue used more, lower priority, later admission, uid.
pub(super) fn order(state: &State, own: QueueId, left: WorkloadId, right: WorkloadId) -> Ordering {
    let evicted = |id: WorkloadId| is_evicted(state, id);
    let at_home = |id: WorkloadId| queue_of(state, id) == own;
    let since = |id| state.workloads.at(id).admission.as_deref().map(|one| one.reserved_at);
    let (a, b) = (state.workloads.at(left), state.workloads.at(right));
    evicted(right)
        .cmp(&evicted(left))
        .then(at_home(left).cmp(&at_home(right)))
        .then_with(|| {
            by_usage(state, (queue_of(state, left), left), (queue_of(state, right), right))
        })
        .then(a.priority.cmp(&b.priority))
        .then(since(right).cmp(&since(left)))
        .then(a.uid.cmp(&b.uid))
}

/// Within one queue that shares by usage, whoever's LocalQueue used more goes first.
pub(super) fn by_usage(
    state: &State,
    (queue, left): (QueueId, WorkloadId),
    (other, right): (QueueId, WorkloadId),
) -> Ordering {
    let pending = &state.queue(queue).pending;
    if queue != other || !pending.has_fair_sharing() {
        return Ordering::Equal;
    }
    let share = |id| pending.share(state.workloads.at(id));
    share(right).cmp(&share(left))
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
