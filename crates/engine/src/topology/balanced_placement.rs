//! Balanced placement: uses as few domains as possible and maximizes the smallest number of slices in any of them.
//!
//! Applies to preferred requests under the gate TASBalancedPlacement. For the siblings below each domain one level
//! above the requested one:
//! * a greedy assignment gives the number of domains needed;
//! * the *threshold* is the number of slices that each of them can take at least; domains below the threshold are
//!   pruned;
//! * the siblings with the highest threshold win, ties go to those that need fewer domains.
//!
//! Each chosen domain gets the threshold, the rest is assigned in sort order. If any step fails, the ordinary
//! selection runs instead. Preferred nodes are sorted first whatever fits there, and the greedy assignment ends at
//! a domain where nothing fits; so, as upstream, a preferred domain that is full or pruned ends the attempt.
//! Source: docs/reference/kueue.md §4.11. Cost: one more count per group of siblings, and
//! [`domain_set_selector`](super::domain_set_selector).

use crate::ids::DomainId;
use crate::topology::domain_selection::{DomainSelection, DomainShare, SelectionBuffers};
use crate::topology::domain_set_selector::{DomainSetSelector, EntropyKeys, sort_by_entropy};
use crate::topology::domain_tree::DomainTree;
use crate::topology::fill_in_counts::{CountsByDomain, recount};
use crate::topology::leaf_counts::DomainCounts;
use crate::topology::needed_capacity::PodsToAssign;
use crate::topology::normalized_request::NormalizedRequest;
use crate::topology::sorted_domains::{FillOrder, SortedDomains};

/// Buffers kept between searches.
#[derive(Debug, Default)]
pub(super) struct BalanceBuffers {
    /// Counts after pruning.
    counts: CountsByDomain,
    sorted: SortedDomains,
    group: Vec<DomainId>,
    best: Vec<DomainId>,
    selector: DomainSetSelector,
    entropy_keys: EntropyKeys,
}

/// Result of a greedy assignment.
struct GreedyAssignment {
    domains: i64,
    /// `leader_domain`: the domain of the leader; `last`: the last domain without one.
    leader_domain: Option<DomainId>,
    last: Option<DomainId>,
}

struct BalancedSearch<'a> {
    tree: &'a DomainTree,
    request: &'a NormalizedRequest,
    slices: i64,
    to_assign: PodsToAssign,
}

/// Assigns the pods in balance. `None` if that is impossible, or if a domain can hold its share only in fractions
/// of slices: shares count such fractions as capacity, and upstream leaves pods unassigned in that case.
pub(super) fn apply_balanced_placement(
    selection: DomainSelection<'_>,
    to_assign: PodsToAssign,
    balance: &mut BalanceBuffers,
    buffers: &mut SelectionBuffers,
) -> Option<()> {
    let DomainSelection { tree, counts, request, .. } = selection;
    // Inner slice layers count only while shares go down to the leaves, as in upstream.
    let request = &NormalizedRequest { layers: smallvec::SmallVec::new(), ..request.clone() };
    let search =
        BalancedSearch { tree, request, slices: request.slices(to_assign.pods), to_assign };
    balance.counts.copy_from(counts);
    let threshold = search.find_best_siblings(counts, balance)?;
    let mut level = request.level;
    if level < request.slice_level {
        let BalanceBuffers { counts, sorted, best, selector, entropy_keys, .. } = balance;
        sort_by_entropy(tree, counts, best, entropy_keys);
        search.reduce_to_fewest(counts, sorted, best, selector)?;
        let below = best.iter().flat_map(|&one| tree.children(one));
        balance.group.clear();
        balance.group.extend(below);
        std::mem::swap(&mut balance.group, &mut balance.best);
        level += 1;
    }
    search.assign_balanced(threshold, balance, buffers)?;
    DomainSelection { counts: &balance.counts, ..selection }.assign_to_leaves(level, buffers);
    let assigned: i64 = buffers.shares.iter().map(|share| share.pods).sum();
    (assigned == to_assign.pods).then_some(())
}

