//! Moves of queued work: a Workload that waits for the queues of clusters without reports goes to a cluster where room is
//! known, once there is any (docs/reference/dispatch.md §3).
//!
//! A move adds the cluster to the race. It gets a clone, the first cluster that admits is recorded, and the other clones are
//! removed before. So the place in the other queues and the quota are kept until then, no copy has to be withdrawn first, and
//! a move can start the Workload twice no more than a race can.
//!
//! Nothing is remembered that a restart could lose: the moves of a Workload are its nominated clusters that are not known to
//! report nothing, and its cooldown begins with the nomination as the present process knows it.

use std::sync::Arc;

use engine::{
    Time,
    ids::{ClusterId, WorkloadId},
};

use crate::cluster_choice::PlacementFit;
use crate::cluster_rank::ClusterRank;
use crate::{
    AssignedWorkload, Fleet, Nominated, PlacementConfig, PlacementRequest, WorkloadRequest,
};

/// The most clusters that a Workload may be nominated for, by the schema of `nominatedClusterNames`.
const MAX_NOMINATED: usize = 20;

/// When and how often a queued Workload is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RebalancePolicy {
    /// The least share of its size that the cluster has free afterwards, in percent.
    pub min_gain: u8,
    /// Time in nanoseconds since the nomination, and since the last move.
    pub cooldown: i64,
    /// Moves of one Workload while it keeps its quota.
    pub max_moves: usize,
}

/// A Workload that waits for the queues of clusters without reports.
#[derive(Debug, Clone, Copy)]
pub struct QueuedWorkload<'a> {
    /// What it asks for.
    pub request: PlacementRequest<'a>,
    /// The clusters that it is nominated for, and the time of its last nomination or move.
    pub nominated: Nominated<'a>,
}

/// Why a queued Workload stays where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StayReason {
    /// Its policy does not move queued work, or it waits for no queue, or for that of the cluster with its checkpoint.
    NotMoved,
    /// It was moved as often as its policy allows.
    MovesUsedUp,
    /// It was nominated or moved shortly before; until this time.
    CoolingDown(Time),
    /// No other cluster has room that nothing else would take. The next end of an exclusion may change that.
    NoRoom(Option<Time>),
}

impl Fleet {
    /// Whether the policy of any MultiKueueConfig moves queued work.
    pub fn rebalances(&self) -> bool {
        self.configs.values().any(|one| one.config.policy.rebalance.is_some())
    }

    /// A number that rises with every change of the fleet.
    pub fn n_changes(&self) -> u64 {
        self.changes
    }

    /// The cluster that a queued Workload moves to. `leaves` says whether a placed Workload is being evicted: the room that it
    /// makes is for what preempts it.
    ///
    /// # Errors
    /// The reason why it stays where it is.
    pub fn find_move(
        &mut self,
        queued: &QueuedWorkload<'_>,
        leaves: &dyn Fn(WorkloadId) -> bool,
        now: Time,
    ) -> Result<ClusterId, StayReason> {
        let QueuedWorkload { request, nominated } = *queued;
        let config = self.config(request.config);
        let waits = !nominated.clusters.is_empty() && nominated.clusters.len() < MAX_NOMINATED;
        let policy = config.policy.rebalance.filter(|_| waits).ok_or(StayReason::NotMoved)?;
        let is_move = |id: &&ClusterId| !self.is_unreported(**id);
        if nominated.clusters.iter().filter(is_move).count() >= policy.max_moves {
            return Err(StayReason::MovesUsedUp);
        }
        let rests_until = Time(nominated.at.0.saturating_add(policy.cooldown));
        if now < rests_until {
            return Err(StayReason::CoolingDown(rests_until));
        }
        // The cluster with its checkpoint decides about it before any other one.
        let stays = |id: &ClusterId| self.holds_checkpoint(&request.work.request, *id);
        if nominated.clusters.iter().any(stays) {
            return Err(StayReason::NotMoved);
        }
        self.update_reservations(now);
        let target = self.best_target(queued, (&config, policy), leaves, now);
        let ends = || self.exclusions.ends(&request.work.request, now).map(|(_, until)| until);
        target.ok_or_else(|| StayReason::NoRoom(ends().min()))
    }

    /// The best cluster that is not nominated yet. Its room is known, it keeps enough of it, and no waiting Workload would
    /// take it.
    fn best_target(
        &mut self,
        QueuedWorkload { request, nominated }: &QueuedWorkload<'_>,
        (config, rebalance): (&PlacementConfig, RebalancePolicy),
        leaves: &dyn Fn(WorkloadId) -> bool,
        now: Time,
    ) -> Option<ClusterId> {
        let class = request.class();
        let position = (request.order, request.workload);
        let mut best: Option<(ClusterRank, ClusterId)> = None;
        let others = class.clusters(config).filter(|id| !nominated.clusters.contains(id));
        for id in others {
            // Nodes that are not there yet are no reason to move.
            let fit = self.evaluate(&class, position, &config.policy, id, now);
            let Ok(fit @ PlacementFit::FreeRoom(share)) = fit else {
                continue;
            };
            // A place in one queue for a place in another one is no gain.
            if !self.clusters[id.index()].has_quota_for(&class.work) {
                continue;
            }
            let rank = self.rank(&class.work, &config.policy, id, fit);
            let better = best.as_ref().is_none_or(|(old, _)| rank > *old);
            let is_left = better
                && share.is_at_least(rebalance.min_gain)
                && !self.placed_workloads(id).any(|(placed, _)| leaves(placed))
                && !self.is_wanted(id, now);
            if is_left {
                best = Some((rank, id));
            }
        }
        best.map(|(_, id)| id)
    }

    /// Whether a Workload that waits for room would get this cluster now. It holds no quota, so it comes first, whatever its
    /// place in the order.
    fn is_wanted(&mut self, id: ClusterId, now: Time) -> bool {
        let pending = self.pending.iter().map(|(_, one)| one);
        let waiting: Vec<_> = pending
            .filter_map(|one| Some((Arc::clone(&one.class), one.first_position()?)))
            .collect();
        waiting.into_iter().any(|(class, position)| {
            let config = self.config(&class.config);
            class.clusters(&config).any(|one| one == id)
                && self.evaluate(&class, position, &config.policy, id, now).is_ok()
        })
    }

    /// Whether a cluster may still be nominated for a Workload that was counted there.
    pub fn may_join(
        &self,
        config: &str,
        request: &WorkloadRequest,
        id: ClusterId,
        now: Time,
    ) -> bool {
        let policy = &self.config(config).policy;
        self.is_configured(config, id) && self.check_open(request, policy, id, now).is_ok()
    }

    /// Counts a queued Workload on the cluster that it moves to. It goes on waiting for the queues of the others.
    pub fn begin_move(
        &mut self,
        workload: WorkloadId,
        cluster: ClusterId,
        work: Arc<AssignedWorkload>,
        now: Time,
    ) {
        let queues = self.racing.queues(workload);
        self.place(workload, cluster, work, now);
        self.begin_race(workload, queues);
    }

    /// A queued Workload takes no room any more on the cluster that it was moved to.
    pub fn end_move(&mut self, workload: WorkloadId) {
        if self.moves_to(workload).is_some() {
            let queues = self.racing.queues(workload);
            self.unplace(workload);
            self.begin_race(workload, queues);
        }
    }

    /// The cluster that a queued Workload was moved to, until one is recorded.
    pub fn moves_to(&self, workload: WorkloadId) -> Option<ClusterId> {
        self.placed_on(workload).filter(|_| self.is_racing(workload))
    }
}
