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

/// The claims between slices, read together with their reservations.
#[derive(Clone, Copy)]
pub(crate) struct SliceClaims<'a> {
    names: &'a Names,
    workloads: &'a WorkloadLayer,
}

impl<'a> SliceClaims<'a> {
    pub(crate) fn new(names: &'a Names, workloads: &'a WorkloadLayer) -> Self {
        Self { names, workloads }
    }

    /// The old slice that gives its quota to a Workload which reserves quota in `queue`.
    pub(crate) fn replaced(self, id: WorkloadId, queue: QueueId) -> Option<WorkloadId> {
        if !self.workloads.has_claims() {
            return None;
        }
        let old = self.claimed_slice(id)?;
        // An old slice that a simulation removes is preempted and has no quota to hand over. What an evicted one releases is free
        // for all, and reserved for a preemptor, if it made room for one.
        let keeps_quota = |one: &AdmissionRecord| one.queue == queue && !one.evicted;
        let counts = self.workloads.admission(old).is_some_and(keeps_quota)
            && !self.workloads.at(old).removed;
        let free = counts && self.replacement_slice(old).is_none() && !self.chain_leads_to(old, id);
        free.then_some(old)
    }

    /// The reserving Workload that is charged in place of `old`, which is not evicted.
    pub(crate) fn quota_successor(self, old: WorkloadId) -> Option<WorkloadId> {
        // Its pods take their room until they are gone, and the release belongs to the preemptor, if there is one.
        let evicted = self.workloads.admission(old).is_some_and(|one| one.evicted);
        if evicted { None } else { self.replacement_slice(old) }
    }

    /// The reserving Workload that replaces `old`.
    pub(crate) fn replacement_slice(self, old: WorkloadId) -> Option<WorkloadId> {
        let mut claims = self.workloads.claims_on(self.names.workloads.name(old));
        claims.find(|&new| self.replaced_reservation(new) == Some(old))
    }

    /// The reserving Workload that `new` replaces, if both reserve in one ClusterQueue.
    pub(crate) fn replaced_reservation(self, new: WorkloadId) -> Option<WorkloadId> {
        let old = self.claimed_slice(new)?;
        // Quota is taken over within one ClusterQueue only; in another one both are charged.
        let admission = |id| self.workloads.get(id)?.admission.as_deref();
        if admission(old)?.queue != admission(new)?.queue {
            return None;
        }
        let since = |id| (admission(id).map(|one| one.reserved_at), &self.workloads.at(id).uid);
        // In a ring of claims a slice does not take over from one that reserved later.
        let first = self.chain_leads_to(old, new) && since(new) < since(old);
        (!first).then_some(old)
    }

    /// `id`, the Workload it claims to replace, and so on.
    pub(crate) fn claim_chain(self, id: WorkloadId) -> AffectedSlices {
        let mut all = AffectedSlices::new();
        let mut at = Some(id);
        while let Some(one) = at.filter(|one| !all.contains(one)) {
            all.push(one);
            at = self.claimed_slice(one);
        }
        all
    }

    /// The known Workload that `id` claims to replace.
    fn claimed_slice(self, id: WorkloadId) -> Option<WorkloadId> {
        let workload = self.workloads.get(id)?;
        let name = self.workloads.class_at(workload.class).replaced_slice.as_deref()?;
        let old = self.names.workloads.get(name)?;
        let known = self.workloads.get(old)?;
        // The slices of a job are in one namespace.
        (old != id && known.namespace == workload.namespace).then_some(old)
    }

    /// Whether the chain of claims between reserving Workloads leads from `old` to `new`.
    fn chain_leads_to(self, old: WorkloadId, new: WorkloadId) -> bool {
        let mut at = Some(old);
        // A chain is not longer than the number of claims.
        for _ in 0..=self.workloads.n_claims() {
            match at {
                Some(one) if one == new => return true,
                Some(one) if self.workloads.admission(one).is_some() => {
                    at = self.claimed_slice(one);
                }
                _ => return false,
            }
        }
        false
    }
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
