//! One evaluation of a Workload over worker clusters: the state machine `dispatch::workload` is asked, and its steps become
//! writes on workers and effects on the hub.

use std::ops::ControlFlow;

use dispatch::{
    Fleet,
    workload::{
        self as dispatch_workload, DispatchStep, DispatchTimeouts, LocalWorkload, RemoteCopy,
        RetryReason, blocking_clusters,
    },
};
use engine::{Time, ids::ClusterId};

use super::{
    copies::{
        create_copies::WorkerCopies,
        name_holders::NameHolders,
        preemption_gates::{open_preemption_gate, with_clone_gates},
        push_sizes::{push_size, shrink_placement},
        worker_writes,
    },
    dispatch_effect::DispatchEffect,
    leases::exactly_once::LeasedDispatch,
    race::{
        WorkloadRace,
        nominations::nominate_all,
        placement::{place_winner, placed_cluster},
        queued_moves::begins_round,
        refused_clusters::RefusedClusters,
    },
    state::DispatchState,
    statuses::{
        adopted_result::adopted_event,
        copy_reclaims::reclaim,
        job_statuses::{clear_active_pods, sync_status},
        open_jobs::{CloneEnd, announce_open_jobs},
    },
    view::{
        copy_views::CopyViews,
        evaluated_workload::EvaluatedWorkload,
        hub_jobs::{multikueue_check, undispatchable},
        observed_workload::{ObservedWorkload, exists},
    },
    workers::{refused_writes::RefusedScope, unregistered, worker::Worker},
};
use crate::control::{
    context::Context,
    time::{engine_time, timestamp},
    timers::Reevaluation,
    workloads::{CheckRetry, NominationChange, Transition},
};

/// Message of a reservation that ends because no cluster has room when the other checks are Ready.
const NO_CLUSTER: &str = "no worker cluster has room since the other admission checks are Ready";

/// Why a cluster is left out that admitted a Workload and did not start it.
const NOT_STARTED: &str = "the job was admitted there and not started in time";

/// Why a cluster is left out that removes copies again and again.
const REMOVED: &str = "it has removed the copy of the workload again";

/// Why a cluster is left out that changes copies again and again.
const CHANGED: &str = "its copy differs from the workload again";

/// What the epochs of copies say.
struct NewestEpoch {
    /// The highest one that was observed before.
    highest: u64,
    /// Until when a copy of a higher epoch may be that of a Workload which this process observes late.
    awaited_until: Option<Time>,
}

/// See the module.
pub(super) struct DispatchEvaluation<'a> {
    pub(super) workload: EvaluatedWorkload<'a>,
    pub(super) leases: LeasedDispatch<'a>,
    pub(super) state: &'a mut DispatchState,
    pub(super) fleet: &'a mut Fleet,
    pub(super) ctx: &'a mut Context,
}

impl<'a> DispatchEvaluation<'a> {
    /// Decides about the copies of one Workload.
    pub(super) fn run(mut self) -> Vec<DispatchEffect> {
        let record = self.workload.record();
        let check = record.and_then(|record| multikueue_check(record, self.workload.scheduler));
        match self.gate(check.as_deref()) {
            ControlFlow::Break(effects) => effects,
            ControlFlow::Continue(()) => self.decide(check.as_deref()),
        }
    }

