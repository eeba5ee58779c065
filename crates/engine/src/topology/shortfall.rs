//! Finds out what is missing where a search found no places.
//!
//! Who must stand together is told of one domain: the one with the most room among those that could hold everybody if
//! nothing were in use there. If none could, no waiting helps, and it is told of the largest. Who may spread is told of
//! the whole topology. All of it is read off what the searches counted. Cost: two counts per resource, one search, and a
//! look at everybody who holds places.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ids::DomainId;
use crate::spec::PodSetSpec;
use crate::state::PODS;
use crate::topology::count::{Rooms, admits};
use crate::topology::find::{Placed, Scratch, Search, Wanted};
use crate::topology::holders::{HOLDERS, holders};
use crate::topology::lack::{Fit, Lack, PlaceCure};
use crate::topology::plan::Plan;
use crate::topology::scarce::scarce;
use crate::topology::{Togetherness, TopologyRequest};

/// Where to look.
#[derive(Debug, Clone, Copy)]
pub(super) enum Site {
    One(DomainId),
    /// All domains of this level together.
    Whole(usize),
}

/// A search that failed.
pub(super) struct Case<'a> {
    pub(super) search: &'a Search<'a>,
    pub(super) plan: &'a Plan,
    pub(super) wanted: i64,
}

/// What is to be told of a search that failed with things as they are (`now`) and was tried with nothing in use (`empty`);
/// `hope` is whether it found places then.
pub(super) fn lack(
    search: &Search<'_>,
    plan: &Plan,
    now: &Scratch,
    empty: &Scratch,
    hope: bool,
) -> Lack {
    let (tree, workers) = (search.tree, search.workers);
    let case = Case { search, plan, wanted: plan.slices(workers.pods) };
    let open = case.open_leaves();
    let sites = case.sites(&open);
    let (fit, most) = (case.best(&now.rooms, &sites), case.best(&empty.rooms, &sites));
    let (fit, most) = (fit.agreed(case.wanted, false), most.agreed(case.wanted, hope));
    let site = case.nearest(&now.rooms, &empty.rooms, &sites);
    let there = case.fit(&now.rooms, site).agreed(case.wanted, false);
    let here = |&leaf: &DomainId| site.domain().is_none_or(|one| tree.is_below(leaf, one));
    let leaves: Vec<DomainId> = open.into_iter().filter(here).collect();
    let blamed = if hope { now } else { empty };
    let scarce = scarce(&case, site, &leaves, blamed, hope);
    let resource = scarce.as_ref().map_or(PODS, |one| one.resource);
    let mut holders = if hope { holders(search, &leaves, resource) } else { Vec::new() };
    let more_holders = holders.len().saturating_sub(HOLDERS);
    holders.truncate(HOLDERS);
    let wish = workers.spec.topology.as_ref();
    Lack {
        together: wish
            .and_then(|wish| wish.together.clone())
            .unwrap_or(Togetherness::Unconstrained),
        slice: wish.and_then(|wish| wish.slices.first().cloned()),
        led: search.leader.is_some(),
        wanted: case.wanted,
        fit,
        most,
        domain: site.domain().map(|domain| Arc::clone(tree.path(domain))),
        there,
        earlier: case
            .earlier(now)
            .filter(|one| leaves.binary_search(&one.0).is_ok())
            .map(|one| one.1)
            .sum(),
        scarce,
        leaves: tree.leaves().count(),
        lowest: tree.levels.last().cloned().unwrap_or_default(),
        unfit: now.tally.unfit(),
        holders,
        more_holders,
        cures: case.cures(now, hope),
    }
}

impl Site {
    fn domain(self) -> Option<DomainId> {
        match self {
            Self::One(domain) => Some(domain),
            Self::Whole(_) => None,
        }
    }
}

