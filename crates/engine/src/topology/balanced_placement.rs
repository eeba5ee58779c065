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
use crate::topology::domain_selection::{
    DomainShare, PodsToAssign, SelectionBuffers, assign_to_leaves,
};
use crate::topology::domain_set_selector::{DomainSetSelector, EntropyKeys, by_entropy};
use crate::topology::domain_tree::DomainTree;
use crate::topology::fill_in_counts::{CountsByDomain, DomainCounts, recount};
use crate::topology::normalized_request::NormalizedRequest;
use crate::topology::sorted_domains::SortedDomains;

/// SelectionBuffers, kept between searches.
#[derive(Debug, Default)]
pub(super) struct BalanceBuffers {
    /// CountsByDomain with domains struck off.
    counts: CountsByDomain,
    line: SortedDomains,
    group: Vec<DomainId>,
    best: Vec<DomainId>,
    subset: DomainSetSelector,
    ranks: EntropyKeys,
}

/// What a greedy choice would take.
struct GreedyAssignment {
    domains: i64,
    /// The domain of the leader, and the last one without.
    led: Option<DomainId>,
    last: Option<DomainId>,
}

struct BalancedSearch<'a> {
    tree: &'a DomainTree,
    request: &'a NormalizedRequest,
    slices: i64,
    load: PodsToAssign,
}

/// Places the load in balance. `None` if that is impossible, or if a domain holds its share only in pieces of slices: such
/// pieces count as room while shares are dealt, and upstream leaves pods without places then.
pub(super) fn apply_balanced_placement(
    tree: &DomainTree,
    counts: &CountsByDomain,
    request: &NormalizedRequest,
    load: PodsToAssign,
    balance: &mut BalanceBuffers,
    buffers: &mut SelectionBuffers,
) -> Option<()> {
    let layered = request;
    // Inner layers do not count until shares go down, as upstream does not count them.
    let request = &NormalizedRequest { layers: smallvec::SmallVec::new(), ..request.clone() };
    let search = BalancedSearch { tree, request, slices: request.slices(load.pods), load };
    balance.counts.copy_from(counts);
    let threshold = search.best_siblings(counts, balance)?;
    let mut level = request.level;
    if level < request.slice_level {
        let BalanceBuffers { counts, line, best, subset, ranks, .. } = balance;
        by_entropy(tree, counts, best, ranks);
        search.fewest(counts, line, best, subset)?;
        let below = best.iter().flat_map(|&one| tree.children(one));
        balance.group.clear();
        balance.group.extend(below);
        std::mem::swap(&mut balance.group, &mut balance.best);
        level += 1;
    }
    search.deal(threshold, balance, buffers)?;
    assign_to_leaves(tree, &balance.counts, layered, level, false, buffers);
    let placed: i64 = buffers.shares.iter().map(|share| share.pods).sum();
    (placed == load.pods).then_some(())
}

