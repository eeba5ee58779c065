//! Sorts domains into the order in which they are assigned pods.
//!
//! Order: domains with capacity for the leader (if one is to be assigned), then higher affinity score, then slice
//! count (best fit: largest first; least free capacity: smallest first), then the smaller pod count, then name.

use crate::ids::DomainId;
use crate::topology::fill_in_counts::CountsByDomain;
use crate::topology::leaf_counts::DomainCounts;

/// The unit in which pods are assigned to domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AssignmentUnit {
    /// Slices as counted at the slice level.
    Slice(i64),
    /// Slices of an inner layer.
    Layer(i64),
    /// Single pods.
    Pod,
}

impl AssignmentUnit {
    /// Pods per unit.
    pub(super) fn size(self) -> i64 {
        match self {
            Self::Slice(size) | Self::Layer(size) => size,
            Self::Pod => 1,
        }
    }

    /// Units that fit into a domain.
    pub(super) fn fitting(self, count: DomainCounts, with_leader: bool) -> i64 {
        match (self, with_leader) {
            (Self::Slice(_), false) => count.slices,
            (Self::Slice(_), true) => count.slices_with_leader,
            (Self::Layer(size), false) => count.pods / size,
            (Self::Layer(size), true) => count.pods_with_leader / size,
            (Self::Pod, false) => count.pods,
            (Self::Pod, true) => count.pods_with_leader,
        }
    }
}

/// Sort key of a domain: smaller is first. The first number is its [`rank`].
type DomainSortKey = (i64, i64, i64, DomainId);

/// Exceeds every affinity score: weights have 32 bits, and topologies have at most millions of nodes.
const LEADER: i64 = 1 << 60;

/// Leader capacity, then affinity score, in one number: sorting without scores costs no more than a single key.
fn rank(counts: &CountsByDomain, domain: DomainId, leader: i64) -> i64 {
    -leader * LEADER - counts.scores.of(domain)
}

/// Domains in assignment order. The buffer is kept between searches.
#[derive(Debug, Default)]
pub(super) struct SortedDomains(Vec<DomainSortKey>);

impl SortedDomains {
    /// Sorts `domains`; by their counts beside a leader if one must be assigned among them.
    pub(super) fn fill(
        &mut self,
        counts: &CountsByDomain,
        domains: impl IntoIterator<Item = DomainId>,
        least_free: bool,
        with_leader: bool,
    ) {
        let order = |slices: i64| if least_free { slices } else { -slices };
        self.0.clear();
        self.0.extend(domains.into_iter().map(|domain| {
            let count = counts[domain];
            // Domains that take the leader come first, then the highest affinity score.
            if with_leader {
                let rank = rank(counts, domain, count.leader);
                (rank, order(count.slices_with_leader), count.pods_with_leader, domain)
            } else {
                (rank(counts, domain, 0), order(count.slices), count.pods, domain)
            }
        }));
        self.0.sort_unstable();
    }

    /// Drops the domains before `start` and sorts the rest again, without regard to the leader.
    pub(super) fn resort(&mut self, counts: &CountsByDomain, start: usize, least_free: bool) {
        self.0.drain(..start.min(self.0.len()));
        for place in &mut self.0 {
            let count = counts[place.3];
            let slices = if least_free { count.slices } else { -count.slices };
            *place = (rank(counts, place.3, 0), slices, count.pods, place.3);
        }
        self.0.sort_unstable();
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, at: usize) -> Option<DomainId> {
        self.0.get(at).map(|place| place.3)
    }

    pub(super) fn domains(&self) -> impl DoubleEndedIterator<Item = DomainId> {
        self.0.iter().map(|place| place.3)
    }

    /// The smallest domain from `start` on that fits `needed` units and `leaders` leaders; the domain at `start` if
    /// none does. Considers only domains with the same affinity score as the one at `start`: a smaller domain does
    /// not outweigh a lower score.
    pub(super) fn smallest(
        &self,
        counts: &CountsByDomain,
        start: usize,
        needed: i64,
        leaders: i64,
        unit: AssignmentUnit,
    ) -> Option<DomainId> {
        let fitting = |domain: DomainId| unit.fitting(counts[domain], leaders > 0);
        let rest = self.0.get(start..).unwrap_or_default().iter().map(|place| place.3);
        let score = self.get(start).map(|first| counts.scores.of(first));
        // Domains are sorted by score, so the first with another score ends the candidates.
        let rest = rest.take_while(|&one| Some(counts.scores.of(one)) == score);
        let candidates =
            rest.filter(|&one| counts[one].leader >= leaders && fitting(one) >= needed);
        candidates.min_by_key(|&one| fitting(one)).or_else(|| self.get(start))
    }

    /// Keeps the first `count` domains, replaces the last of them by `last`, and puts `first` in front.
    pub(super) fn keep(&mut self, count: usize, first: Option<DomainId>, last: Option<DomainId>) {
        self.0.truncate(count);
        if let (Some(end), Some(last)) = (self.0.last_mut(), last) {
            end.3 = last;
        }
        if let Some(first) = first {
            self.0.insert(0, (0, 0, 0, first));
        }
    }

    /// Moves the first domain to the front whose leader leaves capacity for `needed` units in all domains. Counts
    /// of parents assume the leader where it costs the fewest pods; the chosen domain must not cost more than the
    /// spare capacity.
    pub(super) fn move_leader_domain_first(
        &mut self,
        counts: &CountsByDomain,
        needed: i64,
        leaders: i64,
        unit: AssignmentUnit,
    ) {
        if leaders == 0 {
            return;
        }
        let all: i64 = self.domains().map(|one| unit.fitting(counts[one], false)).sum();
        let leaves_enough = |one: DomainId| {
            let count = counts[one];
            let cost = unit.fitting(count, false) - unit.fitting(count, true);
            count.leader >= leaders && all - cost >= needed
        };
        let at = self.domains().position(leaves_enough);
        if let Some(at) = at {
            // The order of the domains before it stays.
            self.0[..=at].rotate_right(1);
        }
    }
}
