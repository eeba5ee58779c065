//! One evaluation of a Workload over worker clusters: the state machine `dispatch::workload` is asked, and its steps become
//! writes on workers and effects on the hub.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ::jobs::{GenericJob, JobObject, elastic_copies::is_of_elastic_job};
use dispatch::{
    ClusterRace, Dispatcher, HubIncarnation, Nominated, PlacementRequest, ROUND, WorkloadRequest,
    workload::{
        self as dispatch_workload, DispatchCheckState, DispatchStep, DispatchTimeouts,
        LocalWorkload, RemoteCopy, RetryReason, SlicePredecessor,
    },
};
use engine::{Time, ids::ClusterId};
use runtime::watch::Key;

use super::{
    DispatchConfig, DispatchEffect, DispatchInputs,
    admitted_work::{admitted_work, keep_bound, place_admitted, races_blind},
    adopted_result::adopted_event,
    grants::LeasedDispatch,
    held_members::is_held,
    multikueue_check,
    orphan_cleanup::{DepartedWorkloads, breaker_holds, present_workload},
    refused_writes::RefusedScope,
    state::DispatchState,
    status_sync::StatusNews,
    unregistered,
    view::{
        CopyInputs, HubJob, copy_view, expected_spec, hub_view, jobs_of, observed_jobs,
        orphan_view, undispatchable, unknown_cluster,
    },
    worker::Worker,
    worker_clusters::WorkerClusters,
    worker_writes,
};
use crate::control::{
    context::Context,
    elastic_slices::extending,
    job_key::JobKey,
    jobs::JobChange,
    outbox::Purpose,
    time::{engine_time, timestamp},
    timers::Reevaluation,
    workloads::{CheckRetry, NominationChange, Transition},
};

/// Message of a reservation that ends because no cluster has room when the other checks are Ready.
const NO_CLUSTER: &str = "no worker cluster has room since the other admission checks are Ready";

/// Why a cluster is left out that admitted a Workload and did not start it.
const NOT_STARTED: &str = "the job was admitted there and not started in time";

/// See the module.
pub(super) struct DispatchEvaluation<'a> {
    pub(super) key: &'a Key,
    pub(super) config: &'a DispatchConfig,
    pub(super) state: &'a mut DispatchState,
    pub(super) workers: &'a WorkerClusters,
    pub(super) leases: LeasedDispatch<'a>,
    /// The incarnation, and the Workloads that were observed to be deleted.
    pub(super) hub: (&'a HubIncarnation, &'a DepartedWorkloads),
    /// Clusters that may be nominated now, if they race.
    pub(super) racing: Option<Vec<ClusterId>>,
    pub(super) inputs: DispatchInputs<'a>,
    pub(super) ctx: &'a mut Context,
}

impl<'a> DispatchEvaluation<'a> {
    /// Decides about the copies of one Workload.
    pub(super) fn run(mut self) -> Vec<DispatchEffect> {
        let record = self.inputs.workloads.get(self.key);
        let check = record.and_then(|record| multikueue_check(record, self.inputs.scheduler));
        // Copies may outlive quota and check, so the workers count as well.
        let writes = self.ctx.outbox.writes();
        let is_somewhere = || self.workers.concerned(self.key, writes).next().is_some();
        let is_orphan = || self.inputs.jobs.orphan_of(self.key).is_some();
        if check.is_none() && !is_orphan() && !is_somewhere() {
            return Vec::new();
        }
        if let Some(message) =
            record.and_then(|record| undispatchable(self.key, record, self.inputs.jobs))
        {
            // Every evaluation of such a Workload ends here, and its quota is released only once
            // `withdrawn` is set.
            self.state.withdrawn = true;
            let message = format!("{message}, Previously: \"Pending\"");
            return vec![DispatchEffect::Propose(Transition::CheckRejected(message))];
        }
        let mut hub = self.hub_view(check.as_deref());
        if hub.awaits_other_checks {
            // A worker's time to admit begins when something can be created there.
            self.state.nominated_at = self.ctx.now;
            hub.nominated_at = engine_time(self.ctx.now);
        }
        // A hub that was restored from a backup must not delete running work
        // (docs/reference/dispatch.md §9).
        if !hub.exists && self.breaker_holds(self.key) {
            return Vec::new();
        }
        self.shrink_placement();
        let mut copies = self.copies(&hub);
        self.apply_guarantee(&mut hub, &mut copies);
        self.follow_move(&hub, &copies);
        hub.race = self.race(&hub);
        hub.race_until = self.race_until(&hub);
        self.end_refusals(&hub, &mut copies);
        self.await_names(&mut hub, &mut copies);
        hub.drained_at = self.drained_at(&hub);
        hub.start_awaited_since = self.start_awaited_since(&hub, &copies);
        hub.end_awaited_since = self.end_awaited_since(&hub, &copies);
        hub.newer_copy_until = self.newer_copy_until(&hub, &copies);
        let highest = copies.iter().filter_map(RemoteCopy::newest_epoch).max().unwrap_or(0);
        self.state.highest_epoch = self.state.highest_epoch.max(highest);
        let timeouts = self.timeouts();
        let steps = dispatch_workload::decide(&hub, &copies, &timeouts, engine_time(self.ctx.now));
        tracing::trace!(workload = %self.key, ?hub, ?copies, ?steps, "dispatch");
        let message = self.fence_message(&hub, check.as_deref());
        let reclaim = self.reclaim(&hub, &copies);
        let effects = steps.into_iter().filter_map(|step| self.take_step(step));
        effects.chain(reclaim).chain(message).collect()
    }