impl Case<'_> {
    /// The leaves where pods may stand at all.
    fn open_leaves(&self) -> Vec<DomainId> {
        let Search { topologies, tree, .. } = *self.search;
        let ask = self.search.ask(self.plan, None);
        tree.leaves().filter(|&leaf| admits(topologies, tree, &ask, leaf).is_ok()).collect()
    }

    /// The domains with open leaves, of which one must hold everybody; the whole topology for those who may spread.
    fn sites(&self, open: &[DomainId]) -> Vec<Site> {
        let Plan { level, required, unconstrained, .. } = *self.plan;
        if !required {
            return vec![Site::Whole(if unconstrained { level } else { 0 })];
        }
        let domains = open.iter().map(|&leaf| self.search.tree.ancestor(leaf, level));
        let domains: BTreeSet<DomainId> = domains.collect();
        domains.into_iter().map(Site::One).collect()
    }

    /// How many fit. In the whole topology the leader stands where it costs least.
    pub(super) fn fit(&self, rooms: &Rooms, site: Site) -> Fit {
        let led = self.search.leader.is_some();
        let of = |domain| {
            let room = rooms[domain];
            let leader = !led || room.leader > 0;
            let units = if led && leader { room.slices_with_leader } else { room.slices };
            (Fit { leader, units }, room.slices)
        };
        match site {
            Site::One(domain) => of(domain).0,
            Site::Whole(level) => {
                let all = || self.search.tree.level(level).map(of);
                let led_ones = all().filter(|one| one.0.leader);
                let cost = led_ones.map(|(fit, slices)| slices - fit.units).min();
                let sum: i64 = all().map(|one| one.1).sum();
                let leader = !led || cost.is_some();
                Fit { leader, units: sum - cost.unwrap_or_default() }
            }
        }
    }

    fn best(&self, rooms: &Rooms, sites: &[Site]) -> Fit {
        let none = Fit { leader: self.search.leader.is_none(), units: 0 };
        sites.iter().map(|&site| self.fit(rooms, site)).max().unwrap_or(none)
    }

    /// The site to talk about. Domains are in the order of their names, and of equal ones the first counts.
    fn nearest(&self, now: &Rooms, empty: &Rooms, sites: &[Site]) -> Site {
        let nearest = sites.iter().copied().rev().max_by_key(|&site| {
            let (fit, most) = (self.fit(now, site), self.fit(empty, site));
            if most.holds(self.wanted) { (true, fit, most) } else { (false, most, fit) }
        });
        nearest.unwrap_or(Site::Whole(0))
    }

    /// What earlier pod sets were given.
    pub(super) fn others<'s>(&'s self, scratch: &'s Scratch) -> impl Iterator<Item = Placed> + 's {
        let leader = self.search.leader.map(|one| one.pod_set);
        let own = [Some(self.search.workers.pod_set), leader];
        scratch.placed.iter().copied().filter(move |one| !own.contains(&Some(one.pod_set)))
    }

    fn earlier<'s>(&'s self, now: &'s Scratch) -> impl Iterator<Item = (DomainId, i64)> + 's {
        let leaf = |one: &Placed| self.search.leaf_here(one.flavor, one.leaf);
        self.others(now).filter_map(move |one| Some((leaf(&one)?, one.pods)))
    }

    fn cures(&self, now: &Scratch, hope: bool) -> Vec<PlaceCure> {
        let first = if hope { PlaceCure::Free } else { PlaceCure::MoreMachines };
        let spreads = self.plan.required && self.fits_if_preferred(now);
        std::iter::once(first).chain(spreads.then_some(PlaceCure::Prefer)).collect()
    }

    fn fits_if_preferred(&self, now: &Scratch) -> bool {
        let workers = preferring(self.search.workers.spec);
        let leader = self.search.leader.map(|one| (one, preferring(one.spec)));
        let workers = Wanted { spec: &workers, ..*self.search.workers };
        let leader = leader.as_ref().map(|(one, spec)| Wanted { spec, ..**one });
        let search = Search { workers: &workers, leader: leader.as_ref(), ..*self.search };
        search.run(&mut Scratch::beside(self.others(now))).is_ok()
    }
}

fn preferring(spec: &PodSetSpec) -> PodSetSpec {
    let topology = spec.topology.clone().map(|wish| TopologyRequest {
        together: match wish.together {
            Some(Togetherness::Required(level)) => Some(Togetherness::Preferred(level)),
            other => other,
        },
        ..wish
    });
    PodSetSpec { topology, ..spec.clone() }
}