    /// Ends the evaluation of a Workload without check and copies, of one that cannot be dispatched, and of one that is gone while
    /// a breaker holds its copies.
    fn gate(&mut self, check: Option<&str>) -> ControlFlow<Vec<DispatchEffect>> {
        let EvaluatedWorkload { key, jobs, .. } = self.workload;
        let record = self.workload.record();
        if check.is_none() && !self.may_have_copies() {
            return ControlFlow::Break(Vec::new());
        }
        if let Some(message) = record.and_then(|record| undispatchable(key, record, jobs)) {
            // Every evaluation of such a Workload ends here, and its quota is released only once
            // `withdrawn` is set.
            self.state.withdrawn = true;
            let message = format!("{message}, Previously: \"Pending\"");
            let rejected = DispatchEffect::Propose(Transition::CheckRejected(message));
            return ControlFlow::Break(vec![rejected]);
        }
        // A hub that was restored from a backup must not delete running work
        // (docs/reference/dispatch.md §9).
        match record.is_some_and(exists) || !self.workload.breaker_holds(key, self.ctx) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(Vec::new()),
        }
    }

    /// Takes the steps of the state machine. Returns what they mean for the hub.
    fn decide(mut self, check: Option<&str>) -> Vec<DispatchEffect> {
        let workload = self.workload;
        let observed = workload.observe(check, self.state, self.fleet, self.ctx.now);
        shrink_placement(workload, self.fleet);
        let timeouts = self.timeouts();
        let mut copies = self.copies(&observed, timeouts.worker_lost_timeout);
        let hub = self.complete(observed, &mut copies);
        let now = engine_time(self.ctx.now);
        let steps = dispatch_workload::decide(&hub, &copies, &timeouts, now);
        tracing::trace!(workload = %workload.key, ?hub, ?copies, ?steps, "dispatch");
        let blocking = blocking_clusters(&hub, &copies, &timeouts, now);
        let message = self.check_message(&hub, check, &blocking).map(DispatchEffect::Propose);
        let reclaim = reclaim(workload, self.fleet, &hub, &copies);
        let racing = hub.race.as_deref();
        let effects = steps.into_iter().filter_map(|step| self.take_step(step, racing));
        effects.chain(reclaim).chain(message).collect()
    }

    /// What the check of the Workload is to say: that a lost worker is awaited, or else that copies are disputed, or else why workers
    /// have not admitted it. The last is left out while clusters block the Workload, so that the message about them stays.
    fn check_message(
        &mut self,
        hub: &LocalWorkload,
        check: Option<&str>,
        blocking: &[ClusterId],
    ) -> Option<Transition> {
        let view = self.workload.view(self.fleet);
        let fence = self.leases.fence_message(view, hub, check, self.ctx);
        let message = fence.or_else(|| view.disputed_message(check, hub.check, blocking));
        if message.is_some() || !blocking.is_empty() {
            return message;
        }
        view.waiting_message(hub, check, &mut self.state.waiting, self.ctx)
    }

    /// Copies may outlive quota and check, so the workers count as well.
    fn may_have_copies(&self) -> bool {
        let EvaluatedWorkload { key, workers, jobs, .. } = self.workload;
        let is_somewhere = || workers.concerned(key, self.ctx.outbox.writes()).next().is_some();
        jobs.orphan_of(key).is_some() || is_somewhere()
    }

    fn copies(&self, hub: &ObservedWorkload, lost_after: i64) -> Vec<RemoteCopy> {
        let views = CopyViews {
            workload: self.workload,
            leases: &self.leases,
            fleet: self.fleet,
            writes: self.ctx.outbox.writes(),
            sent: &self.state.sent,
            lost_after,
            now: self.ctx.now,
        };
        views.copies(hub)
    }

    /// The input of the state machine: what the hub shows, and what the parts of an evaluation add to it.
    fn complete(&mut self, hub: ObservedWorkload, copies: &mut [RemoteCopy]) -> LocalWorkload {
        let (workload, now) = (self.workload, self.ctx.now);
        let view = workload.view(self.fleet);
        let guarantee = self.leases.guarantee(view, &hub, self.ctx.outbox.writes());
        self.leases.read_former(view, copies, &mut self.state.former, self.ctx);
        self.race().follow_move(&hub, copies);
        let race = self.race().view(&hub);
        let refused = RefusedClusters { workload, fleet: self.fleet, now };
        refused.end_refusals(&hub, &race, copies, &mut self.ctx.agenda);
        let nominated_at = if self.names().await_names(&hub, &race, copies) {
            // A worker's time to admit begins when something can be created there.
            self.state.nominated_at = now;
            engine_time(now)
        } else {
            hub.nominated_at
        };
        let drained_at = self.drained_at(&hub);
        let recorded = copies.iter().find(|copy| Some(copy.cluster) == hub.recorded_cluster);
        let waits = self.state.note_waits(recorded, &hub.job, now);
        let newest = self.newest_epoch(&hub, copies);
        LocalWorkload {
            exists: hub.exists,
            finished: hub.finished,
            quota_reserved: hub.quota_reserved,
            evicted: hub.evicted,
            check: hub.check,
            awaits_other_checks: hub.awaits_other_checks,
            recorded_cluster: hub.recorded_cluster,
            nominated_clusters: hub.nominations.clusters,
            unconfigured_clusters: hub.nominations.unconfigured,
            race: race.clusters,
            nominated_by_others: hub.nominations.by_others,
            race_until: race.until,
            epoch: hub.epoch,
            highest_epoch: newest.highest,
            newer_copy_until: newest.awaited_until,
            epoch_raised: hub.epoch_raised,
            start_awaited_since: waits.start,
            end_awaited_since: waits.end,
            drained_at,
            create_sent: hub.create_sent,
            nominated_at,
            exactly_once: guarantee.exactly_once,
            is_own_version: guarantee.is_own_version,
            predecessor: hub.slices.predecessor,
            is_slice: hub.slices.is_slice,
            has_successor: hub.slices.has_successor,
            job: hub.job,
        }
    }

    /// Remembers the highest epoch of the copies. Returns what was known before.
    fn newest_epoch(&mut self, hub: &ObservedWorkload, copies: &[RemoteCopy]) -> NewestEpoch {
        let epochs = copies.iter().filter_map(|copy| copy.newest_believed_epoch(hub.epoch));
        let observed = epochs.max().unwrap_or(0);
        let is_known = self.workload.record().is_some();
        let awaited = self.state.newer_copy_until(observed > hub.epoch && is_known, self.ctx.now);
        let highest = self.state.highest_epoch;
        self.state.highest_epoch = highest.max(observed);
        NewestEpoch { highest, awaited_until: awaited.map(engine_time) }
    }

    fn names(&mut self) -> NameHolders<'_> {
        let Self { workload, state, fleet, ctx, .. } = self;
        NameHolders { workload: *workload, wait: &mut state.names, fleet, ctx }
    }

    fn race(&mut self) -> WorkloadRace<'_> {
        let Self { workload, state, fleet, ctx, .. } = self;
        WorkloadRace { workload: *workload, state: &mut state.race, fleet, ctx }
    }

    fn refused_clusters(&mut self) -> RefusedClusters<'_> {
        RefusedClusters { workload: self.workload, fleet: self.fleet, now: self.ctx.now }
    }

    /// The timeouts under the policy of the Workload.
    fn timeouts(&self) -> DispatchTimeouts {
        let fleet = &*self.fleet;
        let config = self.workload.multikueue_config();
        self.workload.config.timeouts(config.and_then(|config| fleet.lost_after(config)))
    }

    /// When running work is withdrawn from the recorded worker.
    fn drained_at(&self, hub: &ObservedWorkload) -> Option<Time> {
        let config = self.workload.multikueue_config()?;
        self.fleet.drain_deadline(config, hub.recorded_cluster?)
    }

    /// Takes one step. Returns what it means for the hub.
    fn take_step(
        &mut self,
        step: DispatchStep,
        racing: Option<&[ClusterId]>,
    ) -> Option<DispatchEffect> {
        let effect = match step {
            DispatchStep::Nominate => {
                return match racing {
                    Some(racing) => self.nominate_all(racing),
                    None => self.nominate(),
                };
            }
            DispatchStep::ConfirmVersion => DispatchEffect::ConfirmVersion {
                term: self.workload.incarnation.term,
                exactly_once: self.leases.is_exactly_once(),
            },
            DispatchStep::SyncStatus(cluster) => return self.sync_status(cluster),
            DispatchStep::AdoptResult(cluster) => return self.adopt_result(cluster),
            DispatchStep::ClearActivePods => return clear_active_pods(self.workload, self.ctx),
            DispatchStep::RaiseEpoch(epoch) => DispatchEffect::RaiseEpoch(epoch),
            DispatchStep::SetCheckReady(cluster) => {
                let now = engine_time(self.ctx.now);
                place_winner(self.workload, cluster, self.fleet, now);
                let name = self.fleet.name(cluster).into();
                DispatchEffect::Propose(Transition::CheckReady(name))
            }
            DispatchStep::Finish { reason, message, without_end } => {
                if let Some(worker) = without_end.and_then(|cluster| self.worker(cluster)) {
                    let end = CloneEnd { reason: &reason, message: &message };
                    announce_open_jobs(self.workload, worker, end, &mut self.ctx.outbox);
                }
                let (reason, message) = (reason.into(), message.into());
                DispatchEffect::Propose(Transition::Finish { reason, message })
            }
            DispatchStep::SetCheckRetry(retry) => DispatchEffect::Propose(self.retry(retry)),
            DispatchStep::CancelNomination { cluster, why } => self.unreserve(cluster, why),
            of_worker => {
                self.take_worker_step(&of_worker);
                return None;
            }
        };
        Some(effect)
    }

    /// Takes a step that means nothing for the hub.
    fn take_worker_step(&mut self, step: &DispatchStep) -> Option<()> {
        let workload = self.workload;
        match *step {
            DispatchStep::CreateClone(cluster) => self.create_clone(cluster)?,
            DispatchStep::CreateJobs(cluster) => {
                let lease = self.leases.stamp(cluster, self.fleet);
                self.copies_on(cluster)?.create_jobs(lease.as_deref());
            }
            DispatchStep::DeleteJobs(cluster) => self.copies_on(cluster)?.delete_jobs(),
            DispatchStep::DeleteMembers(cluster) => self.copies_on(cluster)?.delete_members(),
            DispatchStep::DeleteClone(cluster) => {
                let worker = self.worker(cluster)?;
                let uid = worker_writes::delete_clone(worker, workload.key, self.ctx)?;
                self.state.sent.clone_deleted(cluster, uid);
            }
            DispatchStep::PushPriority(cluster) => {
                let (worker, record) = (self.worker(cluster)?, workload.record()?);
                let sent =
                    worker_writes::push_priority(worker, workload.key, record.object(), self.ctx);
                self.state.sent.change_sent((cluster, None), sent?);
            }
            DispatchStep::PushSize(cluster) => {
                push_size(workload, self.worker(cluster)?, &mut self.state.sent, self.ctx);
            }
            DispatchStep::OpenPreemptionGate(cluster) => {
                open_preemption_gate(workload, self.worker(cluster)?, self.ctx);
            }
            // The stamp of this leader replaces that of a former one.
            DispatchStep::Stamp(cluster) => {
                let stamp = self.leases.stamp(cluster, self.fleet)?;
                let worker = self.worker(cluster)?;
                if worker_writes::push_stamp(worker, workload.key, &stamp, self.ctx) {
                    self.state.sent.change_sent((cluster, None), stamp.into());
                }
            }
            DispatchStep::WaitUntil(at) => {
                self.ctx.agenda.at(timestamp(at), Reevaluation::Workload(workload.key.clone()));
            }
            DispatchStep::Withdrawn => self.withdrawn(),
            DispatchStep::Nominate
            | DispatchStep::ConfirmVersion
            | DispatchStep::SyncStatus(_)
            | DispatchStep::AdoptResult(_)
            | DispatchStep::ClearActivePods
            | DispatchStep::RaiseEpoch(_)
            | DispatchStep::SetCheckReady(_)
            | DispatchStep::Finish { .. }
            | DispatchStep::SetCheckRetry(_)
            | DispatchStep::CancelNomination { .. } => {}
        }
        Some(())
    }

    fn worker(&self, cluster: ClusterId) -> Option<&'a Worker> {
        self.workload.worker(cluster, self.fleet)
    }

    fn copies_on(&mut self, cluster: ClusterId) -> Option<WorkerCopies<'_>> {
        let worker = self.worker(cluster)?;
        let Self { workload, state, ctx, .. } = self;
        let paused_until = state.lost_copies.paused_until(cluster);
        let sent = &mut state.sent;
        Some(WorkerCopies { workload: *workload, worker, sent, paused_until, ctx })
    }

    fn create_clone(&mut self, cluster: ClusterId) -> Option<()> {
        let (workload, record) = (self.workload, self.workload.record()?);
        let lease = self.leases.stamp(cluster, self.fleet);
        let gated = with_clone_gates(workload, record.object());
        self.copies_on(cluster)?.create_clone(&gated, lease.as_deref());
        Some(())
    }

    /// Nominates the clusters that race now.
    fn nominate_all(&mut self, racing: &[ClusterId]) -> Option<DispatchEffect> {
        let change = nominate_all(self.workload, self.fleet, racing)?;
        if begins_round(self.workload, self.fleet, racing) {
            self.state.nominated_at = self.ctx.now;
        }
        Some(DispatchEffect::Propose(Transition::Nominate(change)))
    }

    /// Nominates the cluster that was chosen together with the quota.
    fn nominate(&mut self) -> Option<DispatchEffect> {
        let record = self.workload.record()?;
        record.id().zip(record.object().status.admission.as_ref())?;
        let now = engine_time(self.ctx.now);
        let Some(cluster) = placed_cluster(self.workload, self.fleet, now) else {
            // It waits for room in its queue, with all others, and not on quota that they could use.
            self.state.withdrawn = true;
            return Some(DispatchEffect::Unreserve(NO_CLUSTER.to_owned()));
        };
        // The admission timeout begins with the nomination.
        self.state.nominated_at = self.ctx.now;
        let name = self.fleet.name(cluster).into();
        Some(DispatchEffect::Propose(Transition::Nominate(NominationChange::of([name]))))
    }

    /// Copies the status of a worker's jobs to the hub's jobs.
    fn sync_status(&mut self, cluster: ClusterId) -> Option<DispatchEffect> {
        let worker = self.worker(cluster)?;
        sync_status(self.workload, worker, &mut self.state.throttle, self.ctx)
    }

    /// Copies the status of jobs that have succeeded in an earlier dispatch, with an Event.
    fn adopt_result(&mut self, cluster: ClusterId) -> Option<DispatchEffect> {
        let effect = self.sync_status(cluster)?;
        let record = self.workload.record()?;
        let cluster = self.fleet.name(cluster);
        self.ctx.outbox.publish(adopted_event(record.object(), cluster));
        Some(effect)
    }

    /// The check goes back. A worker that evicted or refused the Workload is excluded for a while.
    fn retry(&mut self, retry: RetryReason) -> Transition {
        let evicted = self.evicted_on_worker(retry);
        match retry {
            // In a race the worker's queue decides when it admits the Workload again.
            RetryReason::EvictedOnWorker(_) if self.workload.config.dispatcher.races() => {}
            RetryReason::EvictedOnWorker(cluster) | RetryReason::RefusedByWorker(cluster) => {
                let worker = self.worker(cluster);
                let held_name = worker.and_then(|worker| self.names().name_refusal(worker));
                self.refused_clusters().exclude(cluster, held_name);
            }
            RetryReason::NotStarted(cluster) => {
                let scope = RefusedScope::Shape;
                self.refused_clusters().exclude_for(cluster, scope, NOT_STARTED.into());
            }
            RetryReason::RemoteLost => self.announce_left_behind(),
            RetryReason::RemoteMissing | RetryReason::OwnerNotFound(_) => self.copy_lost(REMOVED),
            RetryReason::OutOfSync(_) => self.copy_lost(CHANGED),
            // These do not speak against the cluster, so it may be chosen again at once.
            RetryReason::Drained(_) | RetryReason::NoClusterRecorded => {}
        }
        let fleet = &*self.fleet;
        let message = retry.message(|cluster| fleet.name(cluster));
        Transition::CheckRetry(CheckRetry { message, evicted })
    }

    /// The recorded cluster has removed or changed its copy. That speaks against it when it happens again; in a race only the
    /// copies of this Workload wait.
    fn copy_lost(&mut self, why: &str) {
        let Some(record) = self.workload.record() else {
            return;
        };
        let name = record.object().status.cluster_name.as_deref();
        let cluster = name.and_then(|name| self.fleet.find(name));
        let epoch = index::epoch(record.object());
        if let Some(cluster) = cluster
            && self.state.lost_copies.lost(cluster, epoch, self.ctx.now)
            && !self.workload.config.dispatcher.races()
        {
            self.refused_clusters().exclude_for(cluster, RefusedScope::Shape, why.into());
        }
    }

    /// The worker that evicted the Workload, and its reason. One that refused it, or holds it no longer, has evicted nothing.
    fn evicted_on_worker(&self, retry: RetryReason) -> Option<(Box<str>, String)> {
        let RetryReason::EvictedOnWorker(cluster) = retry else { return None };
        let reason = self.worker(cluster)?.eviction(self.workload.key)?.reason.clone();
        Some((self.fleet.name(cluster).into(), reason))
    }

    /// The reservation ends, and the cluster is excluded for a while.
    fn unreserve(&mut self, cluster: ClusterId, why: Box<str>) -> DispatchEffect {
        let record = self.workload.record();
        // The clone that holds the reason may be gone before the end of the reservation is written. The first reason counts.
        if let Some(message) = record.and_then(|one| one.transitions().unreserve()) {
            return DispatchEffect::Unreserve(message.to_owned());
        }
        let name = self.fleet.name(cluster);
        let message = format!("worker cluster \"{name}\" did not take it: {why}");
        if record.is_some() {
            self.refused_clusters().end_nomination(cluster, why);
            self.state.withdrawn = true;
        }
        DispatchEffect::Unreserve(message)
    }

    fn withdrawn(&mut self) {
        // The step repeats until the release is visible, but the placement is removed once.
        if let Some(id) = self.workload.id()
            && !std::mem::replace(&mut self.state.withdrawn, true)
        {
            self.refused_clusters().exclude_after_timeout();
            self.fleet.unplace(id);
        }
    }

    /// Publishes an Event about a Workload that moves away from an unregistered worker, once.
    fn announce_left_behind(&mut self) {
        let Some(record) = self.workload.record().filter(|one| one.phase().holds_quota()) else {
            return;
        };
        let workload = record.object();
        let cluster = workload.status.cluster_name.as_deref();
        let unregistered = cluster.filter(|name| !self.workload.registry.is_registered(name));
        // The step repeats until the check is written; the first time publishes the Event.
        if let Some(cluster) = unregistered.filter(|_| !record.transitions().retries_check()) {
            let event = unregistered::workload_event(self.workload.key, workload, cluster);
            self.ctx.outbox.publish(event);
        }
    }
}
