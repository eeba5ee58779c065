//! Balanced placement: as few domains as possible, and the least that one of them gets as large as possible.
//!
//! For preferred requests under the gate TASBalancedPlacement. Among the siblings below each domain one level up, a greedy
//! count says how many domains are needed; the *threshold* is what each of them can get at least. Domains that hold less
//! are struck off. The siblings with the highest threshold win, then those that need fewer domains; every chosen domain
//! gets the threshold, and what is left is dealt out in order. Where this fails, the ordinary choice is made. Preferred
//! domains are counted first whatever they hold, and the count ends at one that holds nothing: as in upstream, a preferred
//! domain that is full or struck off ends the attempt. Source: docs/reference/kueue.md §4.11. Cost: counting every group of
//! siblings once more, and [`subset`].

use crate::ids::DomainId;
use crate::topology::choose::{Buffers, Load, Share, descend};
use crate::topology::count::{Room, Rooms, recount};
use crate::topology::line::Line;
use crate::topology::plan::Plan;
use crate::topology::subset::{Ranks, Subset, by_entropy};
use crate::topology::tree::Tree;

/// Buffers, kept between searches.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// Rooms with domains struck off.
    rooms: Rooms,
    line: Line,
    group: Vec<DomainId>,
    best: Vec<DomainId>,
    subset: Subset,
    ranks: Ranks,
}

/// What a greedy choice would take.
struct Greedy {
    domains: i64,
    /// The domain of the leader, and the last one without.
    led: Option<DomainId>,
    last: Option<DomainId>,
}

struct Search<'a> {
    tree: &'a Tree,
    plan: &'a Plan,
    slices: i64,
    load: Load,
}

/// Places the load in balance. `None` if that is impossible, or if a domain holds its share only in pieces of slices: such
/// pieces count as room while shares are dealt, and upstream leaves pods without places then.
pub(super) fn place(
    tree: &Tree,
    rooms: &Rooms,
    plan: &Plan,
    load: Load,
    trial: &mut Trial,
    buffers: &mut Buffers,
) -> Option<()> {
    let layered = plan;
    // Inner layers do not count until shares go down, as upstream does not count them.
    let plan = &Plan { layers: smallvec::SmallVec::new(), ..plan.clone() };
    let search = Search { tree, plan, slices: plan.slices(load.pods), load };
    trial.rooms.copy_from(rooms);
    let threshold = search.best_siblings(rooms, trial)?;
    let mut level = plan.level;
    if level < plan.slice_level {
        let Trial { rooms, line, best, subset, ranks, .. } = trial;
        by_entropy(tree, rooms, best, ranks);
        search.fewest(rooms, line, best, subset)?;
        let below = best.iter().flat_map(|&one| tree.children(one));
        trial.group.clear();
        trial.group.extend(below);
        std::mem::swap(&mut trial.group, &mut trial.best);
        level += 1;
    }
    search.deal(threshold, trial, buffers)?;
    descend(tree, &trial.rooms, layered, level, false, buffers);
    let placed: i64 = buffers.shares.iter().map(|share| share.pods).sum();
    (placed == load.pods).then_some(())
}

