//! Slices of elastic jobs: a Workload that replaces an older one of the same job, with other counts, while that one
//! runs.
//!
//! A replacement names the old slice. While the old slice has a reservation in the same ClusterQueue, the replacement
//! gets the same flavors, and every check charges only what it requests beyond the old slice. Once the replacement
//! has a reservation, all of it is charged to the replacement and nothing to the old slice, which keeps its record
//! until it is finished. If the replacement is removed first, the old slice is charged again. So both are never
//! charged at once, in any order of events and failed writes, unless the old slice is evicted: such a slice is charged
//! until it releases its quota, because a preemptor may wait for what it releases. Source: docs/reference/kueue.md §4.4
//! step 3, §4.13; gate ElasticJobsViaWorkloadSlices.
//!
//! Topology domains are assigned independently of the old slice and charged beside it, as upstream does without the
//! gate ElasticJobsViaWorkloadSlicesWithTAS. With the gate, pods keep the domains of the old slice, and the domains
//! are taken over with the quota. In a ring of slices that name each other, a slice does not replace one that
//! reserved quota later.
//!
//! Cost: one check of an empty table if there are no claims; else a few lookups by name per change of a slice.

use crate::amount::Amount;
use crate::ids::{FlavorId, QueueId, ResourceId, WorkloadId};
use crate::names::Names;
use crate::spec::PodSetAdmission;
use crate::workloads::admission::AdmissionRecord;
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::slice_replacements::AffectedSlices;

/// The old slice whose quota a Workload takes over if it reserves quota in `queue`.
pub(crate) fn replaced(
    names: &Names,
    workloads: &WorkloadLayer,
    id: WorkloadId,
    queue: QueueId,
) -> Option<WorkloadId> {
    if !workloads.has_claims() {
        return None;
    }
    let old = claimed_slice(names, workloads, id)?;
    // An old slice that a simulation removes is preempted and has no quota to hand over. What an evicted one releases is free for
    // all, and reserved for a preemptor, if it made room for one.
    let keeps_quota = |one: &AdmissionRecord| one.queue == queue && !one.evicted;
    let counts = workloads.admission(old).is_some_and(keeps_quota) && !workloads.at(old).removed;
    let free = counts
        && replacement_slice(names, workloads, old).is_none()
        && !chain_leads_to(names, workloads, old, id);
    free.then_some(old)
}

/// The reserving Workload that is charged in place of `old`, which is not evicted.
pub(crate) fn quota_successor(
    names: &Names,
    workloads: &WorkloadLayer,
    old: WorkloadId,
) -> Option<WorkloadId> {
    // Its pods take their room until they are gone, and the release belongs to the preemptor, if there is one.
    let evicted = workloads.admission(old).is_some_and(|one| one.evicted);
    if evicted { None } else { replacement_slice(names, workloads, old) }
}

/// The reserving Workload that replaces `old`.
pub(crate) fn replacement_slice(
    names: &Names,
    workloads: &WorkloadLayer,
    old: WorkloadId,
) -> Option<WorkloadId> {
    let mut claims = workloads.claims_on(names.workloads.name(old));
    claims.find(|&new| replaced_reservation(names, workloads, new) == Some(old))
}

fn reserving_queue(workloads: &WorkloadLayer, id: WorkloadId) -> Option<QueueId> {
    Some(workloads.admission(id)?.queue)
}

/// The admission of an old slice's pod set with this name.
pub(crate) fn pod_set_admission<'a>(
    workloads: &'a WorkloadLayer,
    old: WorkloadId,
    pod_set: &str,
) -> Option<&'a PodSetAdmission> {
    let workload = workloads.get(old)?;
    let class = workloads.class_at(workload.class);
    let at = class.pod_sets.iter().position(|one| *one.name == *pod_set)?;
    workload.admission.as_deref()?.pod_sets.get(at)
}

/// Flavor and amount of a resource in that admission.
pub(crate) fn held_amount(
    workloads: &WorkloadLayer,
    old: WorkloadId,
    pod_set: &str,
    resource: ResourceId,
) -> Option<(FlavorId, Amount)> {
    let one = pod_set_admission(workloads, old, pod_set)?;
    let held = one.resources.iter().find(|assigned| assigned.resource == resource)?;
    Some((held.flavor, one.left_of(held.amount)))
}

/// The known Workload that `id` claims to replace.
fn claimed_slice(names: &Names, workloads: &WorkloadLayer, id: WorkloadId) -> Option<WorkloadId> {
    let workload = workloads.get(id)?;
    let name = workloads.class_at(workload.class).replaced_slice.as_deref()?;
    let old = names.workloads.get(name)?;
    let known = workloads.get(old)?;
    // The slices of a job are in one namespace.
    (old != id && known.namespace == workload.namespace).then_some(old)
}

/// The reserving Workload that `new` replaces, if both reserve in one ClusterQueue.
pub(crate) fn replaced_reservation(
    names: &Names,
    workloads: &WorkloadLayer,
    new: WorkloadId,
) -> Option<WorkloadId> {
    let old = claimed_slice(names, workloads, new)?;
    // Quota is taken over within one ClusterQueue only; in another one both are charged.
    let held_amount = |id| workloads.get(id)?.admission.as_deref();
    if held_amount(old)?.queue != held_amount(new)?.queue {
        return None;
    }
    let since = |id| (held_amount(id).map(|one| one.reserved_at), &workloads.at(id).uid);
    // In a ring of claims a slice does not take over from one that reserved later.
    let first = chain_leads_to(names, workloads, old, new) && since(new) < since(old);
    (!first).then_some(old)
}

/// Whether the chain of claims between reserving Workloads leads from `old` to `new`.
fn chain_leads_to(
    names: &Names,
    workloads: &WorkloadLayer,
    old: WorkloadId,
    new: WorkloadId,
) -> bool {
    let mut at = Some(old);
    // A chain is not longer than the number of claims.
    for _ in 0..=workloads.n_claims() {
        match at {
            Some(one) if one == new => return true,
            Some(one) if reserving_queue(workloads, one).is_some() => {
                at = claimed_slice(names, workloads, one);
            }
            _ => return false,
        }
    }
    false
}

/// `id`, the Workload it claims to replace, and so on.
pub(crate) fn claim_chain(
    names: &Names,
    workloads: &WorkloadLayer,
    id: WorkloadId,
) -> AffectedSlices {
    let mut all = AffectedSlices::new();
    let mut at = Some(id);
    while let Some(one) = at.filter(|one| !all.contains(one)) {
        all.push(one);
        at = claimed_slice(names, workloads, one);
    }
    all
}
