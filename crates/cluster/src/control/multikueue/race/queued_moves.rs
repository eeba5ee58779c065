//! Queued work that moves: a Workload that waits for the queues of workers without reports goes to a worker with room
//! (docs/reference/dispatch.md §3).
//!
//! `dispatch::Fleet` finds the worker, once cycles have given room to what waits for it, and counts the Workload there. The
//! evaluation of the Workload then adds the worker to its race; the nomination is written before the clone is created, as
//! every one is.

mod move_report;

use ::jobs::elastic_copies::is_of_elastic_job;
use dispatch::{
    Dispatcher, Fleet, Nominated, PlacementRequest, QueuedWorkload, StayReason,
    workload::{MoveProgress, RemoteConnection, RemoteCopy},
};
use engine::ids::{ClusterId, WorkloadId};
use jiff::Timestamp;
use runtime::watch::Key;

use self::move_report::report_move;
use super::{
    WorkloadRace, admitted_work::admitted_work, move_of, refused_clusters::RefusedClusters,
};
use crate::control::{
    context::Context,
    key_map::KeyMap,
    multikueue::{
        dispatch_inputs::DispatchInputs,
        state::DispatchState,
        view::{evaluated_workload::EvaluatedWorkload, observed_workload::ObservedWorkload},
    },
    time::{engine_time, timestamp},
    timers::Reevaluation,
};

/// What moves were last decided on. The same inputs give the same decision.
#[derive(Debug, Default)]
pub(crate) struct Rebalancing {
    seen: Option<RebalancingInputs>,
    /// When time alone may change the decision.
    due: Option<Timestamp>,
}

/// What decides about moves, beside the time.
#[derive(Debug, PartialEq, Eq)]
struct RebalancingInputs {
    /// Changes of the fleet.
    n_changes: u64,
    /// Queued Workloads, each with its number of nominations and the time of the last one.
    waiting: Vec<(WorkloadId, usize, Timestamp)>,
}

/// A Workload that waits for the queues of workers.
struct Waiting {
    id: WorkloadId,
    key: Key,
    nominated: Vec<ClusterId>,
    /// Of its last nomination or move.
    at: Timestamp,
}

impl Rebalancing {
    /// Moves queued Workloads to workers with room, in queue order. Called when no cycle gives a Workload anything more. Returns
    /// whether one moves.
    pub(in crate::control::multikueue) fn rebalance(
        &mut self,
        states: &mut KeyMap<Key, DispatchState>,
        dispatcher: Dispatcher,
        inputs: &mut DispatchInputs<'_>,
        ctx: &mut Context,
    ) -> bool {
        let fleet = &*inputs.fleet;
        if dispatcher != Dispatcher::Capacity || !fleet.rebalances() {
            return false;
        }
        let waiting = waiting(states, inputs);
        let shown = waiting.iter().map(|one| (one.id, one.nominated.len(), one.at)).collect();
        let n_changes = inputs.fleet.n_changes();
        let seen = Some(RebalancingInputs { n_changes, waiting: shown });
        if self.seen == seen && self.due.is_none_or(|due| due > ctx.now) {
            return false;
        }
        (self.seen, self.due) = (seen, None);
        let mut moves = false;
        for one in waiting {
            match find_move(&one, inputs, ctx) {
                Ok(()) => {
                    if let Some(state) = states.get_mut(&one.key) {
                        state.race.move_begun(ctx.now);
                    }
                    ctx.agenda.now(Reevaluation::Workload(one.key));
                    moves = true;
                }
                Err(StayReason::CoolingDown(at) | StayReason::NoRoom(Some(at))) => {
                    let at = timestamp(at);
                    self.due = self.due.into_iter().chain([at]).min();
                    ctx.agenda.at(at, Reevaluation::Fleet);
                }
                Err(_) => {}
            }
        }
        moves
    }
}

/// Workloads that wait for queues and were moved nowhere else, in queue order.
fn waiting(states: &KeyMap<Key, DispatchState>, inputs: &mut DispatchInputs<'_>) -> Vec<Waiting> {
    let (workloads, scheduler) = (inputs.workloads, inputs.scheduler);
    let fleet = &mut *inputs.fleet;
    let racing = fleet.racing_workloads().filter(|id| fleet.moves_to(*id).is_none());
    let racing: Vec<WorkloadId> = racing.collect();
    let mut waiting: Vec<Waiting> = racing
        .into_iter()
        .filter_map(|id| {
            let (key, record) = workloads.by_id(id)?;
            let state = states.get(key)?;
            let object = record.object();
            // The slices of an elastic job stay together.
            let stays = record.is_leaving() || is_of_elastic_job(object);
            let names = object.status.nominated_cluster_names.iter().filter(|_| !stays);
            let nominated = names.map(|name| fleet.intern_cluster(name)).collect();
            let at = state.race.last_change(state.nominated_at);
            Some(Waiting { id, key: key.clone(), nominated, at })
        })
        .collect();
    waiting.retain(|one| !one.nominated.is_empty());
    waiting.sort_by_key(|one| (scheduler.queue_order(one.id), one.id));
    waiting
}

