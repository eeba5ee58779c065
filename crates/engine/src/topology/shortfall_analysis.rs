//! Analyzes why a search found no topology assignment.
//!
//! A required request is explained by one domain: the one with the most units among those that fit the request when
//! empty; if none does, the largest. Other requests are explained by the whole topology. Everything derives from
//! the counts of the searches. Cost: two counts per resource, one search, and one pass over all Workloads with
//! quota.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ids::{DomainId, PODS};
use crate::spec::PodSetSpec;
use crate::topology::assignment_search::{
    AssignedLeaf, AssignmentSearch, SearchBuffers, TasPodSetRequest,
};
use crate::topology::fill_in_counts::CountsByDomain;
use crate::topology::limiting_resource::limiting_resource;
use crate::topology::node_counts::is_open;
use crate::topology::normalized_request::NormalizedRequest;
use crate::topology::placement_shortfall::{FittingCount, PlacementRemedy, PlacementShortfall};
use crate::topology::topology_usage::{MAX_LISTED_USERS, TopologyUsage, usage_in_leaves};
use crate::topology::{HOSTNAME_LABEL, TopologyMode, TopologyRequest};
use crate::workloads::layer::WorkloadLayer;

/// The domains that explain the failure.
#[derive(Debug, Clone, Copy)]
pub(super) enum ShortfallScope {
    Domain(DomainId),
    /// All domains of this level together.
    Level(usize),
}

/// A failed search.
pub(super) struct FailedSearch<'a> {
    pub(super) search: &'a AssignmentSearch<'a>,
    pub(super) request: &'a NormalizedRequest,
    pub(super) requested: i64,
}

/// Explains a search that failed with current usage (`now`) and was repeated in an empty topology (`empty`);
/// `fits_if_empty` is the result of the repetition.
pub(super) fn analyze_shortfall(
    search: &AssignmentSearch<'_>,
    workloads: &WorkloadLayer,
    request: &NormalizedRequest,
    now: &SearchBuffers,
    empty: &SearchBuffers,
    fits_if_empty: bool,
) -> PlacementShortfall {
    let failed = FailedSearch { search, request, requested: request.slices(search.workers.pods) };
    let open_leaves = failed.open_leaves();
    let scopes = failed.scopes(&open_leaves);
    let scope = failed.nearest_scope(&now.counts, &empty.counts, &scopes);
    let leaves = failed.in_scope(open_leaves, scope);
    // If even the empty topology is too small, total capacity is what is missing.
    let counted = if fits_if_empty { now } else { empty };
    let limiting_resource = limiting_resource(&failed, scope, &leaves, counted, fits_if_empty);
    let resource = limiting_resource.as_ref().map_or(PODS, |one| one.resource);
    let users = || usage_in_leaves(search, workloads, &leaves, resource);
    let (users, more_users) = listed(if fits_if_empty { users() } else { Vec::new() });
    let (mode, slice) = constraints(search.workers.spec);
    PlacementShortfall {
        mode,
        slice,
        has_leader: search.leader.is_some(),
        requested: failed.requested,
        fit: failed.best(&now.counts, &scopes, false),
        maximum: failed.best(&empty.counts, &scopes, fits_if_empty),
        domain: scope.domain().map(|domain| Arc::clone(search.tree.path(domain))),
        fit_in_domain: failed.best(&now.counts, &[scope], false),
        earlier: failed.earlier_pods_in(&leaves, now),
        limiting_resource,
        leaves: search.n_places(),
        lowest_level: lowest_level(search),
        mismatches: now.exclusions.mismatches(),
        users,
        more_users,
        remedies: failed.remedies(now, fits_if_empty),
    }
}

/// The level of the places that pods are counted for.
fn lowest_level(search: &AssignmentSearch<'_>) -> Box<str> {
    if search.is_by_node() {
        HOSTNAME_LABEL.into()
    } else {
        search.tree.levels.last().cloned().unwrap_or_default()
    }
}

/// The constraint on the whole pod set, and the level and size of its slices.
fn constraints(spec: &PodSetSpec) -> (TopologyMode, Option<(Box<str>, i64)>) {
    let request = spec.topology.as_ref();
    let mode = request.and_then(|request| request.mode.clone());
    let slice = request.and_then(|request| request.slices.first().cloned());
    (mode.unwrap_or(TopologyMode::Unconstrained), slice)
}

/// The largest users, and the number of the others.
fn listed(mut users: Vec<TopologyUsage>) -> (Vec<TopologyUsage>, usize) {
    let others = users.len().saturating_sub(MAX_LISTED_USERS);
    users.truncate(MAX_LISTED_USERS);
    (users, others)
}

impl ShortfallScope {
    fn domain(self) -> Option<DomainId> {
        match self {
            Self::Domain(domain) => Some(domain),
            Self::Level(_) => None,
        }
    }
}