impl Search<'_> {
    /// Leaves the siblings with the highest threshold in `trial.best`, struck off as needed; returns the threshold.
    fn best_siblings(&self, rooms: &Rooms, trial: &mut Trial) -> Option<i64> {
        let (mut threshold, mut domains) = (0, 0);
        let above = self.plan.level.checked_sub(1);
        let parents = above.into_iter().flat_map(|level| self.tree.level(level)).map(Some);
        let whole_level = above.is_none().then_some(None);
        for parent in parents.chain(whole_level) {
            trial.group.clear();
            match parent {
                Some(parent) => trial.group.extend(self.tree.children(parent)),
                None => trial.group.extend(self.tree.level(0)),
            }
            let Some((found, needed)) = self.judge(rooms, trial, threshold) else {
                continue;
            };
            if found > threshold || (found == threshold && needed < domains) {
                (threshold, domains) = (found, needed);
                std::mem::swap(&mut trial.best, &mut trial.group);
            }
        }
        (threshold > 0).then_some(threshold)
    }

    /// The threshold of one group of siblings, and how many of them are needed once the small ones are struck off.
    fn judge(&self, rooms: &Rooms, trial: &mut Trial, least: i64) -> Option<(i64, i64)> {
        let Trial { rooms: cut, line, group, .. } = trial;
        let fine = self.plan.level < self.plan.slice_level;
        let greedy = if fine {
            let children = group.iter().flat_map(|&one| self.tree.children(one));
            self.greedy(cut, line, children)?
        } else {
            self.greedy(cut, line, group.iter().copied())?
        };
        let threshold = self.threshold(cut, &greedy);
        if threshold < least {
            return None;
        }
        self.strike_off(cut, group, threshold);
        if let Some(greedy) = self.greedy(cut, line, group.iter().copied()) {
            return Some((threshold, greedy.domains));
        }
        // Once more with a threshold that leaves the leader its room.
        let (true, Some(last)) = (self.load.leaders > 0, greedy.last) else {
            return None;
        };
        let lower = threshold.min(rooms[last].slices_with_leader);
        if lower >= threshold || lower <= 0 || lower < least {
            return None;
        }
        group.iter().for_each(|&domain| self.restore(rooms, cut, domain));
        self.strike_off(cut, group, lower);
        self.greedy(cut, line, group.iter().copied()).map(|greedy| (lower, greedy.domains))
    }

    /// The largest domains until everything is held.
    fn greedy(
        &self,
        rooms: &Rooms,
        line: &mut Line,
        domains: impl Iterator<Item = DomainId>,
    ) -> Option<Greedy> {
        let (mut left, mut leaders) = (self.slices, self.load.leaders);
        let mut taken = Greedy { domains: 0, led: None, last: None };
        line.fill(rooms, domains, false, leaders > 0);
        let mut at = 0;
        while leaders > 0
            && let Some(next) = line.get(at).filter(|&one| rooms[one].leader > 0)
        {
            (leaders, left) = (leaders - rooms[next].leader, left - rooms[next].slices_with_leader);
            taken = Greedy { domains: taken.domains + 1, led: Some(next), ..taken };
            at += 1;
        }
        if leaders > 0 {
            return None;
        }
        if at > 0 {
            line.refill(rooms, at, false);
        }
        at = 0;
        while left > 0
            && let Some(next) = line.get(at).filter(|&one| rooms[one].slices > 0)
        {
            left -= rooms[next].slices;
            taken = Greedy { domains: taken.domains + 1, last: Some(next), ..taken };
            at += 1;
        }
        (left <= 0).then_some(taken)
    }

    fn threshold(&self, rooms: &Rooms, greedy: &Greedy) -> i64 {
        let even = self.slices.checked_div(greedy.domains).unwrap_or_default();
        let led = greedy.led.map_or(even, |one| rooms[one].slices_with_leader);
        let last = greedy.last.map_or(even, |one| rooms[one].slices);
        even.min(led).min(last)
    }

    /// Strikes off domains, and their children, that hold less than the threshold. Below the level of slices none holds
    /// any, so that slices of the very level asked for are never balanced above the lowest; upstream strikes these off too.
    fn strike_off(&self, rooms: &mut Rooms, group: &[DomainId], threshold: i64) {
        let led = self.load.leaders > 0;
        for &domain in group {
            for child in self.tree.children(domain) {
                self.strike_off_one(rooms, child, threshold);
            }
        }
        for &domain in group {
            recount(self.tree, rooms, self.plan, self.plan.level, domain, led);
            self.strike_off_one(rooms, domain, threshold);
        }
    }

    fn strike_off_one(&self, rooms: &mut Rooms, domain: DomainId, threshold: i64) {
        let room = rooms[domain];
        if room.slices < threshold {
            self.change(rooms, domain, |room| *room = Room::default());
        } else if room.leader > 0 && room.slices_with_leader < threshold && self.load.leaders > 0 {
            self.change(rooms, domain, |room| {
                (room.leader, room.pods_with_leader, room.slices_with_leader) = (0, 0, 0);
            });
        }
    }

    /// Changes a domain and everything below it.
    fn change(&self, rooms: &mut Rooms, domain: DomainId, how: impl Fn(&mut Room) + Copy) {
        how(&mut rooms[domain]);
        for child in self.tree.children(domain) {
            self.change(rooms, child, how);
        }
    }

    fn restore(&self, from: &Rooms, rooms: &mut Rooms, domain: DomainId) {
        rooms[domain] = from[domain];
        self.tree.children(domain).for_each(|child| self.restore(from, rooms, child));
    }

    /// Cuts a list of domains down to the fewest that hold everything, of those the ones with the least left over.
    fn fewest(
        &self,
        rooms: &Rooms,
        line: &mut Line,
        domains: &mut Vec<DomainId>,
        subset: &mut Subset,
    ) -> Option<()> {
        let needed = self.greedy(rooms, line, domains.iter().copied())?.domains;
        let pods = self.slices * self.plan.slice_size;
        subset.choose(rooms, domains, needed, self.load.leaders, pods)
    }

    /// Gives each domain the threshold, and deals out the rest in order.
    fn deal(&self, threshold: i64, trial: &mut Trial, buffers: &mut Buffers) -> Option<()> {
        let Trial { rooms, line, best, subset, .. } = trial;
        best.sort_unstable();
        self.fewest(rooms, line, best, subset)?;
        let count = i64::try_from(best.len()).unwrap_or(i64::MAX);
        let mut rest = self.slices - count * threshold;
        if rest < 0 {
            return None;
        }
        line.fill(rooms, best.iter().copied(), false, true);
        let (mut leaders, mut pods) = (self.load.leaders, self.load.pods);
        buffers.shares.clear();
        for domain in line.domains() {
            let room = rooms[domain];
            let held = if leaders > 0 { room.slices_with_leader } else { room.slices };
            let extra = (held - threshold).min(rest);
            let share = Share {
                domain,
                pods: ((threshold + extra) * self.plan.slice_size).min(pods),
                leaders: leaders.min(1),
            };
            (rest, pods, leaders) = (rest - extra, pods - share.pods, leaders - share.leaders);
            buffers.shares.push(share);
        }
        (rest == 0 && leaders == 0).then_some(())
    }
}