    /// The timeouts under the policy of the Workload.
    fn timeouts(&self) -> DispatchTimeouts {
        let fleet = self.inputs.registry.fleet();
        let lost_after = self.multikueue_config().and_then(|config| fleet.lost_after(config));
        self.config.timeouts(lost_after)
    }

    /// The clusters that may be nominated now, if they race.
    fn race(&mut self, hub: &LocalWorkload) -> Option<Vec<ClusterId>> {
        if !self.config.dispatcher.races() && !self.races_without_reports(hub) {
            return None;
        }
        let is_open = hub.quota_reserved && hub.check == DispatchCheckState::Pending;
        let mut race = self.clusters_that_race(hub).filter(|_| is_open).unwrap_or_default();
        self.inputs.siblings(self.key).keep_together(&mut race);
        // Clusters with a report may have room by now, and without any the Workload waits for room in its queue.
        let ends = race.clusters.is_empty() && hub.nominated_clusters.is_empty();
        if ends && !self.config.dispatcher.races() && !self.races_blind() {
            return None;
        }
        if is_open && hub.recorded_cluster.is_none() {
            self.remember_queued(hub);
            self.join_move(hub, &mut race);
        }
        self.state.awaits_clusters = race.incomplete;
        if let Some(until) = race.until {
            self.ctx.agenda.at(timestamp(until), Reevaluation::Workload(self.key.clone()));
        }
        self.racing = Some(race.clusters.clone());
        Some(race.clusters)
    }

    /// Whether clusters race because nothing is known of their capacity. A race goes on when it is known again; a Workload that
    /// was nominated for one cluster by its report stays with that.
    fn races_without_reports(&mut self, hub: &LocalWorkload) -> bool {
        let fleet = self.inputs.registry.fleet();
        let waits = || self.inputs.workloads.id_of(self.key).is_some_and(|id| fleet.is_racing(id));
        let races = match hub.nominated_clusters.as_slice() {
            [] => hub.recorded_cluster.is_none() && (self.races_blind() || waits()),
            // Whether a cluster reports is not known while it is not reached.
            [single] => fleet.is_unreported(*single) || self.state.races && !fleet.reports(*single),
            _ => true,
        };
        self.state.races = races;
        races
    }

    fn races_blind(&self) -> bool {
        let hub = (self.inputs.scheduler, self.inputs.registry.fleet());
        let record = self.inputs.workloads.get(self.key);
        record.is_some_and(|record| races_blind(record, hub, engine_time(self.ctx.now)))
    }

