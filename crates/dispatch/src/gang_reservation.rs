//! Capacity reservation for the oldest blocked gang (EASY backfill), so that smaller Workloads do not starve it.
//!
//! Workloads that wait for nodes of one flavor under one configuration are ordered by queue order. The first one that
//! was refused for `after` or longer gets a reservation: on the cluster where it fits first, by the latest ends of
//! running work; if no bound is known, on the largest cluster that fits it once all running work has ended. That
//! cluster admits only work that ends before the reservation starts, or that fits beside it. Work with an earlier
//! queue position is not bound. The reserved share of a cluster stays below the policy's `max_share`; a gang that no
//! cluster can ever fit gets no reservation.
//!
//! Reservations follow from the current state. Only the placement from which a reservation counts is remembered, so
//! that work admitted beside it stays beside it. Source: docs/reference/dispatch.md §1.
//!
//! Cost, only while a Workload waits for `after` or longer: one pass over the placement classes per change; per
//! reservation one packing per cluster and bisection step over its work; per request on a reserved cluster two
//! packings.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    Time,
    ids::{ClusterId, WorkloadId},
};

use crate::fleet::Fleet;
use crate::node_packing::{MILLIONTHS, PackedNodes};
use crate::pending_placements::PlacementClass;
use crate::policy::GangReservationPolicy;
use crate::queue_order::WaitingPosition;
use crate::refusal::ClusterRefusal;
use crate::worker_cluster::{PlacedWorkload, PlacementSerial, WorkerCluster};
use crate::{AssignedWorkload, PlacementConfig};

/// Candidates that are tried per flavor. A candidate is skipped if no cluster can fit it.
const MAX_CANDIDATES: usize = 16;

/// Capacity that a cluster reserves for one gang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityReservation {
    /// The gang.
    pub workload: WorkloadId,
    /// The cluster.
    pub cluster: ClusterId,
    /// Latest time at which the capacity is free; `None` if it depends on work of unknown run time.
    pub at: Option<Time>,
    pub(crate) position: WaitingPosition,
    work: Arc<AssignedWorkload>,
    /// Placements before this one count as ending if run times are unknown.
    before: PlacementSerial,
    /// Reserved share of the cluster, in millionths.
    part: i128,
}

/// Version of the inputs of the current reservations.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReservationInputs {
    fleet_changes: u64,
    pending_changes: u64,
    /// Time of the next update without a change: a Workload reaches `after`, or an exclusion ends.
    pub(crate) next_update_at: Option<Time>,
}

/// A Workload that may get a reservation.
struct ReservationCandidate {
    position: WaitingPosition,
    class: Arc<PlacementClass>,
    policy: GangReservationPolicy,
}

/// Earliest time at which a cluster can fit a gang. The order is the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EarliestStart {
    At(Time),
    Eventually {
        /// The gang had no reservation on this cluster before.
        moves: bool,
        /// Share of the cluster that the gang takes: smaller on larger clusters.
        part: i128,
    },
}

impl Fleet {
    /// Current reservations, by queue order within a flavor.
    pub fn reservations(&self) -> &[CapacityReservation] {
        &self.reservations
    }

