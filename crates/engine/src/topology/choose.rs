//! Phase two: which domains are taken, and how many pods stand in each.
//!
//! *Best fit* takes the smallest domain that holds everything, or the largest ones until everything is held, the last of
//! them again the smallest that will do. *Least free* (for unconstrained requests) fills the fullest domains first. Both
//! choose among the domains that the pods prefer most: if those do not hold everything, others are taken beside them, if
//! need be of a higher level, and only where a level is required a domain that is preferred less. From the level that was
//! found, shares go down to the leaves: above the level of slices over all children at once, below it within each domain.
//! Source: docs/reference/kueue.md §4.11.

use crate::ids::DomainId;
use crate::topology::count::Rooms;
use crate::topology::line::{Line, Unit};
use crate::topology::plan::{Plan, units};
use crate::topology::tree::Tree;

/// A domain with what it is given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) domain: DomainId,
    pub(super) pods: i64,
    pub(super) leaders: i64,
}

/// What is to be distributed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) pods: i64,
    pub(super) leaders: i64,
    /// The fullest domains first.
    pub(super) least_free: bool,
}

/// Buffers, kept between searches. `shares` is the outcome.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) line: Line,
    pub(super) shares: Vec<Share>,
    spare: Vec<Share>,
}

/// How many units fit, if not all do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Short {
    /// The level at which it was found out.
    pub(super) level: usize,
    pub(super) fit: i64,
}

/// Chooses leaves.
pub(super) fn choose(
    tree: &Tree,
    rooms: &Rooms,
    plan: &Plan,
    load: Load,
    buffers: &mut Buffers,
) -> Result<(), Short> {
    let mut level = find_level(tree, rooms, plan, load, buffers)?;
    let whole = Unit::Slice(plan.slice_size);
    distribute(rooms, load, whole, buffers);
    while level < plan.slice_level.min(tree.lowest()) {
        let Buffers { line, shares, .. } = buffers;
        let below = shares.iter().flat_map(|share| tree.children(share.domain));
        line.fill(rooms, below, load.least_free, false);
        shares.clear();
        distribute(rooms, load, whole, buffers);
        level += 1;
    }
    descend(tree, rooms, plan, level, load.least_free, buffers);
    let placed: i64 = buffers.shares.iter().map(|share| share.pods).sum();
    if placed < load.pods { Err(Short { level, fit: 0 }) } else { Ok(()) }
}

/// Takes shares from `level` down to the leaves, each within its domain.
pub(super) fn descend(
    tree: &Tree,
    rooms: &Rooms,
    plan: &Plan,
    from: usize,
    least_free: bool,
    buffers: &mut Buffers,
) {
    for level in from..tree.lowest() {
        let size = if level < plan.slice_level {
            plan.slice_size
        } else {
            plan.layer(level + 1).unwrap_or(1)
        };
        let unit = if size > 1 { Unit::Layer(size) } else { Unit::Pod };
        let mut above = std::mem::take(&mut buffers.spare);
        std::mem::swap(&mut above, &mut buffers.shares);
        for share in above.drain(..) {
            let load = Load { pods: share.pods, leaders: share.leaders, least_free };
            // Below the level of slices no domain holds any, so that those with the least room come first.
            buffers.line.fill(rooms, tree.children(share.domain), least_free, false);
            distribute(rooms, load, unit, buffers);
        }
        buffers.spare = above;
    }
}

/// Leaves in the line the domains that hold everything; returns their level.
fn find_level(
    tree: &Tree,
    rooms: &Rooms,
    plan: &Plan,
    load: Load,
    buffers: &mut Buffers,
) -> Result<usize, Short> {
    buffers.shares.clear();
    let line = &mut buffers.line;
    let (slices, unit) = (plan.slices(load.pods), Unit::Slice(plan.slice_size));
    let mut level = plan.level;
    loop {
        line.fill(rooms, tree.level(level), load.least_free, true);
        let Some(top) = line.get(0) else {
            return Err(Short { level, fit: -1 });
        };
        if let Some(one) = alone(rooms, line, plan.required, load, slices, unit) {
            line.fill(rooms, [one], load.least_free, true);
            return Ok(level);
        }
        if plan.required {
            return Err(Short { level, fit: rooms[top].slices });
        }
        if level == 0 || plan.unconstrained {
            break;
        }
        level -= 1;
    }
    several(rooms, load, slices, unit, line).map_err(|fit| Short { level, fit })?;
    Ok(level)
}

