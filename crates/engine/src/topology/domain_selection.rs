//! Phase two: which domains are taken, and how many pods stand in each.
//!
//! *Best fit* takes the smallest domain that holds everything, or the largest ones until everything is held, the last of
//! them again the smallest that will do. *Least free* (for unconstrained requests) fills the fullest domains first. Both
//! choose among the domains that the pods prefer most: if those do not hold everything, others are taken beside them, if
//! need be of a higher level, and only where a level is required a domain that is preferred less. From the level that was
//! found, shares go down to the leaves: above the level of slices over all children at once, below it within each domain.
//! Source: docs/reference/kueue.md §4.11.

use crate::ids::DomainId;
use crate::topology::domain_tree::DomainTree;
use crate::topology::fill_in_counts::CountsByDomain;
use crate::topology::normalized_request::{NormalizedRequest, units};
use crate::topology::sorted_domains::{AssignmentUnit, SortedDomains};

/// A domain with what it is given.
#[derive(Debug, Clone, Copy)]
pub(super) struct DomainShare {
    pub(super) domain: DomainId,
    pub(super) pods: i64,
    pub(super) leaders: i64,
}

/// What is to be distributed.
#[derive(Debug, Clone, Copy)]
pub(super) struct PodsToAssign {
    pub(super) pods: i64,
    pub(super) leaders: i64,
    /// The fullest domains first.
    pub(super) least_free: bool,
}

/// SelectionBuffers, kept between searches. `shares` is the outcome.
#[derive(Debug, Default)]
pub(super) struct SelectionBuffers {
    pub(super) line: SortedDomains,
    pub(super) shares: Vec<DomainShare>,
    spare: Vec<DomainShare>,
}

/// How many units fit, if not all do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotEnoughDomains {
    /// The level at which it was found out.
    pub(super) level: usize,
    pub(super) fit: i64,
}

/// Chooses leaves.
pub(super) fn select_domains(
    tree: &DomainTree,
    counts: &CountsByDomain,
    request: &NormalizedRequest,
    load: PodsToAssign,
    buffers: &mut SelectionBuffers,
) -> Result<(), NotEnoughDomains> {
    let mut level = find_level_with_fit_domains(tree, counts, request, load, buffers)?;
    let whole = AssignmentUnit::Slice(request.slice_size);
    assign_pods(counts, load, whole, buffers);
    while level < request.slice_level.min(tree.lowest()) {
        let SelectionBuffers { line, shares, .. } = buffers;
        let below = shares.iter().flat_map(|share| tree.children(share.domain));
        line.fill(counts, below, load.least_free, false);
        shares.clear();
        assign_pods(counts, load, whole, buffers);
        level += 1;
    }
    assign_to_leaves(tree, counts, request, level, load.least_free, buffers);
    let placed: i64 = buffers.shares.iter().map(|share| share.pods).sum();
    if placed < load.pods { Err(NotEnoughDomains { level, fit: 0 }) } else { Ok(()) }
}

/// Takes shares from `level` down to the leaves, each within its domain.
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
        let mut above = std::mem::take(&mut buffers.spare);
        std::mem::swap(&mut above, &mut buffers.shares);
        for share in above.drain(..) {
            let load = PodsToAssign { pods: share.pods, leaders: share.leaders, least_free };
            // Below the level of slices no domain holds any, so that those with the least room come first.
            buffers.line.fill(counts, tree.children(share.domain), least_free, false);
            assign_pods(counts, load, unit, buffers);
        }
        buffers.spare = above;
    }
}

/// Leaves in the line the domains that hold everything; returns their level.
fn find_level_with_fit_domains(
    tree: &DomainTree,
    counts: &CountsByDomain,
    request: &NormalizedRequest,
    load: PodsToAssign,
    buffers: &mut SelectionBuffers,
) -> Result<usize, NotEnoughDomains> {
    buffers.shares.clear();
    let line = &mut buffers.line;
    let (slices, unit) = (request.slices(load.pods), AssignmentUnit::Slice(request.slice_size));
    let mut level = request.level;
    loop {
        line.fill(counts, tree.level(level), load.least_free, true);
        let Some(top) = line.get(0) else {
            return Err(NotEnoughDomains { level, fit: -1 });
        };
        if let Some(one) = find_best_fit_domain(counts, line, request.required, load, slices, unit)
        {
            line.fill(counts, [one], load.least_free, true);
            return Ok(level);
        }
        if request.required {
            return Err(NotEnoughDomains { level, fit: counts[top].slices });
        }
        if level == 0 || request.unconstrained {
            break;
        }
        level -= 1;
    }
    find_domains_for_all(counts, load, slices, unit, line)
        .map_err(|fit| NotEnoughDomains { level, fit })?;
    Ok(level)
}

