//! The clusters that race for a Workload (docs/reference/dispatch.md §3).
//!
//! | file | concept |
//! |---|---|
//! | this one, `race_state` | which clusters race now, and what is remembered of that |
//! | `nominations` | nominated clusters against the MultiKueueConfig |
//! | `admitted_work`, `placement` | what a Workload with quota asks of a cluster, and the cluster that counts it |
//! | `refused_clusters` | clusters that are left out because they did not take it |
//! | `queued_moves` | work that waits for the queues of workers, and moves to a worker with room |
//! | `waiting_copies`, `waiting_messages` | why the workers have not admitted a Workload, in its check, and how often it says so |

pub(super) mod admitted_work;
pub(super) mod nominations;
pub(super) mod placement;
pub(super) mod queued_moves;
pub(super) mod race_state;
pub(super) mod refused_clusters;
pub(super) mod waiting_copies;
pub(super) mod waiting_messages;

use dispatch::{
    ClusterRace, Dispatcher, Fleet, Nominated, ROUND,
    workload::{DispatchCheckState, SlicePredecessor},
};
use engine::{
    Time,
    ids::{ClusterId, WorkloadId},
};

use self::{
    admitted_work::{keep_bound, races_unreported},
    race_state::RaceState,
};
use crate::control::{
    context::Context,
    multikueue::{
        copies::push_sizes::extended_cluster,
        view::{evaluated_workload::EvaluatedWorkload, observed_workload::ObservedWorkload},
    },
    time::{engine_time, timestamp},
    timers::Reevaluation,
};

/// What a race means for a Workload.
pub(crate) struct RaceView {
    /// The clusters that may be nominated now; `None` without a race.
    pub(crate) clusters: Option<Vec<ClusterId>>,
    /// When it ends without a winner; `None` if it has no end.
    pub(crate) until: Option<Time>,
}

/// See the module.
pub(crate) struct WorkloadRace<'e> {
    pub(crate) workload: EvaluatedWorkload<'e>,
    pub(crate) state: &'e mut RaceState,
    pub(crate) fleet: &'e mut Fleet,
    pub(crate) ctx: &'e mut Context,
}

