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

use crate::fleet::Fleet;
use crate::node_packing::{PARTS, PackedNodes};
use crate::pending_placements::PlacementClass;
use crate::policy::GangReservationPolicy;
use crate::queue_order::QueuePosition;
use crate::refusal::ClusterRefusal;
use crate::worker_cluster::{PlacedWorkload, PlacementSerial, WorkerCluster};
use crate::{AssignedWorkload, DispatchConfig};

/// How many of those who wait are tried per flavor before nothing is kept: each of them fits nowhere.
const MOST_TRIES: usize = 16;

/// Room that is kept on a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityReservation {
    /// For whom.
    pub workload: WorkloadId,
    /// Where.
    pub cluster: ClusterId,
    /// When the room is there at the latest; unknown if it depends on work that may run for ever.
    pub at: Option<Time>,
    pub(crate) position: QueuePosition,
    work: Arc<AssignedWorkload>,
    /// What was placed before this counts as leaving, where run times are unknown.
    before: PlacementSerial,
    /// The part of the cluster that is kept.
    part: i128,
}

/// What the reservations take into account.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReservationInputs {
    fleet_changes: u64,
    pending_changes: u64,
    /// When they may be others although nothing changed: somebody has waited long enough, an exclusion ends.
    pub(crate) next_update_at: Option<Time>,
}

/// One who waits, and what for.
struct ReservationCandidate {
    position: QueuePosition,
    question: Arc<PlacementClass>,
    policy: GangReservationPolicy,
}

/// When a cluster can hold somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EarliestStart {
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
    pub fn reservations(&self) -> &[CapacityReservation] {
        &self.reservations
    }

    /// Brings the reservations up to date.
    pub(crate) fn update_reservations(&mut self, now: Time) {
        let seen = ReservationInputs {
            fleet_changes: self.changes,
            pending_changes: self.pending.changes,
            ..self.reservation_inputs
        };
        if self.reservation_inputs == seen
            && self.reservation_inputs.next_update_at.is_none_or(|next| next > now)
        {
            return;
        }
        let old = std::mem::take(&mut self.reservations);
        for line in self.candidates_by_flavor(now) {
            self.reserve_for(&line, &old, now);
        }
        let differs =
            |one: &&CapacityReservation, others: &[CapacityReservation]| !others.contains(one);
        let gone = old.iter().filter(|one| differs(one, &self.reservations));
        let new = self.reservations.iter().filter(|one| differs(one, &old));
        let touched: Vec<ClusterId> = gone.chain(new).map(|one| one.cluster).collect();
        for cluster in touched {
            self.mark_changed(cluster);
        }
        let (changes, waiting) = (self.changes, self.pending.changes);
        self.reservation_inputs = ReservationInputs {
            fleet_changes: changes,
            pending_changes: waiting,
            next_update_at: self.next_update_at(now),
        };
    }

    /// Whether work that a cluster has room for may have it. Of credited room it is not known where it is, so it cannot be
    /// shown to be beside what is kept.
    pub(crate) fn check_reservations(
        &mut self,
        work: &AssignedWorkload,
        credited: bool,
        position: QueuePosition,
        id: ClusterId,
        now: Time,
    ) -> Result<(), ClusterRefusal> {
        let Self { reservations, clusters, .. } = self;
        let over = work.request.max_run_time.map(|runs| Time(now.0.saturating_add(runs)));
        let binding = |one: &&CapacityReservation| one.cluster == id && one.position < position;
        for kept in reservations.iter().filter(binding) {
            let over_by_then = kept.at.is_some_and(|at| over.is_some_and(|over| over <= at));
            let beside = !credited && kept.leaves_room_beside(work, &mut clusters[id.index()]);
            if !over_by_then && !beside {
                return Err(ClusterRefusal::ReservedForGang {
                    workload: kept.workload,
                    at: kept.at,
                });
            }
        }
        Ok(())
    }

    /// Those who have waited long enough, per configuration and flavor, first one first.
    fn candidates_by_flavor(&self, now: Time) -> Vec<Vec<ReservationCandidate>> {
        let mut lines: BTreeMap<_, Vec<ReservationCandidate>> = BTreeMap::new();
        for (_, wait) in self.pending.iter() {
            let question = &wait.class;
            let Some(keeping) = self.config(&question.config).policy.gang_reservation else {
                continue;
            };
            let ripe =
                |rank: &QueuePosition| self.eligible_at(*rank, keeping).is_some_and(|at| at <= now);
            let Some(rank) = wait.positions().find(ripe) else {
                continue;
            };
            for pool in question.work.pools() {
                let line = lines.entry((&question.config, pool)).or_default();
                line.push(ReservationCandidate {
                    position: rank,
                    question: Arc::clone(question),
                    policy: keeping,
                });
            }
        }
        let mut lines: Vec<_> = lines.into_values().collect();
        lines.iter_mut().for_each(|line| line.sort_by_key(|one| one.position));
        lines
    }

    /// When room may be kept for somebody.
    fn eligible_at(
        &self,
        (_, workload): QueuePosition,
        policy: GangReservationPolicy,
    ) -> Option<Time> {
        let since = self.pending.refused_since(workload)?;
        Some(Time(since.0.saturating_add(policy.after)))
    }

    /// Keeps room for the first of a line that any cluster can hold.
    fn reserve_for(
        &mut self,
        line: &[ReservationCandidate],
        old: &[CapacityReservation],
        now: Time,
    ) {
        for one in line.iter().take(MOST_TRIES) {
            if self.reservations.iter().any(|known| known.position == one.position) {
                return;
            }
            if let Some(reservation) = self.reserve_cluster(one, old, now) {
                return self.reservations.push(reservation);
            }
        }
    }

    /// The cluster where somebody can stand first.
    fn reserve_cluster(
        &mut self,
        one: &ReservationCandidate,
        old: &[CapacityReservation],
        now: Time,
    ) -> Option<CapacityReservation> {
        let config = self.config(&one.question.config);
        let mut best: Option<(EarliestStart, CapacityReservation)> = None;
        for &cluster in &config.clusters {
            let known =
                old.iter().find(|old| (old.workload, old.cluster) == (one.position.1, cluster));
            let before = known.map_or(self.serial + 1, |known| known.before);
            let Some((mut stand, part)) = self.earliest_start(one, &config, cluster, now) else {
                continue;
            };
            if let EarliestStart::Eventually { moves, .. } = &mut stand {
                *moves = known.is_none();
            }
            let at = if let EarliestStart::At(at) = stand { Some(at) } else { None };
            let work = Arc::clone(&one.question.work);
            let (rank, workload) = (one.position, one.position.1);
            let found =
                CapacityReservation { workload, cluster, at, position: rank, work, before, part };
            if best.as_ref().is_none_or(|(least, _)| stand < *least) {
                best = Some((stand, found));
            }
        }
        best.map(|(_, reservation)| reservation)
    }

    fn earliest_start(
        &mut self,
        one: &ReservationCandidate,
        config: &DispatchConfig,
        id: ClusterId,
        now: Time,
    ) -> Option<(EarliestStart, i128)> {
        self.check_eligible(&one.question, &config.policy, id, now).ok()?;
        let work = &one.question.work;
        let kept = self.reservations.iter().filter(|one| one.cluster == id);
        let kept: i128 = kept.map(|one| one.part).sum();
        let cluster = &mut self.clusters[id.index()];
        let part = cluster.nodes()?.share_of_cluster(work);
        if (part + kept) * 100 > i128::from(one.policy.max_share) * PARTS {
            return None;
        }
        Some((earliest_fit(cluster, work, part)?, part))
    }

    fn next_update_at(&self, now: Time) -> Option<Time> {
        let waits = self.pending.iter().filter_map(|(_, wait)| {
            let keeping = self.config(&wait.class.config).policy.gang_reservation?;
            let ripe = wait.positions().filter_map(move |rank| self.eligible_at(rank, keeping));
            Some(ripe.chain(wait.class.exclusions.iter().map(|one| one.until)))
        });
        waits.flatten().filter(|at| *at > now).min()
    }
}

