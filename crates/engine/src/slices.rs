//! Slices of elastic jobs: a Workload that takes the place of another, with other counts, while that one runs.
//!
//! A replacement names the old slice. As long as that one holds quota in the same queue, the replacement gets the flavors
//! that the old one has, and is charged in every check for what it asks beyond it. Once the replacement holds quota itself,
//! all of it is charged to the replacement and nothing to the old slice, which keeps its record until it is finished. If the
//! replacement goes first, the old slice is charged again. So quota never counts both, whoever is told first and whatever
//! write fails. Source: docs/reference/kueue.md §4.4 step 3, §4.13; gate ElasticJobsViaWorkloadSlices.
//!
//! Places in topologies are found anew and counted beside those of the old slice, as upstream does without its gate
//! ElasticJobsViaWorkloadSlicesWithTAS. With it pods stay where those of the old slice stand, and places change hands with
//! the quota. Of holders that name each other in a ring, as they never should, those do not replace the next who got their
//! quota before it.
//!
//! Cost: a look at an empty table where nobody replaces anybody; else a few lookups by name per change of a slice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::apply::usage_of;
use crate::engine::Engine;
use crate::ids::{FlavorId, QueueId, ResourceId, WorkloadId};
use crate::pending::{dequeue, enqueue};
use crate::spec::{PodSetAdmission, QueueEligibility, WorkloadSpec};
use crate::state::State;
use crate::workload::QueuePosition;

/// Who says that it replaces a Workload, by the name of the old one. Shared with what-ifs that do not change it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Slices(Arc<BTreeMap<Box<str>, BTreeSet<WorkloadId>>>);

/// Workloads whom a change of what is said of slices may concern.
pub(crate) type AffectedSlices = SmallVec<[WorkloadId; 2]>;

impl Slices {
    fn add(&mut self, old: &str, new: WorkloadId) {
        if !self.0.get(old).is_some_and(|claims| claims.contains(&new)) {
            Arc::make_mut(&mut self.0).entry(old.into()).or_default().insert(new);
        }
    }

    fn remove(&mut self, old: &str, new: WorkloadId) {
        let all = Arc::make_mut(&mut self.0);
        if let Some(claims) = all.get_mut(old) {
            claims.remove(&new);
            if claims.is_empty() {
                all.remove(old);
            }
        }
    }

    /// Those who say that they replace the Workload of this name.
    fn of(&self, old: &str) -> impl Iterator<Item = WorkloadId> + '_ {
        self.0.get(old).into_iter().flatten().copied()
    }
}

impl Engine {
    /// The slice that took over what a holder has: whoever knows that the new one's quota is written finishes the old one.
    pub fn replacement_slice(&self, old: WorkloadId) -> Option<WorkloadId> {
        if self.state.slices.0.is_empty() { None } else { replacement_slice(&self.state, old) }
    }

    /// The slice whose quota a holder took over.
    pub fn replaced_slice(&self, new: WorkloadId) -> Option<WorkloadId> {
        if self.state.slices.0.is_empty() { None } else { whom(&self.state, new) }
    }
}

/// Before a Workload is told, or gone (without a spec): forgets whom it replaced, if that is another now. Returns what
/// [`told`] has to know.
pub(crate) fn telling(
    state: &mut State,
    id: WorkloadId,
    spec: Option<&WorkloadSpec>,
) -> AffectedSlices {
    let new = spec.and_then(|spec| spec.replaced_slice.as_deref());
    let new = new.filter(|_| state.settings.elastic_jobs_via_workload_slices);
    if state.slices.0.is_empty() && new.is_none() {
        return AffectedSlices::new();
    }
    let touched = chain(state, id);
    if let Some(workload) = state.workloads.get(id)
        && let Some(old) = &state.classes.at(workload.class).replaced_slice
        && new != Some(old)
    {
        state.slices.remove(old, id);
    }
    touched
}

/// After a Workload was told, or is gone: notes whom it replaces, and brings up to date whoever that concerns.
pub(crate) fn told(state: &mut State, id: WorkloadId, before: &AffectedSlices) {
    if let Some(workload) = state.workloads.get(id)
        && let Some(old) = &state.classes.at(workload.class).replaced_slice
    {
        state.slices.add(old, id);
    }
    if before.is_empty() && state.slices.0.is_empty() {
        return;
    }
    let after = chain(state, id);
    for &one in before.iter().chain(&after) {
        settle(state, one);
        if *before != after {
            requeue_after_slice_change(state, one);
        }
    }
}

/// A Workload holds quota now.
pub(crate) fn started(state: &mut State, id: WorkloadId) {
    if state.slices.0.is_empty() {
        return;
    }
    settle_all(state, id);
    let name = state.names.workloads.name(id);
    let waiting: AffectedSlices = state.slices.of(name).collect();
    for one in waiting {
        requeue_after_slice_change(state, one);
    }
}

/// A Workload holds quota no more.
pub(crate) fn ended(state: &mut State, id: WorkloadId) {
    if !state.slices.0.is_empty() {
        settle_all(state, id);
    }
}

/// Everybody whose quota may be another's since a Workload holds quota, or none.
fn settle_all(state: &mut State, id: WorkloadId) {
    for one in chain(state, id) {
        settle(state, one);
    }
}

