//! Finds the resource that limits a failed search.
//!
//! It is the one that alone leaves the fewest units: pods are counted as if they requested nothing else. The
//! missing amount is what must be added to the domains with the largest remainder beside whole pods, or whole
//! slices. Cost: one count per resource.

use std::collections::BTreeSet;

use crate::amount::Amount;
use crate::ids::{DomainId, PODS, ResourceId};
use crate::spec::PodSetSpec;
use crate::topology::assignment_search::{
    AssignedLeaf, AssignmentSearch, SearchBuffers, SearchTables, TasPodSetRequest,
};
use crate::topology::exclusion_stats::ExclusionStats;
use crate::topology::fill_in_counts::{CountsByDomain, fill_in_counts};
use crate::topology::node_counts::free_for_pods;
use crate::topology::placement_shortfall::{FittingCount, LimitingResource};
use crate::topology::resource_table::ResourceTable;
use crate::topology::shortfall_analysis::{FailedSearch, ShortfallScope};

/// The limiting resource among the `leaves` of a scope: by free capacity, or by total capacity if the request does
/// not even fit an empty topology.
pub(super) fn limiting_resource(
    failed: &FailedSearch<'_>,
    scope: ShortfallScope,
    leaves: &[DomainId],
    buffers: &SearchBuffers,
    fits_if_empty: bool,
) -> Option<LimitingResource> {
    if leaves.is_empty() {
        return None;
    }
    let other_assignments: Vec<AssignedLeaf> = failed.other_assignments(buffers).collect();
    let alone =
        |resource, empty| SingleResourceCounts::count(failed, resource, &other_assignments, empty);
    let all = resources(failed).into_iter().map(|resource| alone(resource, !fits_if_empty));
    let limiting = all.min_by_key(|one| failed.fit(&one.counts, scope))?;
    let fit = failed.fit(&limiting.counts, scope);
    if fit.fits_all(failed.requested) {
        // Each resource alone suffices, but not in the same domains.
        return None;
    }
    let empty = fits_if_empty.then(|| alone(limiting.resource, true));
    Some(limiting.limiting_resource(failed, fit, leaves, empty.as_ref()))
}

/// The implicit resource `pods`, then the requested resources in name order.
fn resources(failed: &FailedSearch<'_>) -> Vec<ResourceId> {
    let names = &failed.search.tables.names.resources;
    let specs = [Some(failed.search.workers), failed.search.leader].into_iter().flatten();
    let asked = specs.flat_map(|one| one.spec.takes());
    let asked = asked.filter(|&&(one, amount)| one != PODS && amount > Amount::ZERO);
    let mut all: Vec<ResourceId> = asked.map(|one| one.0).collect();
    all.sort_by_key(|&one| names.name(one));
    all.dedup();
    all.insert(0, PODS);
    all
}

/// Request of one pod.
pub(super) fn request_of_one_pod(spec: &PodSetSpec, resource: ResourceId) -> Amount {
    if resource == PODS {
        return Amount(1);
    }
    let takes = spec.takes().iter().find(|one| one.0 == resource);
    takes.map_or(Amount::ZERO, |one| one.1)
}

/// Counts as if pods requested a single resource.
struct SingleResourceCounts {
    resource: ResourceId,
    counts: CountsByDomain,
    /// Free capacity by row of leaf, and the largest part of it where one pod may run.
    free: Vec<(Amount, Amount)>,
}