/// One domain that holds everything.
fn alone(
    rooms: &Rooms,
    line: &Line,
    required: bool,
    load: Load,
    slices: i64,
    unit: Unit,
) -> Option<DomainId> {
    let holds = |one: &DomainId| {
        rooms[*one].leader >= load.leaders && unit.held(rooms[*one], load.leaders > 0) >= slices
    };
    if load.least_free {
        return line.domains().find(holds);
    }
    // Without preferences the first holds the most.
    let candidates = if required && rooms.scores.any() { line.len() } else { 1 };
    let first = line.domains().take(candidates).position(|one| holds(&one))?;
    line.smallest(rooms, first, slices, load.leaders, unit)
}

/// Domains until everything is held: the one for the leader first. `Err` is how many slices fit.
fn several(rooms: &Rooms, load: Load, slices: i64, unit: Unit, line: &mut Line) -> Result<(), i64> {
    let (mut left, mut leaders, mut at) = (slices, load.leaders, 0);
    let mut first = None;
    line.put_leader_first(rooms, slices, leaders, unit);
    while leaders > 0
        && let Some(next) = line.get(at).filter(|&one| rooms[one].leader > 0)
    {
        let pick = pick(rooms, line, at, load.least_free, left, leaders, unit).unwrap_or(next);
        (leaders, left) = (leaders - rooms[pick].leader, left - rooms[pick].slices_with_leader);
        first = Some(pick);
        at += 1;
    }
    if leaders > 0 {
        return Err(0);
    }
    line.refill(rooms, at, load.least_free);
    at = 0;
    let mut last = None;
    while left > 0
        && let Some(next) = line.get(at)
    {
        let pick = pick(rooms, line, at, load.least_free, left, 0, unit).unwrap_or(next);
        left -= rooms[pick].slices;
        last = Some(pick);
        at += 1;
    }
    if left > 0 {
        return Err(slices - left);
    }
    line.keep(at, first, last);
    Ok(())
}

/// The domain at `at`, or the smallest after it that holds the rest, if it does.
fn pick(
    rooms: &Rooms,
    line: &Line,
    at: usize,
    least_free: bool,
    rest: i64,
    leaders: i64,
    unit: Unit,
) -> Option<DomainId> {
    let first = line.get(at)?;
    let enough = unit.held(rooms[first], leaders > 0) >= rest && rooms[first].leader >= leaders;
    if enough && !least_free {
        return line.smallest(rooms, at, rest, leaders, unit);
    }
    Some(first)
}

/// Gives every domain in line its share of the load, in order, until nothing is left. Where a leader is part of it, domains
/// that get nothing stay in the list: further down the leader may stand below one of them.
fn distribute(rooms: &Rooms, load: Load, unit: Unit, buffers: &mut Buffers) {
    let Buffers { line, shares, .. } = buffers;
    let (mut pods, mut leaders) = (load.pods, load.leaders);
    let mut left = units(pods, unit.size());
    line.put_leader_first(rooms, left, leaders, unit);
    for at in 0..line.len() {
        let Some(domain) = pick(rooms, line, at, load.least_free, left, leaders, unit) else {
            return;
        };
        let held = unit.held(rooms[domain], leaders > 0);
        let done = held >= left && rooms[domain].leader >= leaders;
        let part = held.min(left);
        let share = Share {
            domain,
            pods: (part * unit.size()).min(pods),
            leaders: rooms[domain].leader.min(leaders),
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