impl CapacityReservation {
    /// Whether it can stand as planned although `work` is there and stays.
    fn leaves_room_beside(&self, work: &AssignedWorkload, cluster: &mut WorkerCluster) -> bool {
        let Some(mut nodes) = cluster.nodes().cloned() else {
            return false;
        };
        nodes.place(work);
        let leaves = |(serial, placed): &(PlacementSerial, &PlacedWorkload)| match self.at {
            Some(at) => placed.until.is_some_and(|until| until <= at),
            None => *serial < self.before,
        };
        release_ending(&mut nodes, cluster, leaves);
        nodes.check_fit(&self.work).is_ok()
    }
}

fn release_ending(
    nodes: &mut PackedNodes,
    cluster: &WorkerCluster,
    leaves: impl Fn(&(PlacementSerial, &PlacedWorkload)) -> bool,
) {
    for (_, placed) in cluster.placed().filter(leaves) {
        nodes.release(&placed.work);
    }
}

/// When a cluster can hold `work`: after the end of so much that is known to end, or of all. `None` if never.
fn earliest_fit(
    cluster: &mut WorkerCluster,
    work: &AssignedWorkload,
    part: i128,
) -> Option<EarliestStart> {
    let now = cluster.nodes()?.clone();
    let fits_without =
        |cluster: &WorkerCluster, leaves: &dyn Fn(&(PlacementSerial, &PlacedWorkload)) -> bool| {
            let mut nodes = now.clone();
            release_ending(&mut nodes, cluster, leaves);
            nodes.check_fit(work).is_ok()
        };
    if !fits_without(cluster, &|_| true) {
        return None;
    }
    let mut ends: Vec<Time> = cluster.placed().filter_map(|(_, placed)| placed.until).collect();
    ends.push(Time(i64::MIN));
    ends.sort_unstable();
    ends.dedup();
    let over = |end: Time| {
        move |one: &(PlacementSerial, &PlacedWorkload)| {
            one.1.until.is_some_and(|until| until <= end)
        }
    };
    let too_early = ends.partition_point(|&end| !fits_without(cluster, &over(end)));
    let at = ends.get(too_early).copied().map(EarliestStart::At);
    Some(at.unwrap_or(EarliestStart::Eventually { moves: true, part }))
}
