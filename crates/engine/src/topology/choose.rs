//! Phase two: which domains are taken, and how many pods stand in each.
//!
//! *Best fit* takes the smallest domain that holds everything, or the largest ones until everything is held, the last of
//! them again the smallest that will do. *Least free* (for unconstrained requests) fills the fullest domains first.

use std::cmp::Ordering;

use crate::topology::count::Room;
use crate::topology::tree::Tree;

/// What is to be distributed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) slices: i64,
    pub(super) leaders: i64,
    pub(super) slice_size: i64,
    pub(super) slice_level: usize,
    /// The fullest domains first.
    pub(super) least_free: bool,
}

/// A domain with what it is given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) domain: usize,
    pub(super) pods: i64,
    pub(super) leaders: i64,
}

/// Where to look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) level: usize,
    /// Only within one domain of this level.
    pub(super) required: bool,
    /// Anywhere, so that no higher level is tried.
    pub(super) unconstrained: bool,
}

/// Chooses leaves. `Err` says how many slices fit.
pub(super) fn choose(
    tree: &Tree,
    rooms: &[Room],
    load: Load,
    start: Start,
) -> Result<Vec<Share>, i64> {
    let (mut level, domains) = find(tree, rooms, load, start)?;
    let mut shares = distribute(tree, rooms, load, domains, Unit::Slices);
    while level + 1 < tree.by_level.len() {
        if level < load.slice_level {
            let below = shares.iter().flat_map(|share| tree.domains[share.domain].children.clone());
            let sorted = sorted(tree, rooms, below.collect(), load, load.leaders > 0);
            shares = distribute(tree, rooms, load, sorted, Unit::Slices);
        } else {
            shares = shares.iter().flat_map(|share| within(tree, rooms, load, *share)).collect();
        }
        level += 1;
    }
    Ok(shares)
}

/// Distributes what one domain was given among its children.
fn within(tree: &Tree, rooms: &[Room], load: Load, share: Share) -> Vec<Share> {
    let load = Load { slices: share.pods, leaders: share.leaders, slice_size: 1, ..load };
    let children = tree.domains[share.domain].children.clone();
    // Below the level of slices no domain holds any, so that those with the least room come first.
    let sorted = sorted(tree, rooms, children, load, load.leaders > 0);
    distribute(tree, rooms, load, sorted, Unit::Pods)
}

/// In what a distribution counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Slices,
    Pods,
}

fn held(room: Room, unit: Unit, leader: bool) -> i64 {
    match (unit, leader) {
        (Unit::Slices, false) => room.slices,
        (Unit::Slices, true) => room.slices_with_leader,
        (Unit::Pods, false) => room.pods,
        (Unit::Pods, true) => room.pods_with_leader,
    }
}

fn sorted(
    tree: &Tree,
    rooms: &[Room],
    mut domains: Vec<usize>,
    load: Load,
    leader: bool,
) -> Vec<usize> {
    let size = |left: i64, right: i64| {
        if load.least_free { left.cmp(&right) } else { right.cmp(&left) }
    };
    domains.sort_by(|&left, &right| {
        let (a, b) = (rooms[left], rooms[right]);
        let leaders = if leader { b.leader.cmp(&a.leader) } else { Ordering::Equal };
        leaders
            .then_with(|| size(held(a, Unit::Slices, leader), held(b, Unit::Slices, leader)))
            .then_with(|| held(a, Unit::Pods, leader).cmp(&held(b, Unit::Pods, leader)))
            .then_with(|| tree.domains[left].values.cmp(&tree.domains[right].values))
    });
    domains
}