/// The slice whose quota a Workload takes over if it gets quota in `queue`.
pub(crate) fn replaced(state: &State, id: WorkloadId, queue: QueueId) -> Option<WorkloadId> {
    if state.slices.0.is_empty() {
        return None;
    }
    let old = named(state, id)?;
    let counts = held_in(state, old) == Some(queue) && !state.workloads.at(old).hidden;
    let free = counts && replacement_slice(state, old).is_none() && !leads_to(state, old, id);
    free.then_some(old)
}

/// The holder that took over what a holder has.
fn replacement_slice(state: &State, old: WorkloadId) -> Option<WorkloadId> {
    let mut claims = state.slices.of(state.names.workloads.name(old));
    claims.find(|&new| whom(state, new) == Some(old))
}

fn held_in(state: &State, id: WorkloadId) -> Option<QueueId> {
    Some(state.workloads.get(id)?.admission.as_deref()?.queue)
}

/// What an old slice was given for its pod set of this name.
pub(crate) fn given<'a>(
    state: &'a State,
    old: WorkloadId,
    pod_set: &str,
) -> Option<&'a PodSetAdmission> {
    let workload = state.workloads.get(old)?;
    let class = state.classes.at(workload.class);
    let at = class.pod_sets.iter().position(|one| *one.name == *pod_set)?;
    workload.admission.as_deref()?.pod_sets.get(at)
}

/// What it has of a resource there.
pub(crate) fn held(
    state: &State,
    old: WorkloadId,
    pod_set: &str,
    resource: ResourceId,
) -> Option<(FlavorId, Amount)> {
    let one = given(state, old, pod_set)?;
    let &(_, flavor, total) = one.resources.iter().find(|(known, ..)| *known == resource)?;
    Some((flavor, one.left_of(total)))
}

/// The other Workload of which `id` says that it replaces it, if that one is known.
fn named(state: &State, id: WorkloadId) -> Option<WorkloadId> {
    let workload = state.workloads.get(id)?;
    let name = state.classes.at(workload.class).replaced_slice.as_deref()?;
    let old = state.names.workloads.get(name)?;
    let known = state.workloads.get(old)?;
    (old != id && known.namespace == workload.namespace).then_some(old)
}

/// The holder whose quota the holder `new` took over, if they hold it in one queue.
fn whom(state: &State, new: WorkloadId) -> Option<WorkloadId> {
    let old = named(state, new)?;
    let held = |id| state.workloads.get(id)?.admission.as_deref();
    if held(old)?.queue != held(new)?.queue {
        return None;
    }
    let since = |id| (held(id).map(|one| one.reserved_at), &state.workloads.at(id).uid);
    let first = leads_to(state, old, new) && since(new) < since(old);
    (!first).then_some(old)
}

/// Whether `new` is found by going from a holder to the holder that it names, beginning with `old`.
fn leads_to(state: &State, old: WorkloadId, new: WorkloadId) -> bool {
    let mut at = Some(old);
    // A chain is not longer than there are names in it.
    for _ in 0..=state.slices.0.len() {
        match at {
            Some(one) if one == new => return true,
            Some(one) if held_in(state, one).is_some() => at = named(state, one),
            _ => return false,
        }
    }
    false
}

/// Whom `id` replaces, whom that one replaces, and so on; and `id` itself.
fn chain(state: &State, id: WorkloadId) -> AffectedSlices {
    let mut all = AffectedSlices::new();
    let mut at = Some(id);
    while let Some(one) = at.filter(|one| !all.contains(one)) {
        all.push(one);
        at = named(state, one);
    }
    all
}

/// Charges a holder for what it holds, or for nothing if another took that over.
fn settle(state: &mut State, id: WorkloadId) {
    let Some(admission) = state.workloads.get(id).and_then(|one| one.admission.as_deref()) else {
        return;
    };
    let (queue, charged) = (admission.queue, !admission.usage.is_empty());
    if replacement_slice(state, id).is_some() != charged {
        return;
    }
    let node = state.queue(queue).node;
    let workload = state.workloads.at_mut(id);
    let class = workload.class;
    let Some(mut admission) = workload.admission.take() else {
        return;
    };
    state.topologies.release_admission(&admission, &class, &state.classes);
    admission.taken_over = charged && state.settings.elastic_jobs_via_workload_slices_with_tas;
    state.topologies.charge_admission(&admission, &class, &state.classes);
    if charged {
        state.tree.uncharge(node, &admission.usage);
        admission.usage.clear();
        // The replacement may have less of something.
        state.wake(queue);
    } else {
        admission.usage = usage_of(state, &admission.pod_sets);
        state.tree.charge(node, &admission.usage);
    }
    state.workloads.at_mut(id).admission = Some(admission);
    state.queue_mut(queue).generation += 1;
}

/// A replacement that was refused gets another turn, for the one that it replaces is not what it was.
fn requeue_after_slice_change(state: &mut State, id: WorkloadId) {
    let waits = state.workloads.get(id).is_some_and(|one| {
        matches!(one.place, QueuePosition::Inadmissible { .. })
            && one.eligibility == QueueEligibility::Eligible
            && one.wake.is_none()
    });
    if waits {
        dequeue(state, id);
        enqueue(state, id);
    }
}
