//! Room that is kept for whoever has waited longest, so that those who ask for less do not starve it.
//!
//! Of those who wait for the nodes of one flavor under one configuration, the first in turn that was refused for long
//! enough gets a reservation: on the cluster where it can stand first, going by when the work there is over at the
//! latest; where that is not known, on the largest cluster that can hold it once all that runs there now is gone. Such a
//! cluster takes only work that is over by then, or that fits beside; whoever comes earlier in turn is not bound. What is
//! kept of a cluster stays below the policy's share, and nothing is kept where it could never stand. Reservations follow
//! from the present state; only the moment from which one counts is remembered, so that work let in beside it stays
//! beside it. Source: docs/reference/dispatch.md §1.
//!
//! Cost, only while somebody waits long enough: per change one look at every distinct ask that waits, and a packing per
//! cluster and bisection step over its work for every reservation; per ask on such a cluster two packings.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    Time,
    ids::{ClusterId, WorkloadId},
};

use crate::cluster::{Cluster, Placed, Serial};
use crate::fleet::Fleet;
use crate::pack::{Nodes, PARTS};
use crate::policy::Keeping;
use crate::refusal::Refusal;
use crate::turn::Rank;
use crate::waits::Question;
use crate::{Config, Work};

/// How many of those who wait are tried per flavor before nothing is kept: each of them fits nowhere.
const MOST_TRIES: usize = 16;

/// Room that is kept on a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// For whom.
    pub workload: WorkloadId,
    /// Where.
    pub cluster: ClusterId,
    /// When the room is there at the latest; unknown if it depends on work that may run for ever.
    pub at: Option<Time>,
    pub(crate) rank: Rank,
    work: Arc<Work>,
    /// What was placed before this counts as leaving, where run times are unknown.
    before: Serial,
    /// The part of the cluster that is kept.
    part: i128,
}

/// What the reservations take into account.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reserved {
    changes: u64,
    waiting: u64,
    /// When they may be others although nothing changed: somebody has waited long enough, an exclusion ends.
    pub(crate) next: Option<Time>,
}

/// One who waits, and what for.
struct Candidate {
    rank: Rank,
    question: Arc<Question>,
    keeping: Keeping,
}

/// When a cluster can hold somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stand {
    At(Time),
    Eventually {
        /// Another cluster than the one that was promised.
        moves: bool,
        /// The smaller part of the cluster it takes, the larger the cluster.
        part: i128,
    },
}

impl Fleet {
    /// The room that is kept, in the order of turns within each flavor.
    pub fn reservations(&self) -> &[Reservation] {
        &self.reservations
    }

    /// Brings the reservations up to date.
    pub(crate) fn reserve(&mut self, now: Time) {
        let seen = Reserved { changes: self.changes, waiting: self.waits.changes, ..self.reserved };
        if self.reserved == seen && self.reserved.next.is_none_or(|next| next > now) {
            return;
        }
        let old = std::mem::take(&mut self.reservations);
        for line in self.lines(now) {
            self.reserve_for(&line, &old, now);
        }
        let differs = |one: &&Reservation, others: &[Reservation]| !others.contains(one);
        let gone = old.iter().filter(|one| differs(one, &self.reservations));
        let new = self.reservations.iter().filter(|one| differs(one, &old));
        let touched: Vec<ClusterId> = gone.chain(new).map(|one| one.cluster).collect();
        for cluster in touched {
            self.change(cluster);
        }
        let (changes, waiting) = (self.changes, self.waits.changes);
        self.reserved = Reserved { changes, waiting, next: self.next_look(now) };
    }

    /// Whether work that a cluster has room for may have it. Of credited room it is not known where it is, so it cannot be
    /// shown to be beside what is kept.
    pub(crate) fn leaves_room(
        &mut self,
        work: &Work,
        credited: bool,
        rank: Rank,
        id: ClusterId,
        now: Time,
    ) -> Result<(), Refusal> {
        let Self { reservations, clusters, .. } = self;
        let over = work.request.runs.map(|runs| Time(now.0.saturating_add(runs)));
        let binding = |one: &&Reservation| one.cluster == id && one.rank < rank;
        for kept in reservations.iter().filter(binding) {
            let over_by_then = kept.at.is_some_and(|at| over.is_some_and(|over| over <= at));
            let beside = !credited && kept.beside(work, &mut clusters[id.index()]);
            if !over_by_then && !beside {
                return Err(Refusal::Kept { whom: kept.workload, at: kept.at });
            }
        }
        Ok(())
    }

    /// Those who have waited long enough, per configuration and flavor, first one first.
    fn lines(&self, now: Time) -> Vec<Vec<Candidate>> {
        let mut lines: BTreeMap<_, Vec<Candidate>> = BTreeMap::new();
        for (_, wait) in self.waits.iter() {
            let question = &wait.question;
            let Some(keeping) = self.config(&question.config).policy.keeping else {
                continue;
            };
            let ripe = |rank: &Rank| self.ripe_at(*rank, keeping).is_some_and(|at| at <= now);
            let Some(rank) = wait.waiting().find(ripe) else {
                continue;
            };
            for pool in question.work.pools() {
                let line = lines.entry((&question.config, pool)).or_default();
                line.push(Candidate { rank, question: Arc::clone(question), keeping });
            }
        }
        let mut lines: Vec<_> = lines.into_values().collect();
        lines.iter_mut().for_each(|line| line.sort_by_key(|one| one.rank));
        lines
    }

