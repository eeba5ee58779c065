//! Variants: several Workloads that are one, each for another flavor, of which the best that can be had shall run.
//!
//! Variants of a family compete like any others, each within the flavors that it is allowed. Whoever has a sibling in its
//! queue that is admitted with a flavor before its own is passed over. Whoever fits, and has a sibling that is admitted
//! with a flavor behind its own, gets nothing yet: the sibling is evicted, if the queue lets variants move to that flavor,
//! and the place of both stays one. What makes variants, and opens their preemption gates, is not the engine's business.
//! Source: docs/reference/kueue.md §4.4 step 1, §4.8 steps 1 and 12, §4.13; gate ConcurrentAdmission.
//!
//! Cost: nothing for those who are not restricted to flavors; for a variant, a look at its family.

use crate::checks::is_admitted;
use crate::ids::{FlavorId, QueueId, WorkloadId};
use crate::state::State;

/// What a variant that fits has to do first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Migration {
    /// This sibling has to go.
    From(WorkloadId),
    /// Nothing: its flavor is too far behind for a move.
    Refused,
}

/// The sibling that is admitted with a flavor before that of `id`.
pub(crate) fn better(state: &State, id: WorkloadId, queue: QueueId) -> Option<WorkloadId> {
    let own = rank(state, id, queue)?;
    admitted(state, id, queue).find(|&(rank, _)| rank < own).map(|(_, sibling)| sibling)
}

/// What comes before a reservation of `id`, which fits.
pub(crate) fn migration(state: &State, id: WorkloadId, queue: QueueId) -> Option<Migration> {
    let own = rank(state, id, queue)?;
    let worst = admitted(state, id, queue).max().filter(|&(rank, _)| rank > own);
    worst.map(|(_, sibling)| {
        if may_move(state, queue, own) { Migration::From(sibling) } else { Migration::Refused }
    })
}

/// Whether variants of a queue may move to its flavor with this rank.
fn may_move(state: &State, queue: QueueId, to: usize) -> bool {
    let spec = state.queue(queue).spec.as_deref();
    let last = spec.and_then(|spec| spec.last_acceptable_flavor);
    last.and_then(|last| rank_of(state, queue, last)).is_none_or(|last| to <= last)
}

/// Siblings that are admitted in the same queue, with the ranks of their flavors.
fn admitted(
    state: &State,
    id: WorkloadId,
    queue: QueueId,
) -> impl Iterator<Item = (usize, WorkloadId)> + '_ {
    let here = move |sibling: WorkloadId| {
        let held = state.workloads.get(sibling)?.admission.as_deref()?;
        let counts = held.queue == queue && is_admitted(state, sibling);
        Some((rank(state, sibling, queue)?, sibling)).filter(|_| counts)
    };
    state.variant_groups.siblings(id).filter_map(here)
}

/// The place of a variant's flavor, the first that it is allowed, in the order of the queue.
fn rank(state: &State, id: WorkloadId, queue: QueueId) -> Option<usize> {
    let class = state.classes.at(state.workloads.at(id).class);
    rank_of(state, queue, *class.allowed.as_ref()?.first()?)
}

fn rank_of(state: &State, queue: QueueId, flavor: FlavorId) -> Option<usize> {
    let group = state.queue(queue).groups.first()?;
    group.flavors.iter().position(|&known| known == flavor)
}