/// One domain that holds everything.
fn find_best_fit_domain(
    counts: &CountsByDomain,
    line: &SortedDomains,
    required: bool,
    load: PodsToAssign,
    slices: i64,
    unit: AssignmentUnit,
) -> Option<DomainId> {
    let holds = |one: &DomainId| {
        counts[*one].leader >= load.leaders && unit.held(counts[*one], load.leaders > 0) >= slices
    };
    if load.least_free {
        return line.domains().find(holds);
    }
    // Without preferences the first holds the most.
    let candidates = if required && counts.scores.any() { line.len() } else { 1 };
    let first = line.domains().take(candidates).position(|one| holds(&one))?;
    line.smallest(counts, first, slices, load.leaders, unit)
}

/// Domains until everything is held: the one for the leader first. `Err` is how many slices fit.
fn find_domains_for_all(
    counts: &CountsByDomain,
    load: PodsToAssign,
    slices: i64,
    unit: AssignmentUnit,
    line: &mut SortedDomains,
) -> Result<(), i64> {
    let (mut left, mut leaders, mut at) = (slices, load.leaders, 0);
    let mut first = None;
    line.put_leader_first(counts, slices, leaders, unit);
    while leaders > 0
        && let Some(next) = line.get(at).filter(|&one| counts[one].leader > 0)
    {
        let domain = best_fit_domain_at(counts, line, at, load.least_free, left, leaders, unit)
            .unwrap_or(next);
        (leaders, left) =
            (leaders - counts[domain].leader, left - counts[domain].slices_with_leader);
        first = Some(domain);
        at += 1;
    }
    if leaders > 0 {
        return Err(0);
    }
    line.refill(counts, at, load.least_free);
    at = 0;
    let mut last = None;
    while left > 0
        && let Some(next) = line.get(at)
    {
        let domain =
            best_fit_domain_at(counts, line, at, load.least_free, left, 0, unit).unwrap_or(next);
        left -= counts[domain].slices;
        last = Some(domain);
        at += 1;
    }
    if left > 0 {
        return Err(slices - left);
    }
    line.keep(at, first, last);
    Ok(())
}

/// The domain at `at`, or the smallest after it that holds the rest, if it does.
fn best_fit_domain_at(
    counts: &CountsByDomain,
    line: &SortedDomains,
    at: usize,
    least_free: bool,
    rest: i64,
    leaders: i64,
    unit: AssignmentUnit,
) -> Option<DomainId> {
    let first = line.get(at)?;
    let enough = unit.held(counts[first], leaders > 0) >= rest && counts[first].leader >= leaders;
    if enough && !least_free {
        return line.smallest(counts, at, rest, leaders, unit);
    }
    Some(first)
}

/// Gives every domain in line its share of the load, in order, until nothing is left. Where a leader is part of it, domains
/// that get nothing stay in the list: further down the leader may stand below one of them.
fn assign_pods(
    counts: &CountsByDomain,
    load: PodsToAssign,
    unit: AssignmentUnit,
    buffers: &mut SelectionBuffers,
) {
    let SelectionBuffers { line, shares, .. } = buffers;
    let (mut pods, mut leaders) = (load.pods, load.leaders);
    let mut left = units(pods, unit.size());
    line.put_leader_first(counts, left, leaders, unit);
    for at in 0..line.len() {
        let Some(domain) =
            best_fit_domain_at(counts, line, at, load.least_free, left, leaders, unit)
        else {
            return;
        };
        let held = unit.held(counts[domain], leaders > 0);
        let done = held >= left && counts[domain].leader >= leaders;
        let part = held.min(left);
        let share = DomainShare {
            domain,
            pods: (part * unit.size()).min(pods),
            leaders: counts[domain].leader.min(leaders),
        };
        (left, pods, leaders) = (left - part, pods - share.pods, leaders - share.leaders);
        if share.pods > 0 || load.leaders > 0 {
            shares.push(share);
        }
        if done {
            return;
        }
    }
}