impl FailedSearch<'_> {
    /// The leaves that pods can run on, whatever their free capacity.
    fn open_leaves(&self) -> Vec<DomainId> {
        let AssignmentSearch { tables, tree, .. } = *self.search;
        let count_request = self.search.count_request(self.request, None);
        tree.leaves()
            .filter(|&leaf| is_open(tables.topologies, tree, &count_request, leaf))
            .collect()
    }

    /// The leaves of a scope.
    fn in_scope(&self, mut leaves: Vec<DomainId>, scope: ShortfallScope) -> Vec<DomainId> {
        if let Some(domain) = scope.domain() {
            leaves.retain(|&leaf| self.search.tree.is_below(leaf, domain));
        }
        leaves
    }

    /// Candidate scopes: for a required level each of its domains with open leaves, otherwise the whole topology.
    fn scopes(&self, open_leaves: &[DomainId]) -> Vec<ShortfallScope> {
        let NormalizedRequest { level, required, unconstrained, .. } = *self.request;
        // A request that is only preferred may spread, so the whole topology is its scope.
        if !required {
            return vec![ShortfallScope::Level(if unconstrained { level } else { 0 })];
        }
        let domains = open_leaves.iter().map(|&leaf| self.search.tree.ancestor(leaf, level));
        let domains: BTreeSet<DomainId> = domains.collect();
        domains.into_iter().map(ShortfallScope::Domain).collect()
    }

    /// Units that fit into a scope. In the whole topology the leader counts where it costs the fewest slices.
    pub(super) fn fit(&self, counts: &CountsByDomain, scope: ShortfallScope) -> FittingCount {
        let has_leader = self.search.leader.is_some();
        let of = |domain| {
            let count = counts[domain];
            let leader = !has_leader || count.leader > 0;
            let units = if has_leader && leader { count.slices_with_leader } else { count.slices };
            (FittingCount { leader, units }, count.slices)
        };
        match scope {
            ShortfallScope::Domain(domain) => of(domain).0,
            ShortfallScope::Level(level) => {
                let all = || self.search.tree.level(level).map(of);
                let with_leader = all().filter(|one| one.0.leader);
                let leader_cost = with_leader.map(|(fit, slices)| slices - fit.units).min();
                let sum: i64 = all().map(|one| one.1).sum();
                let leader = !has_leader || leader_cost.is_some();
                FittingCount { leader, units: sum - leader_cost.unwrap_or_default() }
            }
        }
    }

    /// Units that fit into the best of the scopes; `fits` is the result of the search with these counts.
    fn best(&self, counts: &CountsByDomain, scopes: &[ShortfallScope], fits: bool) -> FittingCount {
        let none = FittingCount { leader: self.search.leader.is_none(), units: 0 };
        let best = scopes.iter().map(|&scope| self.fit(counts, scope)).max().unwrap_or(none);
        best.reconciled(self.requested, fits)
    }

    /// The scope to report. Domains are in name order; of equal ones the first is reported.
    fn nearest_scope(
        &self,
        now: &CountsByDomain,
        empty: &CountsByDomain,
        scopes: &[ShortfallScope],
    ) -> ShortfallScope {
        let nearest = scopes.iter().copied().rev().max_by_key(|&scope| {
            let (fit, maximum) = (self.fit(now, scope), self.fit(empty, scope));
            // A domain that is too small even when empty is nearest only if all domains are.
            if maximum.fits_all(self.requested) {
                (true, fit, maximum)
            } else {
                (false, maximum, fit)
            }
        });
        nearest.unwrap_or(ShortfallScope::Level(0))
    }

    /// Assignments of earlier pod sets of the Workload.
    pub(super) fn other_assignments<'s>(
        &'s self,
        search_buffers: &'s SearchBuffers,
    ) -> impl Iterator<Item = AssignedLeaf> + 's {
        let leader = self.search.leader.map(|one| one.pod_set);
        let own = [Some(self.search.workers.pod_set), leader];
        search_buffers.assigned.iter().copied().filter(move |one| !own.contains(&Some(one.pod_set)))
    }

    /// Pods of earlier pod sets in these leaves, which are sorted.
    fn earlier_pods_in(&self, leaves: &[DomainId], now: &SearchBuffers) -> i64 {
        let pods = self.other_assignments(now).filter_map(|assigned| {
            let leaf = self.search.leaf_here(assigned.flavor, assigned.leaf)?;
            leaves.binary_search(&leaf).is_ok().then_some(assigned.pods)
        });
        pods.sum()
    }

    fn remedies(&self, now: &SearchBuffers, fits_if_empty: bool) -> Vec<PlacementRemedy> {
        let first = if fits_if_empty {
            PlacementRemedy::ReleaseCapacity
        } else {
            PlacementRemedy::AddNodes
        };
        // Searched only where it can be a remedy: one more search.
        let fits_as_preferred = self.request.required && self.fits_if_preferred(now);
        std::iter::once(first)
            .chain(fits_as_preferred.then_some(PlacementRemedy::PreferInsteadOfRequire))
            .collect()
    }

    fn fits_if_preferred(&self, now: &SearchBuffers) -> bool {
        let workers = as_preferred(self.search.workers.spec);
        let leader = self.search.leader.map(|one| (one, as_preferred(one.spec)));
        let workers = TasPodSetRequest { spec: &workers, ..*self.search.workers };
        let leader = leader.as_ref().map(|(one, spec)| TasPodSetRequest { spec, ..**one });
        let search =
            AssignmentSearch { workers: &workers, leader: leader.as_ref(), ..*self.search };
        search.run(&mut SearchBuffers::with_assigned(self.other_assignments(now))).is_ok()
    }
}

fn as_preferred(spec: &PodSetSpec) -> PodSetSpec {
    let topology = spec.topology.clone().map(|topology_request| TopologyRequest {
        mode: match topology_request.mode {
            Some(TopologyMode::Required(level)) => Some(TopologyMode::Preferred(level)),
            other => other,
        },
        ..topology_request
    });
    PodSetSpec { topology, ..spec.clone() }
}
