//! Sorts domains into the order in which they are assigned pods.
//!
//! Order: domains with capacity for the leader (if one is to be assigned), then higher affinity score, then slice
//! count ([`FillOrder`]), then the smaller pod count, then name.

use crate::ids::DomainId;
use crate::topology::fill_in_counts::CountsByDomain;
use crate::topology::needed_capacity::NeededCapacity;

/// Order of domains by their slice count.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum FillOrder {
    /// Largest first; the last domain is the smallest that holds the rest.
    #[default]
    BestFit,
    /// Smallest first.
    LeastFreeCapacity,
}

/// Exceeds every affinity score: weights have 32 bits, and topologies have at most millions of nodes.
const LEADER: i64 = 1 << 60;

/// A domain and its sort key: smaller is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RankedDomain {
    /// Leader capacity, then affinity score, in one number: sorting without scores costs no more than a single key.
    rank: i64,
    /// The slice count, negative if larger counts are first.
    slices: i64,
    pods: i64,
    domain: DomainId,
}

impl RankedDomain {
    /// Ranks a domain by its counts without a leader.
    fn of(counts: &CountsByDomain, order: FillOrder, domain: DomainId) -> Self {
        let count = counts[domain];
        let rank = -counts.scores.of(domain);
        Self { rank, slices: order.key(count.slices), pods: count.pods, domain }
    }

    /// Ranks a domain by its counts beside a leader; domains with capacity for one come first.
    fn with_leader(counts: &CountsByDomain, order: FillOrder, domain: DomainId) -> Self {
        let count = counts[domain];
        let rank = -count.leader * LEADER - counts.scores.of(domain);
        let slices = order.key(count.slices_with_leader);
        Self { rank, slices, pods: count.pods_with_leader, domain }
    }
}

impl FillOrder {
    fn key(self, slices: i64) -> i64 {
        match self {
            Self::BestFit => -slices,
            Self::LeastFreeCapacity => slices,
        }
    }
}

/// Domains in assignment order. The buffer is kept between searches.
#[derive(Debug, Default)]
pub(super) struct SortedDomains {
    order: FillOrder,
    ranked: Vec<RankedDomain>,
}

impl SortedDomains {
    /// Sorts `domains` without regard to a leader.
    pub(super) fn fill(
        &mut self,
        counts: &CountsByDomain,
        order: FillOrder,
        domains: impl IntoIterator<Item = DomainId>,
    ) {
        let rank = |domain| RankedDomain::of(counts, order, domain);
        self.sort(order, domains.into_iter().map(rank));
    }

    /// Sorts `domains` by their counts beside a leader.
    pub(super) fn fill_with_leader(
        &mut self,
        counts: &CountsByDomain,
        order: FillOrder,
        domains: impl IntoIterator<Item = DomainId>,
    ) {
        let rank = |domain| RankedDomain::with_leader(counts, order, domain);
        self.sort(order, domains.into_iter().map(rank));
    }

    fn sort(&mut self, order: FillOrder, ranked: impl Iterator<Item = RankedDomain>) {
        self.order = order;
        self.ranked.clear();
        self.ranked.extend(ranked);
        self.ranked.sort_unstable();
    }

    /// Drops the domains before `start` and sorts the rest again, without regard to the leader.
    pub(super) fn resort(&mut self, counts: &CountsByDomain, start: usize) {
        self.ranked.drain(..start.min(self.ranked.len()));
        for ranked in &mut self.ranked {
            *ranked = RankedDomain::of(counts, self.order, ranked.domain);
        }
        self.ranked.sort_unstable();
    }

    pub(super) fn len(&self) -> usize {
        self.ranked.len()
    }

    pub(super) fn get(&self, at: usize) -> Option<DomainId> {
        self.ranked.get(at).map(|ranked| ranked.domain)
    }

    pub(super) fn domains(&self) -> impl DoubleEndedIterator<Item = DomainId> {
        self.ranked.iter().map(|ranked| ranked.domain)
    }

    /// The domain at `at`; with best fit, if it holds the rest, the smallest one from there on that does.
    pub(super) fn best_fit_at(
        &self,
        counts: &CountsByDomain,
        at: usize,
        needed: NeededCapacity,
    ) -> Option<DomainId> {
        let first = self.get(at)?;
        if self.order == FillOrder::BestFit && needed.fits(counts[first]) {
            return self.smallest(counts, at, needed);
        }
        Some(first)
    }

    /// The smallest domain from `start` on that holds everything; the domain at `start` if none does. Considers only
    /// domains with the same affinity score as the one at `start`: a smaller domain does not outweigh a lower score.
    pub(super) fn smallest(
        &self,
        counts: &CountsByDomain,
        start: usize,
        needed: NeededCapacity,
    ) -> Option<DomainId> {
        let rest = self.ranked.get(start..).unwrap_or_default().iter().map(|ranked| ranked.domain);
        let score = self.get(start).map(|first| counts.scores.of(first));
        // Domains are sorted by score, so the first with another score ends the candidates.
        let rest = rest.take_while(|&one| Some(counts.scores.of(one)) == score);
        let candidates = rest.filter(|&one| needed.fits(counts[one]));
        candidates.min_by_key(|&one| needed.fitting(counts[one])).or_else(|| self.get(start))
    }

    /// Keeps the first `count` domains, replaces the last of them by `last`, and puts `first` in front.
    pub(super) fn keep(
        &mut self,
        counts: &CountsByDomain,
        count: usize,
        first: Option<DomainId>,
        last: Option<DomainId>,
    ) {
        self.ranked.truncate(count);
        if let (Some(end), Some(last)) = (self.ranked.last_mut(), last) {
            *end = RankedDomain::of(counts, self.order, last);
        }
        if let Some(first) = first {
            self.ranked.insert(0, RankedDomain::of(counts, self.order, first));
        }
    }

    /// Moves the first domain to the front in which the leader leaves capacity for all needed units in all domains. Counts
    /// of parents assume the leader where it costs the fewest pods; the chosen domain must not cost more than the
    /// spare capacity.
    pub(super) fn move_leader_domain_first(
        &mut self,
        counts: &CountsByDomain,
        needed: NeededCapacity,
    ) {
        let NeededCapacity { unit, units, leaders } = needed;
        if leaders == 0 {
            return;
        }
        let all: i64 = self.domains().map(|one| unit.fitting(counts[one], false)).sum();
        let leaves_enough = |domain: DomainId| {
            let count = counts[domain];
            let cost = unit.fitting(count, false) - unit.fitting(count, true);
            count.leader >= leaders && all - cost >= units
        };
        let at = self.domains().position(leaves_enough);
        if let Some(at) = at {
            // The order of the domains before it stays.
            self.ranked[..=at].rotate_right(1);
        }
    }
}