/// Counts a queued Workload on the worker that it moves to.
fn find_move(
    one: &Waiting,
    inputs: &mut DispatchInputs<'_>,
    ctx: &Context,
) -> Result<(), StayReason> {
    let (workloads, scheduler) = (inputs.workloads, inputs.scheduler);
    let record = workloads.get(&one.key).ok_or(StayReason::NotMoved)?;
    let admission = record.object().status.admission.as_ref().ok_or(StayReason::NotMoved)?;
    let config = scheduler.multikueue_config(&admission.cluster_queue);
    let work = admitted_work(record, admission, scheduler, inputs.fleet);
    let (Some(config), Some(work)) = (config, work) else {
        return Err(StayReason::NotMoved);
    };
    // All replicas of a set are on one worker.
    if work.request.together.is_some() {
        return Err(StayReason::NotMoved);
    }
    let order = scheduler.queue_order(one.id);
    let request = PlacementRequest {
        workload: one.id,
        config,
        work: &work,
        order,
        only: None,
        alternative: false,
    };
    let nominated = Nominated { clusters: &one.nominated, at: engine_time(one.at) };
    let leaves = |id| workloads.by_id(id).is_some_and(|(_, record)| record.is_leaving());
    let (fleet, now) = (&mut *inputs.fleet, engine_time(ctx.now));
    let cluster = fleet.find_move(&QueuedWorkload { request, nominated }, &leaves, now)?;
    fleet.begin_move(one.id, cluster, work, now);
    fleet.set_priority(one.id, order.priority);
    tracing::debug!(workload = %one.key, cluster = fleet.name(cluster), "queued work moves");
    Ok(())
}

impl WorkloadRace<'_> {
    /// Follows a move once its cluster is nominated. A cluster that does not take the Workload is left out for a while, and its
    /// room is free for others; it stays nominated.
    pub(crate) fn follow_move(&mut self, hub: &ObservedWorkload, copies: &[RemoteCopy]) {
        let target = move_of(self.workload, self.fleet);
        let Some((id, to)) = target.filter(|(_, to)| hub.nominations.clusters.contains(to)) else {
            return;
        };
        let since = engine_time(self.announce_move(hub, to));
        let Some(copy) = copies.iter().find(|copy| copy.cluster == to) else {
            return;
        };
        let (timeouts, now) = (self.workload.config.timeouts(None), engine_time(self.ctx.now));
        match copy.move_progress(since, &timeouts, now) {
            MoveProgress::Admitted => {}
            MoveProgress::Awaited(until) => {
                let evaluation = Reevaluation::Workload(self.workload.key.clone());
                self.ctx.agenda.at(timestamp(until), evaluation);
            }
            MoveProgress::Failed(why) => {
                self.fleet.end_move(id);
                // Of one that is not reached nothing is known.
                if copy.connection == RemoteConnection::Connected {
                    let (workload, now) = (self.workload, self.ctx.now);
                    let mut clusters = RefusedClusters { workload, fleet: self.fleet, now };
                    clusters.exclude_for_epoch(to, hub.epoch, why);
                }
            }
        }
    }

    /// Reports a move once. Returns when it was decided; that is forgotten when the nomination was not answered.
    fn announce_move(&mut self, hub: &ObservedWorkload, target: ClusterId) -> Timestamp {
        let (at, is_news) = self.state.report_move(self.ctx.now);
        if let Some(record) = self.workload.record().filter(|_| is_news) {
            let fleet = &*self.fleet;
            let queues = hub.nominations.clusters.iter().filter(|one| **one != target);
            let queues: Vec<&str> = queues.map(|one| fleet.name(*one)).collect();
            report_move(record.object(), &queues, fleet.name(target), self.ctx);
        }
        at
    }
}

/// Whether a nomination begins the time of the queues. A cluster with room that joins does not.
pub(crate) fn begins_round(
    workload: EvaluatedWorkload<'_>,
    fleet: &Fleet,
    racing: &[ClusterId],
) -> bool {
    let record = workload.record();
    let nominated = record.iter().flat_map(|one| &one.object().status.nominated_cluster_names);
    let nominated: Vec<&str> = nominated.map(String::as_str).collect();
    let target = move_of(workload, fleet).map(|(_, target)| target);
    let is_new = |one: &&ClusterId| !nominated.contains(&fleet.name(**one));
    racing.iter().filter(is_new).any(|one| Some(*one) != target)
}
