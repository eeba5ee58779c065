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
use crate::topology::normalized_request::{NormalizedRequest, units};
use crate::topology::sorted_domains::{AssignmentUnit, SortedDomains};

/// A domain and its share of the pods.
#[derive(Debug, Clone, Copy)]
pub(super) struct DomainShare {
    pub(super) domain: DomainId,
    pub(super) pods: i64,
    pub(super) leaders: i64,
}

/// Pods to assign.
#[derive(Debug, Clone, Copy)]
pub(super) struct PodsToAssign {
    pub(super) pods: i64,
    pub(super) leaders: i64,
    /// Least free capacity first.
    pub(super) least_free: bool,
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

/// Selects leaves.
///
/// # Errors
/// The level, and the number of slices that fit; -1 if the level has no domains.
pub(super) fn select_domains(
    tree: &DomainTree,
    counts: &CountsByDomain,
    request: &NormalizedRequest,
    to_assign: PodsToAssign,
    buffers: &mut SelectionBuffers,
) -> Result<(), NotEnoughDomains> {
    let mut level = find_level_with_fit_domains(tree, counts, request, to_assign, buffers)?;
    let slice = AssignmentUnit::Slice(request.slice_size);
    assign_pods(counts, to_assign, slice, buffers);
    // Above the slice level the children of all selected domains are pooled (§4.11).
    while level < request.slice_level.min(tree.lowest()) {
        let SelectionBuffers { sorted, shares, .. } = buffers;
        let below = shares.iter().flat_map(|share| tree.children(share.domain));
        sorted.fill(counts, below, to_assign.least_free, false);
        shares.clear();
        assign_pods(counts, to_assign, slice, buffers);
        level += 1;
    }
    assign_to_leaves(tree, counts, request, level, to_assign.least_free, buffers);
    let assigned: i64 = buffers.shares.iter().map(|share| share.pods).sum();
    if assigned < to_assign.pods { Err(NotEnoughDomains { level, fit: 0 }) } else { Ok(()) }
}

/// Takes shares from level `from` down to the leaves, each share within its domain.
pub(super) fn assign_to_leaves(
    tree: &DomainTree,
    counts: &CountsByDomain,
    request: &NormalizedRequest,
    from: usize,
    least_free: bool,
    buffers: &mut SelectionBuffers,
) {
    for level in from..tree.lowest() {
        let size = if level < request.slice_level {
            request.slice_size
        } else {
            request.layer(level + 1).unwrap_or(1)
        };
        let unit = if size > 1 { AssignmentUnit::Layer(size) } else { AssignmentUnit::Pod };
        let mut above = std::mem::take(&mut buffers.spare_shares);
        std::mem::swap(&mut above, &mut buffers.shares);
        for share in above.drain(..) {
            let to_assign = PodsToAssign { pods: share.pods, leaders: share.leaders, least_free };
            // Slice counts are zero below the slice level, so the domains with the least capacity come first, as in
            // upstream.
            buffers.sorted.fill(counts, tree.children(share.domain), least_free, false);
            assign_pods(counts, to_assign, unit, buffers);
        }
        buffers.spare_shares = above;
    }
}

/// Reduces the sorted domains to those that hold everything; returns their level.
fn find_level_with_fit_domains(
    tree: &DomainTree,
    counts: &CountsByDomain,
    request: &NormalizedRequest,
    to_assign: PodsToAssign,
    buffers: &mut SelectionBuffers,
) -> Result<usize, NotEnoughDomains> {
    buffers.shares.clear();
    let sorted = &mut buffers.sorted;
    let (slices, unit) =
        (request.slices(to_assign.pods), AssignmentUnit::Slice(request.slice_size));
    let mut level = request.level;
    loop {
        sorted.fill(counts, tree.level(level), to_assign.least_free, true);
        let Some(top) = sorted.get(0) else {
            return Err(NotEnoughDomains { level, fit: -1 });
        };
        if let Some(one) =
            find_best_fit_domain(counts, sorted, request.required, to_assign, slices, unit)
        {
            sorted.fill(counts, [one], to_assign.least_free, true);
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
    find_domains_for_all(counts, to_assign, slices, unit, sorted)
        .map_err(|fit| NotEnoughDomains { level, fit })?;
    Ok(level)
}

/// One domain that holds everything.
fn find_best_fit_domain(
    counts: &CountsByDomain,
    sorted: &SortedDomains,
    required: bool,
    to_assign: PodsToAssign,
    slices: i64,
    unit: AssignmentUnit,
) -> Option<DomainId> {
    let holds = |one: &DomainId| {
        counts[*one].leader >= to_assign.leaders
            && unit.fitting(counts[*one], to_assign.leaders > 0) >= slices
    };
    if to_assign.least_free {
        return sorted.domains().find(holds);
    }
    // Without affinity scores the first domain has the highest count.
    let candidates = if required && counts.scores.any() { sorted.len() } else { 1 };
    let first = sorted.domains().take(candidates).position(|one| holds(&one))?;
    sorted.smallest(counts, first, slices, to_assign.leaders, unit)
}

/// Keeps domains until everything is assigned, the leader's domain first. The error is the number of slices that
/// fit.
fn find_domains_for_all(
    counts: &CountsByDomain,
    to_assign: PodsToAssign,
    slices: i64,
    unit: AssignmentUnit,
    sorted: &mut SortedDomains,
) -> Result<(), i64> {
    sorted.move_leader_domain_first(counts, slices, to_assign.leaders, unit);
    let (first, at, mut left) = find_leader_domains(counts, to_assign, slices, unit, sorted)?;
    sorted.resort(counts, at, to_assign.least_free);
    let (mut last, mut at) = (None, 0);
    while left > 0
        && let Some(next) = sorted.get(at)
    {
        let domain = best_fit_domain_at(counts, sorted, at, to_assign.least_free, left, 0, unit)
            .unwrap_or(next);
        left -= counts[domain].slices;
        last = Some(domain);
        at += 1;
    }
    if left > 0 {
        return Err(slices - left);
    }
    sorted.keep(at, first, last);
    Ok(())
}

/// Finds the domains of the leaders: the last of them, their number, and the slices left for other domains.
fn find_leader_domains(
    counts: &CountsByDomain,
    to_assign: PodsToAssign,
    slices: i64,
    unit: AssignmentUnit,
    sorted: &SortedDomains,
) -> Result<(Option<DomainId>, usize, i64), i64> {
    let PodsToAssign { mut leaders, least_free, .. } = to_assign;
    let (mut found, mut at, mut left) = (None, 0, slices);
    while leaders > 0
        && let Some(next) = sorted.get(at).filter(|&one| counts[one].leader > 0)
    {
        let domain =
            best_fit_domain_at(counts, sorted, at, least_free, left, leaders, unit).unwrap_or(next);
        leaders -= counts[domain].leader;
        left -= counts[domain].slices_with_leader;
        found = Some(domain);
        at += 1;
    }
    // Without a domain for the leader no slice counts as fitting.
    if leaders > 0 { Err(0) } else { Ok((found, at, left)) }
}

/// The domain at `at`; if it holds the rest, the smallest one from there on that does.
fn best_fit_domain_at(
    counts: &CountsByDomain,
    sorted: &SortedDomains,
    at: usize,
    least_free: bool,
    left: i64,
    leaders: i64,
    unit: AssignmentUnit,
) -> Option<DomainId> {
    let first = sorted.get(at)?;
    let enough =
        unit.fitting(counts[first], leaders > 0) >= left && counts[first].leader >= leaders;
    if enough && !least_free {
        return sorted.smallest(counts, at, left, leaders, unit);
    }
    Some(first)
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
    let (mut pods, mut leaders) = (to_assign.pods, to_assign.leaders);
    let mut left = units(pods, unit.size());
    sorted.move_leader_domain_first(counts, left, leaders, unit);
    for at in 0..sorted.len() {
        let Some(domain) =
            best_fit_domain_at(counts, sorted, at, to_assign.least_free, left, leaders, unit)
        else {
            return;
        };
        let fitting = unit.fitting(counts[domain], leaders > 0);
        let done = fitting >= left && counts[domain].leader >= leaders;
        let units_here = fitting.min(left);
        let share = DomainShare {
            domain,
            pods: (units_here * unit.size()).min(pods),
            leaders: counts[domain].leader.min(leaders),
        };
        (left, pods, leaders) = (left - units_here, pods - share.pods, leaders - share.leaders);
        if share.pods > 0 || to_assign.leaders > 0 {
            shares.push(share);
        }
        if done {
            return;
        }
    }
}
