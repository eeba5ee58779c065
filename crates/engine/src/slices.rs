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

use crate::amount::Amount;
use crate::ids::{FlavorId, QueueId, ResourceId, WorkloadId};
use crate::spec::PodSetAdmission;
use crate::state::State;
use crate::workloads::slice_replacements::AffectedSlices;

/// The slice whose quota a Workload takes over if it gets quota in `queue`.
pub(crate) fn replaced(state: &State, id: WorkloadId, queue: QueueId) -> Option<WorkloadId> {
    if state.slices.is_empty() {
        return None;
    }
    let old = named(state, id)?;
    let counts = held_in(state, old) == Some(queue) && !state.workloads.at(old).hidden;
    let free = counts && replacement_slice(state, old).is_none() && !leads_to(state, old, id);
    free.then_some(old)
}

/// The holder that took over what a holder has.
pub(crate) fn replacement_slice(state: &State, old: WorkloadId) -> Option<WorkloadId> {
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
pub(crate) fn whom(state: &State, new: WorkloadId) -> Option<WorkloadId> {
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
    for _ in 0..=state.slices.len() {
        match at {
            Some(one) if one == new => return true,
            Some(one) if held_in(state, one).is_some() => at = named(state, one),
            _ => return false,
        }
    }
    false
}

/// Whom `id` replaces, whom that one replaces, and so on; and `id` itself.
pub(crate) fn chain(state: &State, id: WorkloadId) -> AffectedSlices {
    let mut all = AffectedSlices::new();
    let mut at = Some(id);
    while let Some(one) = at.filter(|one| !all.contains(one)) {
        all.push(one);
        at = named(state, one);
    }
    all
}