impl WorkloadRace<'_> {
    /// The race of a Workload as far as it is in one.
    pub(crate) fn view(&mut self, hub: &ObservedWorkload) -> RaceView {
        let clusters = self.clusters(hub);
        let until = clusters.as_ref().and_then(|_| self.ends_at(hub));
        RaceView { clusters, until }
    }

    /// The clusters that may be nominated now, if they race.
    fn clusters(&mut self, hub: &ObservedWorkload) -> Option<Vec<ClusterId>> {
        let races = self.workload.config.dispatcher.races();
        if !races && !self.races_without_reports(hub) {
            return None;
        }
        let is_open = hub.quota_reserved && hub.check == DispatchCheckState::Pending;
        let mut race = self.clusters_that_race(hub).filter(|_| is_open).unwrap_or_default();
        self.workload.siblings().keep_together(&mut race, self.fleet);
        // Clusters with a report may have room by now, and without any the Workload waits for room in its queue.
        let ends = race.clusters.is_empty() && hub.nominations.clusters.is_empty();
        if ends && !races && !self.races_unreported() {
            return None;
        }
        if is_open && hub.recorded_cluster.is_none() {
            self.remember_queued(hub);
            self.join_move(hub, &mut race);
        }
        self.state.awaits_clusters = race.incomplete;
        if let Some(until) = race.until {
            let evaluation = Reevaluation::Workload(self.workload.key.clone());
            self.ctx.agenda.at(timestamp(until), evaluation);
        }
        Some(race.clusters)
    }

    /// Beside clusters that report, a race ends when the queues have had the time of a round: the quota could serve others.
    fn ends_at(&self, hub: &ObservedWorkload) -> Option<Time> {
        // A slice that extends another one has no other cluster, and a worker may have finished that one for it.
        let ends = self.workload.races_beside_reports(self.fleet)
            && hub.slices.predecessor == SlicePredecessor::Absent;
        ends.then(|| Time(hub.nominated_at.0.saturating_add(ROUND)))
    }

    /// Whether clusters race because nothing is known of their capacity. A race goes on when it is known again; a Workload that
    /// was nominated for one cluster by its report stays with that.
    fn races_without_reports(&mut self, hub: &ObservedWorkload) -> bool {
        let fleet = &*self.fleet;
        let waits = || self.workload.id().is_some_and(|id| fleet.is_racing(id));
        let raced = self.state.is_unreported;
        let races = match hub.nominations.clusters.as_slice() {
            [] => hub.recorded_cluster.is_none() && (self.races_unreported() || waits()),
            // Whether a cluster reports is not known while it is not reached.
            [single] => fleet.is_unreported(*single) || raced && !fleet.reports(*single),
            _ => true,
        };
        self.state.is_unreported = races;
        races
    }

    fn races_unreported(&self) -> bool {
        let (scheduler, now) = (self.workload.scheduler, engine_time(self.ctx.now));
        let record = self.workload.record();
        record.is_some_and(|record| races_unreported(record, scheduler, self.fleet, now))
    }

    fn clusters_that_race(&self, hub: &ObservedWorkload) -> Option<ClusterRace> {
        let record = self.workload.record()?;
        let config = self.workload.multikueue_config()?;
        let request = self.workload.request()?;
        let fleet = &*self.fleet;
        let nominated = Nominated { clusters: &hub.nominations.clusters, at: hub.nominated_at };
        let (dispatcher, now) = (self.workload.config.dispatcher, engine_time(self.ctx.now));
        let mut race = match extended_cluster(self.workload, fleet) {
            Some(cluster) => fleet.extension_race(config, request, cluster, now),
            None => fleet.race((config, request), dispatcher, nominated, now),
        };
        // Upstream's dispatchers know no bindings.
        if dispatcher == Dispatcher::Capacity {
            keep_bound(&mut race, record, self.workload.scheduler, fleet);
        }
        Some(race)
    }

    /// Keeps a Workload among those that wait for queues: one of an earlier process, and one in a race that began before any
    /// report counted.
    fn remember_queued(&mut self, hub: &ObservedWorkload) {
        let beside_reports = self.workload.races_beside_reports(self.fleet);
        let Some(id) = self.workload.id().filter(|_| beside_reports) else {
            return;
        };
        // A process that begins has counted a single nominated cluster as the one where the Workload is.
        let begins = self.state.remember_queued();
        let fleet = &mut *self.fleet;
        let is_queue = |on| hub.nominations.clusters == [on] && !fleet.reports(on);
        let counted = fleet.placed_on(id).filter(|on| !begins || !is_queue(*on));
        if !fleet.is_racing(id) && counted.is_none() && !hub.nominations.clusters.is_empty() {
            fleet.unplace(id);
            fleet.begin_race(id, hub.nominations.clusters.clone());
        }
    }

    /// Adds the cluster that the Workload moves to, until it is nominated. One that may not have it any more ends the move.
    fn join_move(&mut self, hub: &ObservedWorkload, race: &mut ClusterRace) {
        let fleet = &*self.fleet;
        let target = move_of(self.workload, self.fleet);
        let Some((id, to)) = target.filter(|(_, to)| !hub.nominations.clusters.contains(to)) else {
            return;
        };
        let (request, config) = (self.workload.request(), self.workload.multikueue_config());
        let now = engine_time(self.ctx.now);
        if config
            .zip(request)
            .is_some_and(|(config, request)| fleet.may_join(config, request, to, now))
        {
            race.clusters.push(to);
        } else {
            self.fleet.end_move(id);
        }
    }
}

/// The Workload's number, and the cluster that it moves to.
pub(crate) fn move_of(
    workload: EvaluatedWorkload<'_>,
    fleet: &Fleet,
) -> Option<(WorkloadId, ClusterId)> {
    let id = workload.id()?;
    Some((id, fleet.moves_to(id)?))
}