    /// When room may be kept for somebody.
    fn ripe_at(&self, (_, workload): Rank, keeping: Keeping) -> Option<Time> {
        let since = self.waits.since(workload)?;
        Some(Time(since.0.saturating_add(keeping.after)))
    }

    /// Keeps room for the first of a line that any cluster can hold.
    fn reserve_for(&mut self, line: &[Candidate], old: &[Reservation], now: Time) {
        for one in line.iter().take(MOST_TRIES) {
            if self.reservations.iter().any(|known| known.rank == one.rank) {
                return;
            }
            if let Some(reservation) = self.plan(one, old, now) {
                return self.reservations.push(reservation);
            }
        }
    }

    /// The cluster where somebody can stand first.
    fn plan(&mut self, one: &Candidate, old: &[Reservation], now: Time) -> Option<Reservation> {
        let config = self.config(&one.question.config);
        let mut best: Option<(Stand, Reservation)> = None;
        for &cluster in &config.clusters {
            let known = old.iter().find(|old| (old.workload, old.cluster) == (one.rank.1, cluster));
            let before = known.map_or(self.serial + 1, |known| known.before);
            let Some((mut stand, part)) = self.stand(one, &config, cluster, now) else {
                continue;
            };
            if let Stand::Eventually { moves, .. } = &mut stand {
                *moves = known.is_none();
            }
            let at = if let Stand::At(at) = stand { Some(at) } else { None };
            let work = Arc::clone(&one.question.work);
            let (rank, workload) = (one.rank, one.rank.1);
            let found = Reservation { workload, cluster, at, rank, work, before, part };
            if best.as_ref().is_none_or(|(least, _)| stand < *least) {
                best = Some((stand, found));
            }
        }
        best.map(|(_, reservation)| reservation)
    }

    fn stand(
        &mut self,
        one: &Candidate,
        config: &Config,
        id: ClusterId,
        now: Time,
    ) -> Option<(Stand, i128)> {
        self.admits(&one.question, &config.policy, id, now).ok()?;
        let work = &one.question.work;
        let kept = self.reservations.iter().filter(|one| one.cluster == id);
        let kept: i128 = kept.map(|one| one.part).sum();
        let cluster = &mut self.clusters[id.index()];
        let part = cluster.nodes()?.part_of_all(work);
        if (part + kept) * 100 > i128::from(one.keeping.max_share) * PARTS {
            return None;
        }
        Some((first_stand(cluster, work, part)?, part))
    }

    fn next_look(&self, now: Time) -> Option<Time> {
        let waits = self.waits.iter().filter_map(|(_, wait)| {
            let keeping = self.config(&wait.question.config).policy.keeping?;
            let ripe = wait.waiting().filter_map(move |rank| self.ripe_at(rank, keeping));
            Some(ripe.chain(wait.question.exclusions.iter().map(|one| one.until)))
        });
        waits.flatten().filter(|at| *at > now).min()
    }
}

impl Reservation {
    /// Whether it can stand as planned although `work` is there and stays.
    fn beside(&self, work: &Work, cluster: &mut Cluster) -> bool {
        let Some(mut nodes) = cluster.nodes().cloned() else {
            return false;
        };
        nodes.take(work);
        let leaves = |(serial, placed): &(Serial, &Placed)| match self.at {
            Some(at) => placed.until.is_some_and(|until| until <= at),
            None => *serial < self.before,
        };
        empty(&mut nodes, cluster, leaves);
        nodes.fits(&self.work).is_ok()
    }
}

fn empty(nodes: &mut Nodes, cluster: &Cluster, leaves: impl Fn(&(Serial, &Placed)) -> bool) {
    for (_, placed) in cluster.placed().filter(leaves) {
        nodes.give(&placed.work);
    }
}

/// When a cluster can hold `work`: after the end of so much that is known to end, or of all. `None` if never.
fn first_stand(cluster: &mut Cluster, work: &Work, part: i128) -> Option<Stand> {
    let now = cluster.nodes()?.clone();
    let fits_without = |cluster: &Cluster, leaves: &dyn Fn(&(Serial, &Placed)) -> bool| {
        let mut nodes = now.clone();
        empty(&mut nodes, cluster, leaves);
        nodes.fits(work).is_ok()
    };
    if !fits_without(cluster, &|_| true) {
        return None;
    }
    let mut ends: Vec<Time> = cluster.placed().filter_map(|(_, placed)| placed.until).collect();
    ends.push(Time(i64::MIN));
    ends.sort_unstable();
    ends.dedup();
    let over =
        |end: Time| move |one: &(Serial, &Placed)| one.1.until.is_some_and(|until| until <= end);
    let too_early = ends.partition_point(|&end| !fits_without(cluster, &over(end)));
    let at = ends.get(too_early).copied().map(Stand::At);
    Some(at.unwrap_or(Stand::Eventually { moves: true, part }))
}
