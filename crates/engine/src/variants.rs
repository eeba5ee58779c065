//! Variants: several Workloads that are one, each for another flavor, of which the best that can be had shall run.
//!
//! Variants of a family compete like any others, each within the flavors that it is allowed. Whoever has a sibling in its
//! queue that is admitted with a flavor before its own is passed over. Whoever fits, and has a sibling that is admitted
//! with a flavor behind its own, gets nothing yet: the sibling is evicted, if the queue lets variants move to that flavor,
//! and the place of both stays one. What makes variants, and opens their preemption gates, is not the engine's business.
//! Source: docs/reference/kueue.md §4.4 step 1, §4.8 steps 1 and 12, §4.13; gate ConcurrentAdmission.
//!
//! Cost: nothing for those who are not restricted to flavors; for a variant, a look at its family.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::checks::is_admitted;
use crate::equivalence_class::EquivalenceClass;
use crate::ids::{FlavorId, QueueId, WorkloadId};
use crate::state::State;

/// Who belongs together. Shared with what-ifs that do not change it.
#[derive(Debug, Default, Clone)]
pub(crate) struct VariantGroups(Arc<Tables>);

#[derive(Debug, Default, Clone)]
struct Tables {
    of: BTreeMap<WorkloadId, Box<str>>,
    members: BTreeMap<Box<str>, BTreeSet<WorkloadId>>,
}

impl VariantGroups {
    /// Notes to which family a Workload belongs, if to any.
    pub(crate) fn tell(&mut self, id: WorkloadId, family: Option<&str>) {
        let known = self.0.of.get(&id).map(|known| &**known);
        if known == family {
            return;
        }
        let tables = Arc::make_mut(&mut self.0);
        if let Some(old) = tables.of.remove(&id)
            && let Some(members) = tables.members.get_mut(&old)
        {
            members.remove(&id);
            if members.is_empty() {
                tables.members.remove(&old);
            }
        }
        if let Some(new) = family {
            tables.of.insert(id, new.into());
            tables.members.entry(new.into()).or_default().insert(id);
        }
    }

    fn siblings(&self, id: WorkloadId) -> impl Iterator<Item = WorkloadId> + '_ {
        let family = self.0.of.get(&id).and_then(|family| self.0.members.get(family));
        family.into_iter().flatten().copied().filter(move |&one| one != id)
    }
}

/// What a variant that fits has to do first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Migration {
    /// This sibling has to go.
    From(WorkloadId),
    /// Nothing: its flavor is too far behind for a move.
    Refused,
}

/// Whether pods of a shape may get a flavor at all.
pub(crate) fn allows(class: &EquivalenceClass, flavor: FlavorId) -> bool {
    class.allowed.as_ref().is_none_or(|allowed| allowed.contains(&flavor))
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
    state.families.siblings(id).filter_map(here)
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
