//! Phase two: selects domains and the number of pods in each.
//!
//! *Best fit* selects the smallest domain that holds all slices; if none does, the largest domains until all slices
//! are assigned, the last of them again the smallest that suffices. *Least free capacity* (unconstrained requests)
//! fills the domains with the least free capacity first. Both select among the domains with the highest affinity
//! score. If these do not suffice, further domains are added, if need be of a higher level; only a required level
//! falls back to a domain with a lower score.
//! From the level found, shares go down to the leaves: above the slice level over all children at once, below it
//! within each domain.
//! Source: docs/reference/kueue.md §4.11.

use crate::ids::DomainId;
use crate::topology::domain_tree::DomainTree;
use crate::topology::fill_in_counts::CountsByDomain;
use crate::topology::needed_capacity::{AssignmentUnit, NeededCapacity, PodsToAssign};
use crate::topology::normalized_request::NormalizedRequest;
use crate::topology::sorted_domains::{FillOrder, SortedDomains};

/// A domain and its share of the pods.
#[derive(Debug, Clone, Copy)]
pub(super) struct DomainShare {
    pub(super) domain: DomainId,
    pub(super) pods: i64,
    pub(super) leaders: i64,
}

/// Buffers kept between searches. `shares` is the result.
#[derive(Debug, Default)]
pub(super) struct SelectionBuffers {
    pub(super) sorted: SortedDomains,
    pub(super) shares: Vec<DomainShare>,
    spare_shares: Vec<DomainShare>,
}

/// Too few units fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotEnoughDomains {
    /// Level at which the selection failed.
    pub(super) level: usize,
    pub(super) fit: i64,
}

/// What a selection reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct DomainSelection<'a> {
    pub(super) tree: &'a DomainTree,
    pub(super) counts: &'a CountsByDomain,
    pub(super) request: &'a NormalizedRequest,
    pub(super) order: FillOrder,
}

impl DomainSelection<'_> {
    /// Selects leaves.
    ///
    /// # Errors
    /// The level, and the number of slices that fit; -1 if the level has no domains.
    pub(super) fn select(
        self,
        to_assign: PodsToAssign,
        buffers: &mut SelectionBuffers,
    ) -> Result<(), NotEnoughDomains> {
        let Self { tree, counts, request, order } = self;
        let slice = AssignmentUnit::Slice(request.slice_size);
        buffers.shares.clear();
        let needed = NeededCapacity::of(to_assign, slice);
        let mut level = self.find_level_with_fit_domains(needed, &mut buffers.sorted)?;
        assign_pods(counts, to_assign, slice, buffers);
        // Above the slice level the children of all selected domains are pooled (§4.11).
        while level < request.slice_level.min(tree.lowest()) {
            let SelectionBuffers { sorted, shares, .. } = buffers;
            let below = shares.iter().flat_map(|share| tree.children(share.domain));
            sorted.fill(counts, order, below);
            shares.clear();
            assign_pods(counts, to_assign, slice, buffers);
            level += 1;
        }
        self.assign_to_leaves(level, buffers);
        let assigned: i64 = buffers.shares.iter().map(|share| share.pods).sum();
        if assigned < to_assign.pods { Err(NotEnoughDomains { level, fit: 0 }) } else { Ok(()) }
    }

    /// Takes shares from level `from` down to the leaves, each share within its domain.
    pub(super) fn assign_to_leaves(self, from: usize, buffers: &mut SelectionBuffers) {
        let Self { tree, counts, request, order } = self;
        for level in from..tree.lowest() {
            let size = if level < request.slice_level {
                request.slice_size
            } else {
                request.layer(level + 1).unwrap_or(1)
            };
            let unit = if size > 1 { AssignmentUnit::Layer(size) } else { AssignmentUnit::Pod };
            let mut above = std::mem::take(&mut buffers.spare_shares);
            std::mem::swap(&mut above, &mut buffers.shares);
            for DomainShare { domain, pods, leaders } in above.drain(..) {
                // Slice counts are zero below the slice level, so the domains with the least capacity come first, as
                // in upstream.
                buffers.sorted.fill(counts, order, tree.children(domain));
                assign_pods(counts, PodsToAssign { pods, leaders }, unit, buffers);
            }
            buffers.spare_shares = above;
        }
    }

    /// Reduces the sorted domains to those that hold everything; returns their level.
    fn find_level_with_fit_domains(
        self,
        needed: NeededCapacity,
        sorted: &mut SortedDomains,
    ) -> Result<usize, NotEnoughDomains> {
        let Self { tree, counts, request, order } = self;
        let mut level = request.level;
        loop {
            sorted.fill_with_leader(counts, order, tree.level(level));
            let Some(top) = sorted.get(0) else {
                return Err(NotEnoughDomains { level, fit: -1 });
            };
            if let Some(one) = self.find_best_fit_domain(needed, sorted) {
                sorted.fill_with_leader(counts, order, [one]);
                return Ok(level);
            }
            if request.required {
                // A required level never spreads over several domains or moves to a higher level.
                return Err(NotEnoughDomains { level, fit: counts[top].slices });
            }
            // An unconstrained request already starts at the level where it may spread.
            if level == 0 || request.unconstrained {
                break;
            }
            level -= 1;
        }
        find_domains_for_all(counts, needed, sorted)
            .map_err(|fit| NotEnoughDomains { level, fit })?;
        Ok(level)
    }

    /// One domain that holds everything.
    fn find_best_fit_domain(
        self,
        needed: NeededCapacity,
        sorted: &SortedDomains,
    ) -> Option<DomainId> {
        let counts = self.counts;
        let holds = |&one: &DomainId| needed.fits(counts[one]);
        if self.order == FillOrder::LeastFreeCapacity {
            return sorted.domains().find(holds);
        }
        // Without affinity scores the first domain has the highest count.
        let candidates =
            if self.request.required && counts.scores.any() { sorted.len() } else { 1 };
        let first = sorted.domains().take(candidates).position(|one| holds(&one))?;
        sorted.smallest(counts, first, needed)
    }
}