    /// Updates the reservations.
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
        for candidates in self.candidates_by_flavor(now) {
            self.reserve_for(&candidates, &old, now);
        }
        let removed = old.iter().filter(|one| !self.reservations.contains(one));
        let added = self.reservations.iter().filter(|one| !old.contains(one));
        let changed: Vec<ClusterId> = removed.chain(added).map(|one| one.cluster).collect();
        for cluster in changed {
            self.mark_changed(cluster);
        }
        // `mark_changed` has raised the change counter. With the value from before, each call would
        // update the reservations again.
        self.reservation_inputs = ReservationInputs {
            fleet_changes: self.changes,
            pending_changes: self.pending.changes,
            next_update_at: self.next_update_at(now),
        };
    }

    /// Checks that `work` does not delay a reservation. The nodes of released capacity are unknown, so work that
    /// reuses it is never proved to fit beside a reservation.
    pub(crate) fn check_reservations(
        &mut self,
        work: &AssignedWorkload,
        credited: bool,
        position: WaitingPosition,
        id: ClusterId,
        now: Time,
    ) -> Result<(), ClusterRefusal> {
        let Self { reservations, clusters, .. } = self;
        let ends_at = work.run_time().and_then(|runs| runs.end(now).known(now));
        // Work with an earlier queue position may take reserved capacity.
        let binding = |one: &&CapacityReservation| one.cluster == id && one.position < position;
        for reservation in reservations.iter().filter(binding) {
            // Work of unknown run time never counts as ending before the reservation.
            let ends_before_start =
                reservation.at.is_some_and(|at| ends_at.is_some_and(|ends_at| ends_at <= at));
            let fits_beside =
                !credited && reservation.leaves_room_beside(work, &mut clusters[id.index()], now);
            if !ends_before_start && !fits_beside {
                return Err(ClusterRefusal::ReservedForGang {
                    workload: reservation.workload,
                    at: reservation.at,
                    run_time: work.run_time(),
                });
            }
        }
        Ok(())
    }

    /// Workloads that were refused for `after` or longer, by configuration and flavor, in queue order.
    fn candidates_by_flavor(&self, now: Time) -> Vec<Vec<ReservationCandidate>> {
        let mut by_flavor: BTreeMap<_, Vec<ReservationCandidate>> = BTreeMap::new();
        for (_, pending_class) in self.pending.iter() {
            let class = &pending_class.class;
            let Some(policy) = self.config(&class.config).policy.gang_reservation else {
                continue;
            };
            let is_eligible = |position: &WaitingPosition| {
                self.eligible_at(*position, policy).is_some_and(|at| at <= now)
            };
            // A cluster that fits one Workload of a class fits any, so the first eligible one
            // stands for all.
            let Some(position) = pending_class.positions().find(is_eligible) else {
                continue;
            };
            for pool in class.work.pools() {
                let candidates = by_flavor.entry((&class.config, pool)).or_default();
                candidates.push(ReservationCandidate {
                    position,
                    class: Arc::clone(class),
                    policy,
                });
            }
        }
        let mut by_flavor: Vec<_> = by_flavor.into_values().collect();
        by_flavor
            .iter_mut()
            .for_each(|candidates| candidates.sort_by_key(|candidate| candidate.position));
        by_flavor
    }

    /// Time from which a Workload may get a reservation.
    fn eligible_at(
        &self,
        (_, workload): WaitingPosition,
        policy: GangReservationPolicy,
    ) -> Option<Time> {
        let since = self.pending.refused_since(workload)?;
        Some(Time(since.0.saturating_add(policy.after)))
    }

    /// Reserves capacity for the first candidate that a cluster can fit.
    fn reserve_for(
        &mut self,
        candidates: &[ReservationCandidate],
        old: &[CapacityReservation],
        now: Time,
    ) {
        for candidate in candidates.iter().take(MAX_CANDIDATES) {
            // The candidate has a reservation for another of its flavors already; this flavor gets
            // no second one.
            if self.reservations.iter().any(|previous| previous.position == candidate.position) {
                return;
            }
            if let Some(reservation) = self.reserve_cluster(candidate, old, now) {
                return self.reservations.push(reservation);
            }
        }
    }

    /// Reservation on the cluster that fits the candidate first.
    fn reserve_cluster(
        &mut self,
        candidate: &ReservationCandidate,
        old: &[CapacityReservation],
        now: Time,
    ) -> Option<CapacityReservation> {
        let config = self.config(&candidate.class.config);
        let mut best: Option<(EarliestStart, CapacityReservation)> = None;
        for cluster in candidate.class.clusters(&config) {
            let previous = old
                .iter()
                .find(|old| (old.workload, old.cluster) == (candidate.position.1, cluster));
            // Work that was placed beside the previous reservation must stay beside this one, so it
            // does not count as ending.
            let before = previous.map_or(self.serial + 1, |previous| previous.before);
            let Some((mut start, part)) = self.earliest_start(candidate, &config, cluster, now)
            else {
                continue;
            };
            // Without known ends a candidate keeps its cluster, so that reservations do not move back and forth.
            if let EarliestStart::Eventually { moves, .. } = &mut start {
                *moves = previous.is_none();
            }
            let at = if let EarliestStart::At(at) = start { Some(at) } else { None };
            let work = Arc::clone(&candidate.class.work);
            let (position, workload) = (candidate.position, candidate.position.1);
            let found = CapacityReservation { workload, cluster, at, position, work, before, part };
            if best.as_ref().is_none_or(|(least, _)| start < *least) {
                best = Some((start, found));
            }
        }
        best.map(|(_, reservation)| reservation)
    }

    fn earliest_start(
        &mut self,
        candidate: &ReservationCandidate,
        config: &PlacementConfig,
        id: ClusterId,
        now: Time,
    ) -> Option<(EarliestStart, i128)> {
        self.check_eligible(&candidate.class, &config.policy, id, now).ok()?;
        let work = &candidate.class.work;
        // `maxShare` limits all reservations of a cluster together (docs/reference/dispatch.md §1).
        let others = self.reservations.iter().filter(|one| one.cluster == id);
        let reserved: i128 = others.map(|one| one.part).sum();
        let cluster = &mut self.clusters[id.index()];
        let part = cluster.nodes()?.share_of_cluster(work);
        if (part + reserved) * 100 > i128::from(candidate.policy.max_share) * MILLIONTHS {
            return None;
        }
        Some((earliest_fit(cluster, work, part, now)?, part))
    }

    /// When learned run times on clusters with reservations are over.
    fn overruns(&self) -> impl Iterator<Item = Time> {
        let reserved = self.reservations.iter().map(|one| &self.clusters[one.cluster.index()]);
        let placed = reserved.flat_map(WorkerCluster::placed);
        placed.filter_map(|(_, placed)| placed.end?.overruns_at())
    }

    fn next_update_at(&self, now: Time) -> Option<Time> {
        let updates = self.pending.iter().filter_map(|(_, pending_class)| {
            let policy = self.config(&pending_class.class.config).policy.gang_reservation?;
            let is_eligible = pending_class
                .positions()
                .filter_map(move |position| self.eligible_at(position, policy));
            Some(is_eligible.chain(self.exclusion_ends(pending_class).map(|(_, until)| until)))
        });
        updates.flatten().chain(self.overruns()).filter(|at| *at > now).min()
    }
}