    /// The request of the Workload to a cluster.
    pub(super) fn request(&self) -> Option<&'a WorkloadRequest> {
        let id = self.inputs.workloads.id_of(self.key)?;
        self.inputs.scheduler.request(id).map(|request| &**request)
    }

    pub(super) fn races_beside_reports(&self) -> bool {
        let config = self.multikueue_config().unwrap_or_default();
        self.inputs.registry.fleet().races_beside_reports(config, self.config.dispatcher)
    }

    /// Beside clusters that report, a race ends when the queues have had the time of a round: the quota could serve others.
    fn race_until(&self, hub: &LocalWorkload) -> Option<Time> {
        // A slice that extends another one has no other cluster, and a worker may have finished that one for it.
        let ends = hub.race.is_some()
            && self.races_beside_reports()
            && hub.predecessor == SlicePredecessor::Absent;
        ends.then(|| Time(hub.nominated_at.0.saturating_add(ROUND)))
    }

    fn clusters_that_race(&self, hub: &LocalWorkload) -> Option<ClusterRace> {
        let record = self.inputs.workloads.get(self.key)?;
        let config = self.multikueue_config()?;
        let request = self.inputs.scheduler.request(record.id()?)?;
        let fleet = self.inputs.registry.fleet();
        let nominated = Nominated { clusters: &hub.nominated_clusters, at: hub.nominated_at };
        let (dispatcher, now) = (self.config.dispatcher, engine_time(self.ctx.now));
        let mut race = match self.extended_cluster() {
            Some(cluster) => fleet.extension_race((config, request), cluster, now),
            None => fleet.race((config, request), dispatcher, nominated, now),
        };
        // Upstream's dispatchers know no bindings.
        if dispatcher == Dispatcher::Capacity {
            keep_bound(&mut race, record, (self.inputs.scheduler, fleet));
        }
        Some(race)
    }

    /// When running work is withdrawn from the recorded worker.
    fn drained_at(&self, hub: &LocalWorkload) -> Option<Time> {
        let config = self.multikueue_config()?;
        self.inputs.registry.fleet().drain_deadline(config, hub.recorded_cluster?)
    }

    /// Since when this process has seen that the recorded worker does not start the jobs.
    fn start_awaited_since(&mut self, hub: &LocalWorkload, copies: &[RemoteCopy]) -> Option<Time> {
        let recorded = copies.iter().find(|copy| Some(copy.cluster) == hub.recorded_cluster);
        let awaits = recorded.is_some_and(|copy| copy.awaits_start(&hub.job));
        let since = awaits.then(|| self.state.start_awaited_since.unwrap_or(self.ctx.now));
        self.state.start_awaited_since = since;
        since.map(engine_time)
    }

    /// Since when this process has seen a finished clone on the recorded worker, while a copy of its job may be there.
    fn end_awaited_since(&mut self, hub: &LocalWorkload, copies: &[RemoteCopy]) -> Option<Time> {
        let recorded = copies.iter().find(|copy| Some(copy.cluster) == hub.recorded_cluster);
        let awaits = recorded.is_some_and(RemoteCopy::awaits_end);
        let since = awaits.then(|| self.state.end_awaited_since.unwrap_or(self.ctx.now));
        self.state.end_awaited_since = since;
        since.map(engine_time)
    }

    /// Until when a copy of a higher epoch may be that of a Workload which this process observes late.
    fn newer_copy_until(&mut self, hub: &LocalWorkload, copies: &[RemoteCopy]) -> Option<Time> {
        let newer = copies.iter().any(|copy| copy.newest_epoch() > Some(hub.epoch));
        let known = self.inputs.workloads.get(self.key).is_some();
        self.state.newer_copy_until(newer && known, self.ctx.now).map(engine_time)
    }

    fn hub_view(&mut self, check: Option<&str>) -> LocalWorkload {
        let jobs = jobs_of(self.key, self.inputs.workloads, self.inputs.jobs);
        let Some(record) = self.inputs.workloads.get(self.key) else {
            return self.hub_view_of_orphan(&jobs);
        };
        let memory = (&*self.state, self.hub.0.began_at);
        let jobs = (&*jobs, self.inputs.jobs);
        let mut hub = hub_view(record, (check, jobs), memory, self.inputs.registry.fleet_mut());
        if is_of_elastic_job(record.object()) {
            self.add_slices(record.object(), &mut hub);
        }
        self.check_nominations(&mut hub);
        hub
    }

    /// The MultiKueueConfig of the ClusterQueue where the Workload has quota.
    pub(super) fn multikueue_config(&self) -> Option<&'a str> {
        let record = self.inputs.workloads.get(self.key)?;
        let admission = record.object().status.admission.as_ref()?;
        self.inputs.scheduler.multikueue_config(&admission.cluster_queue)
    }

    /// A Workload that does not exist has nothing, unless its job has lost it by force.
    fn hub_view_of_orphan(&mut self, jobs: &[HubJob<'_>]) -> LocalWorkload {
        let orphan = self.inputs.jobs.orphan_of(self.key).filter(|_| !jobs.is_empty());
        let Some(orphan) = orphan else {
            return LocalWorkload::default();
        };
        // After a restart the nomination is unknown, and any worker may have a copy.
        let names = match orphan.clusters.is_empty() {
            false => orphan.clusters.clone(),
            true => self.every_worker(),
        };
        let fleet = self.inputs.registry.fleet_mut();
        let ids: Vec<ClusterId> = names.iter().map(|name| fleet.cluster(name)).collect();
        orphan_view((jobs, self.inputs.jobs), ids)
    }

    fn every_worker(&self) -> Vec<Box<str>> {
        let registered = self.inputs.registry.names().map(Into::into);
        let all: BTreeSet<Box<str>> = registered.chain(self.workers.names()).collect();
        all.into_iter().collect()
    }

    /// Every cluster that matters to a Workload, in the order of names.
    fn copies(&self, hub: &LocalWorkload) -> Vec<RemoteCopy> {
        // Without quota every copy is to be removed, whatever its spec is.
        let record = self.inputs.workloads.get(self.key).filter(|_| hub.quota_reserved);
        let expected = record.and_then(|one| expected_spec(one.object()));
        let hub_jobs = jobs_of(self.key, self.inputs.workloads, self.inputs.jobs);
        let chosen = self.chosen_clusters(hub);
        let writes = self.ctx.outbox.writes();
        let on_hub = self.inputs.workloads.get(self.key);
        let siblings = self.inputs.siblings(self.key);
        let is_needed = |set: &JobKey, cluster: &str| siblings.need(set, cluster);
        let gates = self.inputs.jobs.gates();
        let requests = self.inputs.jobs.role_requests(self.inputs.scheduler.index());
        let is_held =
            |job: &JobObject| on_hub.is_some_and(|one| is_held(job, one.object(), requests, gates));
        let copy_inputs = CopyInputs {
            is_needed: &is_needed,
            is_held: &is_held,
            heirs: self.inputs.heirs(),
            hub,
            hub_jobs: &hub_jobs,
            expected: expected.as_ref(),
            gates,
            incarnation: self.hub.0,
            pod_sets: on_hub.map(|record| record.object().spec.pod_sets.as_slice()),
            present: on_hub.and_then(present_workload),
            departed: self.departed(self.key),
            writes,
            now: self.ctx.now,
        };
        let chosen_workers = chosen.iter().filter_map(|cluster| self.worker(*cluster));
        let holders = self.workers.concerned(self.key, writes).map(|(_, worker)| worker);
        let concerned: BTreeMap<&str, &Worker> =
            holders.chain(chosen_workers).map(|worker| (worker.name(), worker)).collect();
        let registry = &self.inputs.registry;
        let (lost_after, now) = (self.timeouts().worker_lost_timeout, self.ctx.now);
        let lost_since = |name: &str| self.workers.lost_since(name, lost_after, now);
        let mut copies: Vec<RemoteCopy> = concerned
            .into_values()
            .map(|worker| {
                let leases = self.leases.grants.state(worker.name());
                let lost_since = lost_since(worker.name());
                RemoteCopy {
                    cleanup_confirmed: worker
                        .breaker
                        .is_confirmed(registry.is_cleanup_confirmed(worker.name())),
                    ..copy_view((worker, lost_since, &leases), self.key, &copy_inputs)
                }
            })
            .collect();
        let known: BTreeSet<ClusterId> = copies.iter().map(|copy| copy.cluster).collect();
        let unknown = chosen.difference(&known);
        // A worker that was down before this process began times out as well
        // (docs/reference/multikueue.md §2.8).
        let fleet = registry.fleet();
        let since = |cluster| lost_since(fleet.name(cluster)).unwrap_or(now);
        copies.extend(unknown.map(|cluster| RemoteCopy {
            lease: self.leases.grants.state(fleet.name(*cluster)).lease,
            ..unknown_cluster(*cluster, since(*cluster))
        }));
        copies
    }

    /// The clusters that may have a copy for all that the Workload says: the nominated and the recorded one. With a Ready check and no
    /// recorded cluster it may be any of its configuration, also one that is not listed yet.
    fn chosen_clusters(&self, hub: &LocalWorkload) -> BTreeSet<ClusterId> {
        let fleet = self.inputs.registry.fleet();
        let is_unrecorded =
            hub.check == DispatchCheckState::Ready && hub.recorded_cluster.is_none();
        let config = self.multikueue_config().filter(|_| is_unrecorded);
        let any = config.into_iter().flat_map(|config| fleet.clusters_of(config));
        let any = any.filter_map(|name| fleet.find(name));
        hub.nominated_clusters.iter().chain(&hub.recorded_cluster).copied().chain(any).collect()
    }

    /// Takes one step. Returns what it means for the hub.
    fn take_step(&mut self, step: DispatchStep) -> Option<DispatchEffect> {
        let propose = |transition| Some(DispatchEffect::Propose(transition));
        match step {
            DispatchStep::Nominate if self.racing.is_some() => return self.nominate_all(),
            DispatchStep::Nominate => return self.nominate(),
            DispatchStep::CreateClone(cluster) => self.create_clone(cluster),
            DispatchStep::CreateJobs(cluster) => self.create_jobs(cluster),
            DispatchStep::DeleteJobs(cluster) => self.delete_jobs(cluster),
            DispatchStep::DeleteMembers(cluster) => self.delete_members(cluster),
            DispatchStep::DeleteClone(cluster) => {
                let worker = self.worker(cluster)?;
                worker_writes::delete_clone(worker, self.key, self.ctx);
            }
            DispatchStep::PushPriority(cluster) => {
                let (worker, record) =
                    (self.worker(cluster)?, self.inputs.workloads.get(self.key)?);
                worker_writes::push_priority(worker, (self.key, record.object()), self.ctx);
            }
            DispatchStep::PushSize(cluster) => self.push_size(cluster),
            DispatchStep::OpenPreemptionGate(cluster) => self.open_preemption_gate(cluster),
            DispatchStep::ConfirmVersion => {
                let (term, exactly_once) = (self.hub.0.term, self.leases.exactly_once);
                return Some(DispatchEffect::ConfirmVersion { term, exactly_once });
            }
            DispatchStep::Stamp(cluster) => self.push_stamp(cluster),
            DispatchStep::SyncStatus(cluster) => {
                return self.sync_status(cluster);
            }
            DispatchStep::AdoptResult(cluster) => return self.adopt_result(cluster),
            DispatchStep::ClearActivePods => return self.idle(),
            DispatchStep::RaiseEpoch(epoch) => return Some(DispatchEffect::RaiseEpoch(epoch)),
            DispatchStep::WaitUntil(at) => {
                self.ctx.agenda.at(timestamp(at), Reevaluation::Workload(self.key.clone()));
            }
            DispatchStep::SetCheckReady(cluster) => {
                self.place_winner(cluster);
                let name = self.inputs.registry.fleet().name(cluster).into();
                return propose(Transition::CheckReady(name));
            }
            DispatchStep::Finish { reason, message, without_end } => {
                if let Some(cluster) = without_end {
                    self.announce_open_jobs(cluster, (&reason, &message));
                }
                let (reason, message) = (reason.into(), message.into());
                return propose(Transition::Finish { reason, message });
            }
            DispatchStep::SetCheckRetry(retry) => {
                return propose(self.retry(retry));
            }
            DispatchStep::CancelNomination { cluster, why } => {
                return Some(self.unreserve(cluster, why));
            }
            DispatchStep::Withdrawn => self.withdrawn(),
        }
        None
    }

    /// Nominates the cluster that was chosen together with the quota. A process that does not know it chooses again.
    fn nominate(&mut self) -> Option<DispatchEffect> {
        let record = self.inputs.workloads.get(self.key)?;
        let admission = record.object().status.admission.as_ref()?;
        let (id, scheduler) = (record.id()?, self.inputs.scheduler);
        let placed = self.inputs.registry.fleet().placed_on(id);
        let work = admitted_work(record, admission, (scheduler, self.inputs.registry.fleet()));
        let fleet = self.inputs.registry.fleet_mut();
        let chosen = placed.or_else(|| {
            let (whole, config) = (work?, scheduler.multikueue_config(&admission.cluster_queue)?);
            let (work, extends) = extending(record.object(), whole, self.inputs.workloads);
            let only = extends.as_ref().map(|one| fleet.cluster(&one.cluster));
            let order = scheduler.queue_order(id);
            let wanted = PlacementRequest {
                workload: id,
                config,
                work: &work,
                order,
                only,
                alternative: false,
            };
            let now = engine_time(self.ctx.now);
            let cluster = fleet.choose_cluster(&wanted, now).ok()?;
            fleet.place_extending(id, cluster, (work, extends.as_ref()), now);
            fleet.set_priority(id, order.priority);
            Some(cluster)
        });
        let Some(cluster) = chosen else {
            // It waits for room in its queue, with all others, and not on quota that they could use.
            self.state.withdrawn = true;
            return Some(DispatchEffect::Unreserve(NO_CLUSTER.to_owned()));
        };
        // The admission timeout begins with the nomination.
        self.state.nominated_at = self.ctx.now;
        let name = self.inputs.registry.fleet().name(cluster).into();
        Some(DispatchEffect::Propose(Transition::Nominate(NominationChange::of([name]))))
    }

    /// A Workload that waited for the queues of clusters without reports is counted on the one that admitted it.
    fn place_winner(&mut self, cluster: ClusterId) {
        let Some(record) = self.inputs.workloads.get(self.key) else {
            return;
        };
        let (workloads, scheduler) = (self.inputs.workloads, self.inputs.scheduler);
        let fleet = self.inputs.registry.fleet_mut();
        if record.id().is_some_and(|id| fleet.is_racing(id)) {
            let hub = (scheduler, workloads, fleet);
            place_admitted(record, cluster, engine_time(self.ctx.now), hub);
        }
    }

    /// Copies the status of a worker's jobs to the hub's jobs, when the throttle allows it.
    fn sync_status(&mut self, cluster: ClusterId) -> Option<DispatchEffect> {
        let worker = self.worker(cluster)?;
        self.inputs.workloads.get(self.key)?;
        let copy_of = |job: &JobKey| worker.jobs.get(job).map(|tracked| tracked.object());
        let pairs = self.free_jobs().into_iter().filter_map(|(key, job)| {
            let copy = copy_of(&key)?;
            let after = (!job.has_status_of(copy)).then(|| job.with_remote_status(copy))?;
            Some((key, job, after))
        });
        let pairs: Vec<(JobKey, Arc<JobObject>, JobObject)> = pairs.collect();
        // What is most urgent of any job decides when all are copied.
        let news = pairs.iter().map(|(_, job, after)| StatusNews::between(&**job, after)).min()?;
        let throttle = &mut self.state.throttle;
        if let Some(until) = throttle.keep_back(news, self.ctx.now) {
            self.ctx.agenda.at(until, Reevaluation::Workload(self.key.clone()));
            return None;
        }
        throttle.copied(self.ctx.now);
        let changes = pairs
            .into_iter()
            .map(|(key, _, after)| (key, JobChange::status(Box::new(after), Purpose::SyncStatus)));
        Some(DispatchEffect::WriteJobs(changes.collect()))
    }

    /// Copies the status of jobs that have succeeded in an earlier dispatch, with an Event.
    fn adopt_result(&mut self, cluster: ClusterId) -> Option<DispatchEffect> {
        let effect = self.sync_status(cluster)?;
        let record = self.inputs.workloads.get(self.key)?;
        let cluster = self.inputs.registry.fleet().name(cluster);
        self.ctx.outbox.publish(adopted_event(record.object(), cluster));
        Some(effect)
    }

    /// The check goes back. A worker that evicted or refused the Workload is excluded for a while.
    fn retry(&mut self, retry: RetryReason) -> Transition {
        let evicted = self.evicted_on_worker(retry);
        match retry {
            // In a race the worker's queue decides when it admits the Workload again.
            RetryReason::EvictedOnWorker(_) if self.config.dispatcher.races() => {}
            RetryReason::EvictedOnWorker(cluster) | RetryReason::RefusedByWorker(cluster) => {
                self.exclude(cluster);
            }
            RetryReason::NotStarted(cluster) => {
                self.exclude_for(cluster, RefusedScope::Shape, NOT_STARTED.into());
            }
            RetryReason::RemoteLost => self.announce_left_behind(),
            // These do not speak against the cluster, so it may be chosen again at once.
            RetryReason::RemoteMissing
            | RetryReason::Drained(_)
            | RetryReason::OutOfSync(_)
            | RetryReason::NoClusterRecorded => {}
        }
        let fleet = self.inputs.registry.fleet();
        let message = retry.message(|cluster| fleet.name(cluster));
        Transition::CheckRetry(CheckRetry { message, evicted })
    }

    /// The worker that evicted the Workload, and its reason. One that refused it, or holds it no longer, has evicted nothing.
    fn evicted_on_worker(&self, retry: RetryReason) -> Option<(Box<str>, String)> {
        let RetryReason::EvictedOnWorker(cluster) = retry else { return None };
        let reason = self.worker(cluster)?.eviction(self.key)?.reason.clone();
        Some((self.inputs.registry.fleet().name(cluster).into(), reason))
    }

    fn withdrawn(&mut self) {
        // The step repeats until the release is visible, but the placement is removed once.
        if let Some(id) = self.inputs.workloads.id_of(self.key)
            && !std::mem::replace(&mut self.state.withdrawn, true)
        {
            self.exclude_after_timeout();
            self.inputs.registry.fleet_mut().unplace(id);
        }
    }

    /// The hub's jobs of the Workload that may be written.
    fn free_jobs(&self) -> Vec<(JobKey, Arc<JobObject>)> {
        let jobs = observed_jobs(self.key, self.inputs.workloads, self.inputs.jobs).into_iter();
        let free = jobs.filter(|(key, _)| self.inputs.jobs.is_free(key, self.ctx));
        free.map(|(key, job)| (key.clone(), Arc::clone(job))).collect()
    }

    /// Sets the active pods of the hub's jobs to 0.
    fn idle(&self) -> Option<DispatchEffect> {
        let idle = self.free_jobs().into_iter().filter_map(|(key, job)| {
            let after = Box::new(self.inputs.jobs.refused_clears.with_idle_status(&key, &job)?);
            Some((key, JobChange::status(after, Purpose::Idle)))
        });
        let changes: Vec<(JobKey, JobChange)> = idle.collect();
        (!changes.is_empty()).then_some(DispatchEffect::WriteJobs(changes))
    }

    /// Publishes an Event about a Workload that moves away from an unregistered worker, once.
    fn announce_left_behind(&mut self) {
        let record = self.inputs.workloads.get(self.key);
        let Some(record) = record.filter(|one| one.phase().holds_quota()) else {
            return;
        };
        let workload = record.object();
        let cluster = workload.status.cluster_name.as_deref();
        let unregistered = cluster.filter(|name| !self.inputs.registry.is_registered(name));
        // The step repeats until the check is written; the first time publishes the Event.
        if let Some(cluster) = unregistered.filter(|_| !record.transitions().retries_check()) {
            let event = unregistered::workload_event(self.key, workload, cluster);
            self.ctx.outbox.publish(event);
        }
    }

    /// The uid of the last Workload of a name that was observed to be deleted.
    pub(super) fn departed(&self, key: &Key) -> Option<&'a str> {
        self.hub.1.get(key).map(|uid| &**uid)
    }

    /// Whether copies of a Workload that the hub does not have must stay.
    pub(super) fn breaker_holds(&self, key: &Key) -> bool {
        let history = (self.hub.0, self.departed(key));
        breaker_holds(self.workers, key, history, self.inputs.registry, self.ctx)
    }

    pub(super) fn worker(&self, cluster: ClusterId) -> Option<&'a Worker> {
        self.workers.get(cluster, self.inputs.registry)
    }
}