impl SingleResourceCounts {
    fn count(
        failed: &FailedSearch<'_>,
        resource: ResourceId,
        other_assignments: &[AssignedLeaf],
        empty: bool,
    ) -> Self {
        let only = |spec: &PodSetSpec| {
            let takes = spec.takes().iter().copied().filter(|one| one.0 == resource);
            PodSetSpec { on_node: Some(takes.collect()), ..spec.clone() }
        };
        let workers = only(failed.search.workers.spec);
        let leader = failed.search.leader.map(|one| (one, only(one.spec)));
        let workers = TasPodSetRequest { spec: &workers, ..*failed.search.workers };
        let leader = leader.as_ref().map(|(one, spec)| TasPodSetRequest { spec, ..**one });
        let search = AssignmentSearch {
            workers: &workers,
            leader: leader.as_ref(),
            empty,
            ..*failed.search
        };
        let (mut taken, mut counts, mut exclusions) =
            (ResourceTable::default(), CountsByDomain::default(), ExclusionStats::default());
        let count_request =
            search.count_request(failed.request, search.note_taken(other_assignments, &mut taken));
        let AssignmentSearch { tables: SearchTables { names, topologies, .. }, tree, .. } = search;
        fill_in_counts(topologies, names, tree, &count_request, &mut counts, &mut exclusions);
        let free = tree
            .leaves()
            .map(|leaf| free_for_pods(topologies, tree, &count_request, leaf, resource));
        Self { resource, counts, free: free.collect() }
    }

    fn limiting_resource(
        &self,
        failed: &FailedSearch<'_>,
        fit: FittingCount,
        leaves: &[DomainId],
        empty: Option<&Self>,
    ) -> LimitingResource {
        let (workers, leader) = (failed.search.workers, failed.search.leader);
        let pod_request = request_of_one_pod(workers.spec, self.resource);
        let leader_request =
            leader.map_or(Amount::ZERO, |leader| request_of_one_pod(leader.spec, self.resource));
        let free = leaves.iter().map(|&leaf| self.free_at(failed, leaf));
        let (sum, largest) = free
            .fold((Amount::ZERO, Amount::ZERO), |(sum, largest), (of_leaf, of_pod)| {
                (sum + of_leaf, largest.max(of_pod))
            });
        let missing_for_leader =
            if fit.leader { Amount::ZERO } else { (leader_request - largest).clip() };
        LimitingResource {
            resource: self.resource,
            request: pod_request.times(workers.pods) + leader_request,
            free: sum,
            largest,
            missing: self.missing(failed, fit, leaves, empty) + missing_for_leader,
        }
    }

    fn free_at(&self, failed: &FailedSearch<'_>, leaf: DomainId) -> (Amount, Amount) {
        self.free.get(failed.search.tree.row(leaf)).copied().unwrap_or_default()
    }

    /// What the missing units need beyond the remainder in the domains closest to one more unit.
    fn missing(
        &self,
        failed: &FailedSearch<'_>,
        fit: FittingCount,
        leaves: &[DomainId],
        empty: Option<&Self>,
    ) -> Amount {
        let (tree, request) = (failed.search.tree, failed.request);
        let units = usize::try_from(failed.requested - fit.units).unwrap_or_default();
        let pod_request = request_of_one_pod(failed.search.workers.spec, self.resource);
        let unit = pod_request.times(request.slice_size);
        let domains: BTreeSet<DomainId> =
            leaves.iter().map(|&leaf| tree.ancestor(leaf, request.slice_level)).collect();
        let count = |counts: &CountsByDomain, domain| counts[domain].slices;
        // A domain that holds no more units when it is empty cannot take a missing one.
        let grows = |domain: &DomainId| {
            empty.is_none_or(|empty| count(&empty.counts, *domain) > count(&self.counts, *domain))
        };
        let rest = |domain| {
            // In a leaf the remainder is an amount; above, only whole pods of the leaves below
            // count, or of the nodes of a leaf.
            if request.slice_level == tree.lowest() && !failed.search.is_by_node() {
                Amount(self.free_at(failed, domain).0.0 % unit.0.max(1))
            } else {
                pod_request.times(self.counts[domain].pods % request.slice_size)
            }
        };
        let mut needs: Vec<Amount> =
            domains.into_iter().filter(grows).map(|domain| unit - rest(domain)).collect();
        needs.sort_unstable();
        needs.truncate(units);
        // Units beyond one per domain start without a remainder.
        let further = i64::try_from(units - needs.len()).unwrap_or_default();
        needs.into_iter().fold(unit.times(further), |sum, need| sum + need)
    }
}