/// The level and the domains that hold everything.
fn find(tree: &Tree, rooms: &[Room], load: Load, start: Start) -> Result<(usize, Vec<usize>), i64> {
    let leader = load.leaders > 0;
    let all = sorted(tree, rooms, tree.by_level[start.level].clone(), load, leader);
    let holds = |domain: usize| {
        held(rooms[domain], Unit::Slices, leader) >= load.slices
            && rooms[domain].leader >= load.leaders
    };
    let Some(&top) = all.first() else {
        return Err(0);
    };
    if load.least_free {
        if let Some(&first) = all.iter().find(|&&domain| holds(domain)) {
            return Ok((start.level, vec![first]));
        }
    } else if holds(top) {
        let best = smallest(rooms, &all, load.slices, load.leaders, Unit::Slices);
        return Ok((start.level, vec![best]));
    }
    if start.required {
        let most = all.iter().map(|&domain| {
            if leader && rooms[domain].leader == 0 {
                0
            } else {
                held(rooms[domain], Unit::Slices, leader)
            }
        });
        return Err(most.max().unwrap_or(0));
    }
    if start.level > 0 && !start.unconstrained {
        return find(tree, rooms, load, Start { level: start.level - 1, ..start });
    }
    several(tree, rooms, load, all).map(|domains| (start.level, domains))
}

/// Domains until everything is held.
fn several(
    tree: &Tree,
    rooms: &[Room],
    load: Load,
    mut all: Vec<usize>,
) -> Result<Vec<usize>, i64> {
    let (mut slices, mut leaders) = (load.slices, load.leaders);
    let mut taken = Vec::new();
    while leaders > 0 && !all.is_empty() {
        let pick = pick(rooms, load, &all, slices, true, Unit::Slices);
        if rooms[pick].leader == 0 {
            break;
        }
        all.retain(|&one| one != pick);
        leaders -= rooms[pick].leader;
        slices -= rooms[pick].slices_with_leader;
        taken.push(pick);
    }
    if leaders > 0 {
        return Err(0);
    }
    let mut all = sorted(tree, rooms, all, load, false);
    all.retain(|&domain| rooms[domain].slices > 0);
    while slices > 0 && !all.is_empty() {
        let pick = pick(rooms, load, &all, slices, false, Unit::Slices);
        all.retain(|&one| one != pick);
        slices -= rooms[pick].slices;
        taken.push(pick);
    }
    if slices > 0 { Err(load.slices - slices) } else { Ok(taken) }
}

/// The next domain: the first, or the smallest that holds the rest if the first does.
fn pick(rooms: &[Room], load: Load, all: &[usize], rest: i64, leader: bool, unit: Unit) -> usize {
    let first = all[0];
    if !load.least_free && held(rooms[first], unit, leader) >= rest {
        return smallest(rooms, all, rest, i64::from(leader), unit);
    }
    first
}

fn smallest(rooms: &[Room], all: &[usize], needed: i64, leaders: i64, unit: Unit) -> usize {
    let leader = leaders > 0;
    let fitting = all.iter().copied().filter(|&domain| {
        held(rooms[domain], unit, leader) >= needed && rooms[domain].leader >= leaders
    });
    fitting.min_by_key(|&domain| held(rooms[domain], unit, leader)).unwrap_or(all[0])
}

/// Gives every domain its part, in order, until nothing is left.
fn distribute(
    tree: &Tree,
    rooms: &[Room],
    load: Load,
    mut all: Vec<usize>,
    unit: Unit,
) -> Vec<Share> {
    let (mut rest, mut leaders) = (load.slices, load.leaders);
    let mut shares = Vec::new();
    while leaders > 0 && !all.is_empty() {
        let pick = pick(rooms, load, &all, rest, true, unit);
        all.retain(|&one| one != pick);
        let part = held(rooms[pick], unit, true).min(rest).max(0);
        shares.push(Share { domain: pick, pods: part * load.slice_size, leaders: 1 });
        rest -= part;
        leaders -= 1;
    }
    if load.leaders > 0 {
        all = sorted(tree, rooms, all, load, false);
    }
    while rest > 0 && !all.is_empty() {
        let pick = pick(rooms, load, &all, rest, false, unit);
        all.retain(|&one| one != pick);
        let part = held(rooms[pick], unit, false).min(rest);
        if part > 0 {
            shares.push(Share { domain: pick, pods: part * load.slice_size, leaders: 0 });
        }
        rest -= part;
    }
    shares
}