impl CapacityReservation {
    /// Whether the reservation still holds if `work` is placed and stays.
    fn leaves_room_beside(
        &self,
        work: &AssignedWorkload,
        cluster: &mut WorkerCluster,
        now: Time,
    ) -> bool {
        let Some(mut nodes) = cluster.nodes().cloned() else {
            return false;
        };
        nodes.place(work);
        let leaves = |(serial, placed): &(PlacementSerial, &PlacedWorkload)| match self.at {
            Some(at) => placed.known_end(now).is_some_and(|end| end <= at),
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

/// Earliest time at which the cluster fits `work`: after some bounded run times, or after all running work. `None` if
/// it never fits.
fn earliest_fit(
    cluster: &mut WorkerCluster,
    work: &AssignedWorkload,
    part: i128,
    now: Time,
) -> Option<EarliestStart> {
    let present = cluster.nodes()?.clone();
    let fits_without =
        |cluster: &WorkerCluster, leaves: &dyn Fn(&(PlacementSerial, &PlacedWorkload)) -> bool| {
            let mut nodes = present.clone();
            release_ending(&mut nodes, cluster, leaves);
            nodes.check_fit(work).is_ok()
        };
    // Nothing is kept where the gang can never stand (docs/reference/dispatch.md §1).
    if !fits_without(cluster, &|_| true) {
        return None;
    }
    let mut ends: Vec<Time> =
        cluster.placed().filter_map(|(_, placed)| placed.known_end(now)).collect();
    // No work ends by this time: it tests the nodes as they are now.
    ends.push(Time(i64::MIN));
    ends.sort_unstable();
    ends.dedup();
    let ends_at = |end: Time| {
        move |candidate: &(PlacementSerial, &PlacedWorkload)| {
            candidate.1.known_end(now).is_some_and(|known| known <= end)
        }
    };
    let too_early = ends.partition_point(|&end| !fits_without(cluster, &ends_at(end)));
    let at = ends.get(too_early).copied().map(EarliestStart::At);
    Some(at.unwrap_or(EarliestStart::Eventually { moves: true, part }))
}