/// Keeps domains until everything is assigned, the leader's domain first. The error is the number of slices that
/// fit.
fn find_domains_for_all(
    counts: &CountsByDomain,
    needed: NeededCapacity,
    sorted: &mut SortedDomains,
) -> Result<(), i64> {
    sorted.move_leader_domain_first(counts, needed);
    let LeaderDomains { last: first, number, mut left } =
        find_leader_domains(counts, needed, sorted)?;
    sorted.resort(counts, number);
    let (mut last, mut at) = (None, 0);
    while left.units > 0
        && let Some(domain) = sorted.best_fit_at(counts, at, left)
    {
        left.units -= counts[domain].slices;
        last = Some(domain);
        at += 1;
    }
    if left.units > 0 {
        return Err(needed.units - left.units);
    }
    sorted.keep(counts, at, first, last);
    Ok(())
}

/// The domains of the leaders.
struct LeaderDomains {
    last: Option<DomainId>,
    number: usize,
    /// What other domains have to hold.
    left: NeededCapacity,
}

/// Finds the domains of the leaders. The error is the number of slices that fit.
fn find_leader_domains(
    counts: &CountsByDomain,
    needed: NeededCapacity,
    sorted: &SortedDomains,
) -> Result<LeaderDomains, i64> {
    let mut found = LeaderDomains { last: None, number: 0, left: needed };
    while found.left.leaders > 0
        && sorted.get(found.number).is_some_and(|next| counts[next].leader > 0)
        && let Some(domain) = sorted.best_fit_at(counts, found.number, found.left)
    {
        found.left.leaders -= counts[domain].leader;
        found.left.units -= counts[domain].slices_with_leader;
        found.last = Some(domain);
        found.number += 1;
    }
    // Without a domain for the leader no slice counts as fitting.
    if found.left.leaders > 0 {
        return Err(0);
    }
    found.left.leaders = 0;
    Ok(found)
}

/// Assigns each domain its share in sort order until nothing is left. With a leader to assign, domains without a
/// share stay in the list: a lower level may still assign the leader below one of them.
fn assign_pods(
    counts: &CountsByDomain,
    to_assign: PodsToAssign,
    unit: AssignmentUnit,
    buffers: &mut SelectionBuffers,
) {
    let SelectionBuffers { sorted, shares, .. } = buffers;
    let mut pods = to_assign.pods;
    let mut left = NeededCapacity::of(to_assign, unit);
    sorted.move_leader_domain_first(counts, left);
    for at in 0..sorted.len() {
        let Some(domain) = sorted.best_fit_at(counts, at, left) else {
            return;
        };
        let count = counts[domain];
        let done = left.fits(count);
        let units_here = left.fitting(count).min(left.units);
        let share = DomainShare {
            domain,
            pods: (units_here * unit.size()).min(pods),
            leaders: count.leader.min(left.leaders),
        };
        left.units -= units_here;
        left.leaders -= share.leaders;
        pods -= share.pods;
        if share.pods > 0 || to_assign.leaders > 0 {
            shares.push(share);
        }
        if done {
            return;
        }
    }
}
