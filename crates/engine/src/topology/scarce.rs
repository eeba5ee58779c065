//! Which resource is short where pods find no places.
//!
//! It is the one that alone leaves the least room: the places are counted as if pods asked for nothing else. What is
//! missing is what must be added where most is left over beside whole pods, or whole slices. Cost: a count per resource.

use std::collections::BTreeSet;

use crate::amount::Amount;
use crate::ids::{DomainId, ResourceId};
use crate::spec::PodSetSpec;
use crate::state::PODS;
use crate::topology::count::{Free, Rooms, count};
use crate::topology::exclude::Tally;
use crate::topology::find::{Placed, Scratch, Search, Wanted};
use crate::topology::lack::{Fit, Scarce};
use crate::topology::shortfall::{Case, Site};
use crate::topology::table::Table;

/// The resource that is short among the `leaves` of a site: of what is free, or of what there is if there is no `hope`.
pub(super) fn scarce(
    case: &Case<'_>,
    site: Site,
    leaves: &[DomainId],
    blamed: &Scratch,
    hope: bool,
) -> Option<Scarce> {
    if leaves.is_empty() {
        return None;
    }
    let others: Vec<Placed> = case.others(blamed).collect();
    let alone = |resource, empty| Alone::count(case, resource, &others, empty);
    let all = resources(case).into_iter().map(|resource| alone(resource, !hope));
    let worst = all.min_by_key(|one| case.fit(&one.rooms, site))?;
    let fit = case.fit(&worst.rooms, site);
    if fit.holds(case.wanted) {
        // Each alone would do, but they are free in different places.
        return None;
    }
    let empty = hope.then(|| alone(worst.resource, true));
    Some(worst.scarce(case, fit, leaves, empty.as_ref()))
}

/// The place of a pod, then what is asked for, by name.
fn resources(case: &Case<'_>) -> Vec<ResourceId> {
    let names = &case.search.state.names.resources;
    let specs = [Some(case.search.workers), case.search.leader].into_iter().flatten();
    let asked = specs.flat_map(|one| one.spec.takes());
    let asked = asked.filter(|&&(one, amount)| one != PODS && amount > Amount::ZERO);
    let mut all: Vec<ResourceId> = asked.map(|one| one.0).collect();
    all.sort_by_key(|&one| names.name(one));
    all.dedup();
    all.insert(0, PODS);
    all
}

/// What one pod asks for.
pub(super) fn each(spec: &PodSetSpec, resource: ResourceId) -> Amount {
    if resource == PODS {
        return Amount(1);
    }
    let takes = spec.takes().iter().find(|one| one.0 == resource);
    takes.map_or(Amount::ZERO, |one| one.1)
}

/// The places as if pods asked for nothing but one resource.
struct Alone {
    resource: ResourceId,
    rooms: Rooms,
    /// What is free of it, by row of leaf.
    free: Vec<Amount>,
}

impl Alone {
    fn count(case: &Case<'_>, resource: ResourceId, others: &[Placed], empty: bool) -> Self {
        let only = |spec: &PodSetSpec| {
            let takes = spec.takes().iter().copied().filter(|one| one.0 == resource);
            PodSetSpec { on_node: Some(takes.collect()), ..spec.clone() }
        };
        let workers = only(case.search.workers.spec);
        let leader = case.search.leader.map(|one| (one, only(one.spec)));
        let workers = Wanted { spec: &workers, ..*case.search.workers };
        let leader = leader.as_ref().map(|(one, spec)| Wanted { spec, ..**one });
        let search = Search { workers: &workers, leader: leader.as_ref(), empty, ..*case.search };
        let (mut taken, mut rooms, mut tally) =
            (Table::default(), Rooms::default(), Tally::default());
        let ask = search.ask(case.plan, search.note_taken(others, &mut taken));
        let Search { state, topologies, tree, .. } = search;
        count(topologies, &state.names, tree, &ask, &mut rooms, &mut tally);
        let free = tree
            .leaves()
            .map(|leaf| Free::of(topologies, tree, &ask, leaf).amount(resource).clip());
        Self { resource, rooms, free: free.collect() }
    }

    fn scarce(
        &self,
        case: &Case<'_>,
        fit: Fit,
        leaves: &[DomainId],
        empty: Option<&Self>,
    ) -> Scarce {
        let (workers, leader) = (case.search.workers, case.search.leader);
        let one = each(workers.spec, self.resource);
        let of_leader = leader.map_or(Amount::ZERO, |leader| each(leader.spec, self.resource));
        let free = leaves.iter().map(|&leaf| self.free_at(case, leaf));
        let (sum, largest) = free.fold((Amount::ZERO, Amount::ZERO), |(sum, largest), one| {
            (sum + one, largest.max(one))
        });
        let to_lead = if fit.leader { Amount::ZERO } else { (of_leader - largest).clip() };
        Scarce {
            resource: self.resource,
            request: one.times(workers.pods) + of_leader,
            free: sum,
            largest,
            missing: self.missing(case, fit, leaves, empty) + to_lead,
        }
    }

    fn free_at(&self, case: &Case<'_>, leaf: DomainId) -> Amount {
        self.free.get(case.search.tree.row(leaf)).copied().unwrap_or_default()
    }

    /// What the units that are missing need beside what is left over in the domains that are nearest to another one.
    fn missing(
        &self,
        case: &Case<'_>,
        fit: Fit,
        leaves: &[DomainId],
        empty: Option<&Self>,
    ) -> Amount {
        let (tree, plan) = (case.search.tree, case.plan);
        let units = usize::try_from(case.wanted - fit.units).unwrap_or_default();
        let one = each(case.search.workers.spec, self.resource);
        let unit = one.times(plan.slice_size);
        let domains: BTreeSet<DomainId> =
            leaves.iter().map(|&leaf| tree.ancestor(leaf, plan.slice_level)).collect();
        let room = |rooms: &Rooms, domain| rooms[domain].slices;
        let grows = |domain: &DomainId| {
            empty.is_none_or(|empty| room(&empty.rooms, *domain) > room(&self.rooms, *domain))
        };
        let rest = |domain| {
            if plan.slice_level == tree.lowest() {
                Amount(self.free_at(case, domain).0 % unit.0.max(1))
            } else {
                one.times(self.rooms[domain].pods % plan.slice_size)
            }
        };
        let mut needs: Vec<Amount> =
            domains.into_iter().filter(grows).map(|domain| unit - rest(domain)).collect();
        needs.sort_unstable();
        needs.truncate(units);
        let further = i64::try_from(units - needs.len()).unwrap_or_default();
        needs.into_iter().fold(unit.times(further), |sum, need| sum + need)
    }
}
