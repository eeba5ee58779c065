//! Variants (gate ConcurrentAdmission): several Workloads for one job, each allowed other flavors, at most one
//! admitted.
//!
//! Variants compete like other Workloads, each within its allowed flavors. A variant is skipped while a sibling in
//! its ClusterQueue is admitted with an earlier flavor. If a variant fits and a sibling is admitted with a later
//! flavor, the variant gets nothing yet: the sibling is evicted, provided that the ClusterQueue allows migration to
//! the variant's flavor. A sibling that a workload slice took over from counts as ended. Variants are created, and
//! their preemption gates opened, outside of the engine. Source: docs/reference/kueue.md §4.4 step 1, §4.8 steps 1 and
//! 12, §4.13.
//!
//! Cost: nothing without allowed flavors; for a variant, one pass over its siblings.

use crate::checks::is_admitted;
use crate::ids::{FlavorId, QueueId, WorkloadId};
use crate::queues::layer::QueueLayer;
use crate::slices::SliceClaims;
use crate::state::State;
use crate::workloads::layer::WorkloadLayer;

/// What has to happen before a fitting variant reserves quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Migration {
    /// This sibling is evicted first.
    From(WorkloadId),
    /// Nothing: migration to its flavor is not allowed.
    Refused,
}

/// A sibling that is admitted with an earlier flavor than `id`.
pub(crate) fn better_variant(state: &State, id: WorkloadId, queue: QueueId) -> Option<WorkloadId> {
    let own = rank(&state.queues, &state.workloads, id, queue)?;
    admitted_siblings(state, id, queue).find(|&(rank, _)| rank < own).map(|(_, sibling)| sibling)
}

/// The migration that precedes a reservation of `id`, which fits.
pub(crate) fn migration(state: &State, id: WorkloadId, queue: QueueId) -> Option<Migration> {
    let own = rank(&state.queues, &state.workloads, id, queue)?;
    let worst = admitted_siblings(state, id, queue).max().filter(|&(rank, _)| rank > own);
    // Of several siblings on worse flavors the worst is evicted first; upstream takes any.
    worst.map(|(_, sibling)| {
        if may_migrate(&state.queues, queue, own) {
            Migration::From(sibling)
        } else {
            Migration::Refused
        }
    })
}

/// Whether the ClusterQueue allows migration to its flavor with this rank.
fn may_migrate(queues: &QueueLayer, queue: QueueId, to: usize) -> bool {
    let spec = queues.at(queue).spec.as_deref();
    let last = spec.and_then(|spec| spec.last_acceptable_flavor);
    // Without a last acceptable flavor, or if the ClusterQueue does not list it, every flavor is
    // acceptable.
    last.and_then(|last| rank_of(queues, queue, last)).is_none_or(|last| to <= last)
}

/// Siblings that are admitted in the same ClusterQueue, with the ranks of their flavors.
fn admitted_siblings(
    state: &State,
    id: WorkloadId,
    queue: QueueId,
) -> impl Iterator<Item = (usize, WorkloadId)> + '_ {
    let State { names, queues, workloads, .. } = state;
    let claims = SliceClaims::new(names, workloads);
    let here = move |sibling: WorkloadId| {
        let held = workloads.admission(sibling)?;
        // A sibling with a reservation whose checks are not ready is not admitted yet.
        let admitted = held.queue == queue && is_admitted(queues, workloads, sibling);
        // After a slice took its quota over it is to be finished, and an eviction would charge it again.
        let counts = admitted && claims.quota_successor(sibling).is_none();
        Some((rank(queues, workloads, sibling, queue)?, sibling)).filter(|_| counts)
    };
    workloads.siblings(id).filter_map(here)
}

/// The rank of a variant's first allowed flavor in the order of the ClusterQueue.
fn rank(
    queues: &QueueLayer,
    workloads: &WorkloadLayer,
    id: WorkloadId,
    queue: QueueId,
) -> Option<usize> {
    let class = workloads.class(id);
    rank_of(queues, queue, *class.allowed.as_ref()?.first()?)
}

fn rank_of(queues: &QueueLayer, queue: QueueId, flavor: FlavorId) -> Option<usize> {
    let group = queues.at(queue).groups.first()?;
    group.flavors.iter().position(|&known| known == flavor)
}