impl BalancedSearch<'_> {
    /// Stores the siblings with the highest threshold in `balance.best` and prunes their counts; returns the
    /// threshold.
    fn find_best_siblings(
        &self,
        counts: &CountsByDomain,
        balance: &mut BalanceBuffers,
    ) -> Option<i64> {
        let (mut threshold, mut domains) = (0, 0);
        let above = self.request.level.checked_sub(1);
        let parents = above.into_iter().flat_map(|level| self.tree.level(level)).map(Some);
        let whole_level = above.is_none().then_some(None);
        for parent in parents.chain(whole_level) {
            balance.group.clear();
            match parent {
                Some(parent) => balance.group.extend(self.tree.children(parent)),
                // The domains of the top level have no parent and are siblings of each other.
                None => balance.group.extend(self.tree.level(0)),
            }
            let Some((found, needed)) = self.evaluate_siblings(counts, balance, threshold) else {
                continue;
            };
            if found > threshold || (found == threshold && needed < domains) {
                (threshold, domains) = (found, needed);
                std::mem::swap(&mut balance.best, &mut balance.group);
            }
        }
        (threshold > 0).then_some(threshold)
    }

    /// The threshold of one group of siblings, and how many of them are needed after pruning.
    fn evaluate_siblings(
        &self,
        counts: &CountsByDomain,
        balance: &mut BalanceBuffers,
        least: i64,
    ) -> Option<(i64, i64)> {
        let BalanceBuffers { counts: pruned, sorted, group, .. } = balance;
        let above_slice_level = self.request.level < self.request.slice_level;
        let greedy = if above_slice_level {
            let children = group.iter().flat_map(|&one| self.tree.children(one));
            self.greedy(pruned, sorted, children)?
        } else {
            self.greedy(pruned, sorted, group.iter().copied())?
        };
        let threshold = self.threshold(pruned, &greedy);
        // Other siblings reached a higher threshold already.
        if threshold < least {
            return None;
        }
        self.prune_below_threshold(pruned, group, threshold);
        if let Some(greedy) = self.greedy(pruned, sorted, group.iter().copied()) {
            return Some((threshold, greedy.domains));
        }
        // The leader may not fit beside the threshold: retry with the count that the last domain has beside a
        // leader.
        let (true, Some(last)) = (self.to_assign.leaders > 0, greedy.last) else {
            return None;
        };
        let lower = threshold.min(counts[last].slices_with_leader);
        if lower >= threshold || lower <= 0 || lower < least {
            return None;
        }
        group.iter().for_each(|&domain| self.restore(counts, pruned, domain));
        self.prune_below_threshold(pruned, group, lower);
        self.greedy(pruned, sorted, group.iter().copied()).map(|greedy| (lower, greedy.domains))
    }

    /// Takes the largest domains until all slices and the leader are assigned.
    fn greedy(
        &self,
        counts: &CountsByDomain,
        sorted: &mut SortedDomains,
        domains: impl Iterator<Item = DomainId>,
    ) -> Option<GreedyAssignment> {
        let (mut left, mut leaders) = (self.slices, self.to_assign.leaders);
        let mut result = GreedyAssignment { domains: 0, leader_domain: None, last: None };
        if leaders > 0 {
            sorted.fill_with_leader(counts, FillOrder::BestFit, domains);
        } else {
            sorted.fill(counts, FillOrder::BestFit, domains);
        }
        let mut at = 0;
        while leaders > 0
            && let Some(next) = sorted.get(at).filter(|&one| counts[one].leader > 0)
        {
            (leaders, left) =
                (leaders - counts[next].leader, left - counts[next].slices_with_leader);
            result = GreedyAssignment {
                domains: result.domains + 1,
                leader_domain: Some(next),
                ..result
            };
            at += 1;
        }
        if leaders > 0 {
            return None;
        }
        if at > 0 {
            sorted.resort(counts, at);
        }
        at = 0;
        while left > 0
            && let Some(next) = sorted.get(at).filter(|&one| counts[one].slices > 0)
        {
            left -= counts[next].slices;
            result = GreedyAssignment { domains: result.domains + 1, last: Some(next), ..result };
            at += 1;
        }
        (left <= 0).then_some(result)
    }

    fn threshold(&self, counts: &CountsByDomain, greedy: &GreedyAssignment) -> i64 {
        let even = self.slices.checked_div(greedy.domains).unwrap_or_default();
        let leader_domain = greedy.leader_domain.map_or(even, |one| counts[one].slices_with_leader);
        let last = greedy.last.map_or(even, |one| counts[one].slices);
        even.min(leader_domain).min(last)
    }

    /// Prunes domains, and their children, below the threshold. Slice counts are zero below the slice level, so
    /// slices at the requested level are never balanced above the lowest level; upstream prunes these domains too.
    fn prune_below_threshold(
        &self,
        counts: &mut CountsByDomain,
        group: &[DomainId],
        threshold: i64,
    ) {
        let has_leader = self.to_assign.leaders > 0;
        for &domain in group {
            for child in self.tree.children(domain) {
                self.prune_domain(counts, child, threshold);
            }
        }
        for &domain in group {
            recount(self.tree, counts, self.request, self.request.level, domain, has_leader);
            self.prune_domain(counts, domain, threshold);
        }
    }

    fn prune_domain(&self, counts: &mut CountsByDomain, domain: DomainId, threshold: i64) {
        let count = counts[domain];
        if count.slices < threshold {
            self.change(counts, domain, |count| *count = DomainCounts::default());
        } else if count.leader > 0
            && count.slices_with_leader < threshold
            && self.to_assign.leaders > 0
        {
            self.change(counts, domain, |count| {
                (count.leader, count.pods_with_leader, count.slices_with_leader) = (0, 0, 0);
            });
        }
    }

    /// Changes the counts of a domain and of everything below it.
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

    /// Reduces a list of domains to the fewest that hold all slices; among those sets to the one with the least
    /// capacity left.
    fn reduce_to_fewest(
        &self,
        counts: &CountsByDomain,
        sorted: &mut SortedDomains,
        domains: &mut Vec<DomainId>,
        selector: &mut DomainSetSelector,
    ) -> Option<()> {
        let needed = self.greedy(counts, sorted, domains.iter().copied())?.domains;
        let pods = self.slices * self.request.slice_size;
        selector.choose(counts, domains, needed, self.to_assign.leaders, pods)
    }

    /// Assigns the threshold to each domain, and the rest in sort order.
    fn assign_balanced(
        &self,
        threshold: i64,
        balance: &mut BalanceBuffers,
        buffers: &mut SelectionBuffers,
    ) -> Option<()> {
        let BalanceBuffers { counts, sorted, best, selector, .. } = balance;
        best.sort_unstable();
        self.reduce_to_fewest(counts, sorted, best, selector)?;
        let count = i64::try_from(best.len()).unwrap_or(i64::MAX);
        let mut left = self.slices - count * threshold;
        // Every domain gets at least the threshold, and that is more than there is to assign.
        if left < 0 {
            return None;
        }
        sorted.fill_with_leader(counts, FillOrder::BestFit, best.iter().copied());
        let (mut leaders, mut pods) = (self.to_assign.leaders, self.to_assign.pods);
        buffers.shares.clear();
        for domain in sorted.domains() {
            let count = counts[domain];
            let fitting = if leaders > 0 { count.slices_with_leader } else { count.slices };
            let extra = (fitting - threshold).min(left);
            let share = DomainShare {
                domain,
                pods: ((threshold + extra) * self.request.slice_size).min(pods),
                leaders: leaders.min(1),
            };
            (left, pods, leaders) = (left - extra, pods - share.pods, leaders - share.leaders);
            buffers.shares.push(share);
        }
        (left == 0 && leaders == 0).then_some(())
    }
}