impl BalancedSearch<'_> {
    /// Leaves the siblings with the highest threshold in `trial.best`, struck off as needed; returns the threshold.
    fn best_siblings(&self, counts: &CountsByDomain, balance: &mut BalanceBuffers) -> Option<i64> {
        let (mut threshold, mut domains) = (0, 0);
        let above = self.request.level.checked_sub(1);
        let parents = above.into_iter().flat_map(|level| self.tree.level(level)).map(Some);
        let whole_level = above.is_none().then_some(None);
        for parent in parents.chain(whole_level) {
            balance.group.clear();
            match parent {
                Some(parent) => balance.group.extend(self.tree.children(parent)),
                None => balance.group.extend(self.tree.level(0)),
            }
            let Some((found, needed)) = self.judge(counts, balance, threshold) else {
                continue;
            };
            if found > threshold || (found == threshold && needed < domains) {
                (threshold, domains) = (found, needed);
                std::mem::swap(&mut balance.best, &mut balance.group);
            }
        }
        (threshold > 0).then_some(threshold)
    }

    /// The threshold of one group of siblings, and how many of them are needed once the small ones are struck off.
    fn judge(
        &self,
        counts: &CountsByDomain,
        balance: &mut BalanceBuffers,
        least: i64,
    ) -> Option<(i64, i64)> {
        let BalanceBuffers { counts: cut, line, group, .. } = balance;
        let fine = self.request.level < self.request.slice_level;
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
        let lower = threshold.min(counts[last].slices_with_leader);
        if lower >= threshold || lower <= 0 || lower < least {
            return None;
        }
        group.iter().for_each(|&domain| self.restore(counts, cut, domain));
        self.strike_off(cut, group, lower);
        self.greedy(cut, line, group.iter().copied()).map(|greedy| (lower, greedy.domains))
    }

    /// The largest domains until everything is held.
    fn greedy(
        &self,
        counts: &CountsByDomain,
        line: &mut SortedDomains,
        domains: impl Iterator<Item = DomainId>,
    ) -> Option<GreedyAssignment> {
        let (mut left, mut leaders) = (self.slices, self.load.leaders);
        let mut taken = GreedyAssignment { domains: 0, led: None, last: None };
        line.fill(counts, domains, false, leaders > 0);
        let mut at = 0;
        while leaders > 0
            && let Some(next) = line.get(at).filter(|&one| counts[one].leader > 0)
        {
            (leaders, left) =
                (leaders - counts[next].leader, left - counts[next].slices_with_leader);
            taken = GreedyAssignment { domains: taken.domains + 1, led: Some(next), ..taken };
            at += 1;
        }
        if leaders > 0 {
            return None;
        }
        if at > 0 {
            line.refill(counts, at, false);
        }
        at = 0;
        while left > 0
            && let Some(next) = line.get(at).filter(|&one| counts[one].slices > 0)
        {
            left -= counts[next].slices;
            taken = GreedyAssignment { domains: taken.domains + 1, last: Some(next), ..taken };
            at += 1;
        }
        (left <= 0).then_some(taken)
    }

    fn threshold(&self, counts: &CountsByDomain, greedy: &GreedyAssignment) -> i64 {
        let even = self.slices.checked_div(greedy.domains).unwrap_or_default();
        let led = greedy.led.map_or(even, |one| counts[one].slices_with_leader);
        let last = greedy.last.map_or(even, |one| counts[one].slices);
        even.min(led).min(last)
    }

    /// Strikes off domains, and their children, that hold less than the threshold. Below the level of slices none holds
    /// any, so that slices of the very level asked for are never balanced above the lowest; upstream strikes these off too.
    fn strike_off(&self, counts: &mut CountsByDomain, group: &[DomainId], threshold: i64) {
        let led = self.load.leaders > 0;
        for &domain in group {
            for child in self.tree.children(domain) {
                self.strike_off_one(counts, child, threshold);
            }
        }
        for &domain in group {
            recount(self.tree, counts, self.request, self.request.level, domain, led);
            self.strike_off_one(counts, domain, threshold);
        }
    }

    fn strike_off_one(&self, counts: &mut CountsByDomain, domain: DomainId, threshold: i64) {
        let count = counts[domain];
        if count.slices < threshold {
            self.change(counts, domain, |count| *count = DomainCounts::default());
        } else if count.leader > 0 && count.slices_with_leader < threshold && self.load.leaders > 0
        {
            self.change(counts, domain, |count| {
                (count.leader, count.pods_with_leader, count.slices_with_leader) = (0, 0, 0);
            });
        }
    }

    /// Changes a domain and everything below it.
    fn change(
        &self,
        counts: &mut CountsByDomain,
        domain: DomainId,
        how: impl Fn(&mut DomainCounts) + Copy,
    ) {
        how(&mut counts[domain]);
        for child in self.tree.children(domain) {
            self.change(counts, child, how);
        }
    }

    fn restore(&self, from: &CountsByDomain, counts: &mut CountsByDomain, domain: DomainId) {
        counts[domain] = from[domain];
        self.tree.children(domain).for_each(|child| self.restore(from, counts, child));
    }

    /// Cuts a list of domains down to the fewest that hold everything, of those the ones with the least left over.
    fn fewest(
        &self,
        counts: &CountsByDomain,
        line: &mut SortedDomains,
        domains: &mut Vec<DomainId>,
        subset: &mut DomainSetSelector,
    ) -> Option<()> {
        let needed = self.greedy(counts, line, domains.iter().copied())?.domains;
        let pods = self.slices * self.request.slice_size;
        subset.choose(counts, domains, needed, self.load.leaders, pods)
    }

    /// Gives each domain the threshold, and deals out the rest in order.
    fn deal(
        &self,
        threshold: i64,
        balance: &mut BalanceBuffers,
        buffers: &mut SelectionBuffers,
    ) -> Option<()> {
        let BalanceBuffers { counts, line, best, subset, .. } = balance;
        best.sort_unstable();
        self.fewest(counts, line, best, subset)?;
        let count = i64::try_from(best.len()).unwrap_or(i64::MAX);
        let mut rest = self.slices - count * threshold;
        if rest < 0 {
            return None;
        }
        line.fill(counts, best.iter().copied(), false, true);
        let (mut leaders, mut pods) = (self.load.leaders, self.load.pods);
        buffers.shares.clear();
        for domain in line.domains() {
            let count = counts[domain];
            let held = if leaders > 0 { count.slices_with_leader } else { count.slices };
            let extra = (held - threshold).min(rest);
            let share = DomainShare {
                domain,
                pods: ((threshold + extra) * self.request.slice_size).min(pods),
                leaders: leaders.min(1),
            };
            (rest, pods, leaders) = (rest - extra, pods - share.pods, leaders - share.leaders);
            buffers.shares.push(share);
        }
        (rest == 0 && leaders == 0).then_some(())
    }
}
