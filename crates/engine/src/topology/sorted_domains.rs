//! Domains in a line, in the order in which they are given something.
//!
//! Domains that the pods prefer come first. Of equal ones *best fit* puts the largest first, *least free* the smallest, then
//! those with the least left over, then names decide. Where a leader looks for a place, domains that can take one precede
//! all others.

use crate::ids::DomainId;
use crate::topology::fill_in_counts::{CountsByDomain, DomainCounts};

/// In what a distribution counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AssignmentUnit {
    /// Slices as they were counted for their level.
    Slice(i64),
    /// Slices of an inner layer.
    Layer(i64),
    /// Single pods.
    Pod,
}

impl AssignmentUnit {
    /// Pods of one unit.
    pub(super) fn size(self) -> i64 {
        match self {
            Self::Slice(size) | Self::Layer(size) => size,
            Self::Pod => 1,
        }
    }

    /// Units that a domain holds.
    pub(super) fn held(self, count: DomainCounts, with_leader: bool) -> i64 {
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

/// A domain's place in line: smaller comes first. The first number is its [`rank`].
type DomainSortKey = (i64, i64, i64, DomainId);

/// More than any score: weights have 32 bits, and machines are counted in millions.
const LEADER: i64 = 1 << 60;

/// DomainCounts for a leader, if it matters, then what is preferred; in one number, so that a line without preferences is sorted
/// as fast as if there were none.
fn rank(counts: &CountsByDomain, domain: DomainId, leader: i64) -> i64 {
    -leader * LEADER - counts.scores.of(domain)
}

/// See the module. Kept between searches for its memory.
#[derive(Debug, Default)]
pub(super) struct SortedDomains(Vec<DomainSortKey>);

impl SortedDomains {
    /// Lines up domains; with a leader if one must be placed among them.
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
            if with_leader {
                let rank = rank(counts, domain, count.leader);
                (rank, order(count.slices_with_leader), count.pods_with_leader, domain)
            } else {
                (rank(counts, domain, 0), order(count.slices), count.pods, domain)
            }
        }));
        self.0.sort_unstable();
    }

    /// Lines up those from `start` on anew, without regard to leaders, and drops the ones before.
    pub(super) fn refill(&mut self, counts: &CountsByDomain, start: usize, least_free: bool) {
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

    /// The smallest of those from `start` on that hold `needed` units and as many leaders; the one at `start` if none
    /// does. Only among those that are preferred as much as the one at `start`: no smaller domain is worth a lesser one.
    pub(super) fn smallest(
        &self,
        counts: &CountsByDomain,
        start: usize,
        needed: i64,
        leaders: i64,
        unit: AssignmentUnit,
    ) -> Option<DomainId> {
        let held = |domain: DomainId| unit.held(counts[domain], leaders > 0);
        let rest = self.0.get(start..).unwrap_or_default().iter().map(|place| place.3);
        let score = self.get(start).map(|first| counts.scores.of(first));
        let rest = rest.take_while(|&one| Some(counts.scores.of(one)) == score);
        let fitting = rest.filter(|&one| counts[one].leader >= leaders && held(one) >= needed);
        fitting.min_by_key(|&one| held(one)).or_else(|| self.get(start))
    }

    /// Keeps the first `count`, of which the last became `last`, behind `first`.
    pub(super) fn keep(&mut self, count: usize, first: Option<DomainId>, last: Option<DomainId>) {
        self.0.truncate(count);
        if let (Some(end), Some(last)) = (self.0.last_mut(), last) {
            end.3 = last;
        }
        if let Some(first) = first {
            self.0.insert(0, (0, 0, 0, first));
        }
    }

    /// Puts first the first domain whose leader leaves the others enough for `needed` units. A sum over domains takes the
    /// leader for granted where it costs least; the choice must not be dearer than what is left over.
    pub(super) fn put_leader_first(
        &mut self,
        counts: &CountsByDomain,
        needed: i64,
        leaders: i64,
        unit: AssignmentUnit,
    ) {
        if leaders == 0 {
            return;
        }
        let all: i64 = self.domains().map(|one| unit.held(counts[one], false)).sum();
        let affordable = |one: DomainId| {
            let count = counts[one];
            let cost = unit.held(count, false) - unit.held(count, true);
            count.leader >= leaders && all - cost >= needed
        };
        let at = self.domains().position(affordable);
        if let Some(at) = at {
            self.0[..=at].rotate_right(1);
        }
    }
}
