//! One evaluation of a Workload over worker clusters: the state machine `dispatch::workload` is asked, and its steps become
//! writes on workers and effects on the hub.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use ::jobs::{GenericJob, Job, remote_objects::RemoteIdentity};
use dispatch::workload::{
    self as dispatch_workload, DispatchStep, DispatchTimeouts, LocalWorkload, RemoteCopy,
    RetryReason,
};
use engine::ids::ClusterId;
use jiff::Timestamp;
use runtime::watch::Key;

use super::{
    DispatchConfig, DispatchEffect, DispatchInputs, multikueue_check,
    orphan_cleanup::breaker_holds,
    state::DispatchState,
    status_sync::StatusNews,
    unregistered,
    view::{CopyInputs, copy_view, expected_spec, hub_view, orphan_view, unknown_cluster},
    worker::Worker,
    worker_clusters::WorkerClusters,
    worker_writes,
};
use crate::control::{
    context::Context,
    jobs::{JobChange, Jobs},
    outbox::{Purpose, after},
    time::{engine_time, timestamp},
    timers::Reevaluation,
    workloads::{TrackedWorkload, Transition, Workloads},
};

/// See the module.
pub(super) struct DispatchEvaluation<'a> {
    pub(super) key: &'a Key,
    pub(super) config: &'a DispatchConfig,
    pub(super) state: &'a mut DispatchState,
    pub(super) workers: &'a WorkerClusters,
    /// When this process began to observe anything.
    pub(super) began: Timestamp,
    pub(super) inputs: DispatchInputs<'a>,
    pub(super) ctx: &'a mut Context,
}

impl<'a> DispatchEvaluation<'a> {
    /// Decides about the copies of one Workload.
    pub(super) fn run(mut self) -> Vec<DispatchEffect> {
        let record = self.inputs.workloads.get(self.key);
        let check = record.and_then(|record| multikueue_check(record, self.inputs.scheduler));
        let writes = self.ctx.outbox.writes();
        // Copies may outlive quota and check, so the workers count as well.
        let somewhere = self.workers.concerned(self.key, writes).next().is_some();
        if !somewhere && check.is_none() && self.inputs.jobs.orphan_of(self.key).is_none() {
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
        let hub = self.hub_view(check.as_deref());
        // A hub that was restored from a backup must not delete running work
        // (docs/reference/dispatch.md §9).
        if !hub.exists && breaker_holds(self.workers, self.key, self.inputs.registry, self.ctx) {
            return Vec::new();
        }
        let copies = self.copies(&hub);
        let nanos = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        let settings = DispatchTimeouts {
            worker_lost_timeout: nanos(self.config.lost_after),
            admission_timeout: nanos(self.config.admit_within),
        };
        let steps = dispatch_workload::decide(&hub, &copies, &settings, engine_time(self.ctx.now));
        tracing::trace!(workload = %self.key, ?hub, ?copies, ?steps, "dispatch");
        let steps = steps.into_iter();
        steps.filter_map(|step| self.take_step(step)).collect()
    }

    fn hub_view(&mut self, check: Option<&str>) -> LocalWorkload {
        let job = job_of(self.key, self.inputs.workloads, self.inputs.jobs).map(|(_, job)| &**job);
        let Some(record) = self.inputs.workloads.get(self.key) else {
            return self.hub_view_of_orphan(job);
        };
        hub_view(record, (check, job), self.state, self.inputs.registry.fleet_mut())
    }

    /// A Workload that does not exist has nothing, unless its job has lost it by force.
    fn hub_view_of_orphan(&mut self, job: Option<&Job>) -> LocalWorkload {
        let (Some(job), Some(orphan)) = (job, self.inputs.jobs.orphan_of(self.key)) else {
            return LocalWorkload::default();
        };
        // After a restart the nomination is unknown, and any worker may have a copy.
        let names = match orphan.clusters.is_empty() {
            false => orphan.clusters.clone(),
            true => self.every_worker(),
        };
        let fleet = self.inputs.registry.fleet_mut();
        let ids: Vec<ClusterId> = names.iter().map(|name| fleet.cluster(name)).collect();
        orphan_view(job, ids)
    }

    fn every_worker(&self) -> Vec<Box<str>> {
        let registered = self.inputs.registry.names().map(Into::into);
        let all: BTreeSet<Box<str>> = registered.chain(self.workers.names()).collect();
        all.into_iter().collect()
    }

    /// Every cluster that matters to a Workload, in the order of names.
    fn copies(&self, hub: &LocalWorkload) -> Vec<RemoteCopy> {
        let record = self.inputs.workloads.get(self.key).filter(|_| hub.quota_reserved);
        let expected = record.and_then(|one| expected_spec(one.object()));
        let hub_job =
            job_of(self.key, self.inputs.workloads, self.inputs.jobs).map(|(_, job)| &**job);
        let chosen: BTreeSet<ClusterId> =
            hub.nominated_clusters.iter().chain(&hub.recorded_cluster).copied().collect();
        let writes = self.ctx.outbox.writes();
        let copy_inputs =
            CopyInputs { hub, hub_job, expected: expected.as_ref(), writes, now: self.ctx.now };
        let workers = self.workers.iter().map(|(_, worker)| worker);
        let concerned = workers
            .filter(|worker| chosen.contains(&worker.id) || worker.concerns(self.key, writes));
        let mut copies: Vec<RemoteCopy> =
            concerned.map(|worker| copy_view(worker, self.key, &copy_inputs)).collect();
        let known: BTreeSet<ClusterId> = copies.iter().map(|copy| copy.cluster).collect();
        let unknown = chosen.difference(&known);
        // A worker that was down before this process began times out as well
        // (docs/reference/multikueue.md §2.8).
        copies.extend(unknown.map(|cluster| unknown_cluster(*cluster, self.began)));
        copies
    }

    /// Takes one step. Returns what it means for the hub.
    fn take_step(&mut self, step: DispatchStep) -> Option<DispatchEffect> {
        let propose = |transition| Some(DispatchEffect::Propose(transition));
        match step {
            DispatchStep::CreateClone(cluster) => self.create_clone(cluster),
            DispatchStep::CreateJob(cluster) => self.create_job(cluster),
            DispatchStep::DeleteJob(cluster) => {
                let worker = self.worker(cluster)?;
                worker_writes::delete_job(worker, self.key, self.ctx);
            }
            DispatchStep::DeleteClone(cluster) => {
                let worker = self.worker(cluster)?;
                worker_writes::delete_clone(worker, self.key, self.ctx);
            }
            DispatchStep::SyncStatus(cluster) => {
                return self.sync_status(cluster);
            }
            DispatchStep::ClearActivePods => return self.idle(),
            DispatchStep::RaiseEpoch => return Some(DispatchEffect::RaiseEpoch),
            DispatchStep::WaitUntil(at) => {
                self.ctx.agenda.at(timestamp(at), Reevaluation::Workload(self.key.clone()));
            }
            DispatchStep::SetCheckReady(cluster) => {
                let name = self.inputs.registry.fleet().name(cluster).into();
                return propose(Transition::CheckReady(name));
            }
            DispatchStep::Finish { reason, message } => {
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

    fn create_clone(&mut self, cluster: ClusterId) {
        let Some(record) = self.inputs.workloads.get(self.key) else {
            return;
        };
        let Some(worker) = self.worker(cluster) else {
            return;
        };
        let workload = record.object();
        let mark = RemoteIdentity { origin: &self.config.origin, epoch: index::epoch(workload) };
        let clone = (self.key, &**workload);
        // Until an answer or a list settles it, a create counts as something that can run
        // (docs/reference/dispatch.md §6).
        if worker_writes::create_clone(worker, clone, (self.inputs.flavors, mark), self.ctx) {
            self.state.sent = true;
        }
    }

    fn create_job(&mut self, cluster: ClusterId) {
        let Some(record) = self.inputs.workloads.get(self.key) else {
            return;
        };
        let workload = record.object();
        let Some((job_key, job)) = self.inputs.jobs.of(self.key, workload) else {
            return;
        };
        let Some(worker) = self.worker(cluster) else {
            return;
        };
        let mark = RemoteIdentity { origin: &self.config.origin, epoch: index::epoch(workload) };
        let (workload, job) = ((self.key, &**workload), (job_key, &**job));
        worker_writes::create_job(
            worker,
            workload,
            job,
            (mark, self.inputs.jobs.gates()),
            self.ctx,
        );
        self.state.sent = true;
    }

    /// Copies the status of a worker's job to the hub's job, when the throttle allows it.
    fn sync_status(&mut self, cluster: ClusterId) -> Option<DispatchEffect> {
        let (job_key, job) = self.free_job()?;
        let worker = self.worker(cluster)?;
        let copy = Arc::clone(worker.jobs.get(worker.job_of(self.key)?)?.object());
        self.inputs.workloads.get(self.key)?;
        let news = StatusNews::between(&*job, &*copy);
        let throttle = &mut self.state.throttle;
        if let Some(until) = throttle.keep_back(news, self.ctx.now) {
            self.ctx.agenda.at(until, Reevaluation::Workload(self.key.clone()));
            return None;
        }
        throttle.copied(self.ctx.now);
        let after = Box::new(job.with_remote_status(&copy));
        let change = JobChange::status(after, Purpose::SyncStatus);
        Some(DispatchEffect::WriteJob(job_key, change))
    }

    /// The check goes back. A worker that evicted or refused the Workload is excluded for a while.
    fn retry(&mut self, retry: RetryReason) -> Transition {
        match retry {
            RetryReason::EvictedOnWorker(cluster) | RetryReason::RefusedByWorker(cluster) => {
                self.exclude(cluster);
            }
            RetryReason::RemoteLost => self.announce_left_behind(),
            // These do not speak against the cluster, so it may be chosen again at once.
            RetryReason::RemoteMissing
            | RetryReason::OutOfSync(_)
            | RetryReason::NoClusterRecorded => {}
        }
        let fleet = self.inputs.registry.fleet();
        Transition::CheckRetry(retry.message(|cluster| fleet.name(cluster)))
    }

    fn exclude(&mut self, cluster: ClusterId) {
        let worker = self.worker(cluster);
        let (Some(worker), Some(record)) = (worker, self.inputs.workloads.get(self.key)) else {
            return;
        };
        let epoch = index::epoch(record.object());
        let evicted =
            || format!("evicted there: {}", worker.eviction(self.key).unwrap_or_default());
        let why = worker.refusal(self.key, epoch).map_or_else(evicted, str::to_owned);
        let until = engine_time(after(self.ctx.now, self.config.exclude_for));
        self.inputs.registry.fleet_mut().exclude_cluster(record.id(), cluster, until, why.into());
    }

    /// The reservation ends, and the cluster is excluded for a while.
    fn unreserve(&mut self, cluster: ClusterId, why: Box<str>) -> DispatchEffect {
        let until = engine_time(after(self.ctx.now, self.config.exclude_for));
        let fleet = self.inputs.registry.fleet_mut();
        let name = fleet.name(cluster);
        let message = format!("worker cluster \"{name}\" did not take it: {why}");
        if let Some(record) = self.inputs.workloads.get(self.key) {
            // A nomination is cancelled only after no job is left (`CancelNomination`).
            fleet.unplace(record.id());
            fleet.exclude_cluster(record.id(), cluster, until, why);
            self.state.withdrawn = true;
        }
        DispatchEffect::Unreserve(message)
    }

    fn withdrawn(&mut self) {
        // The step repeats until the release is visible, but the placement is removed once.
        if let Some(record) = self.inputs.workloads.get(self.key)
            && !std::mem::replace(&mut self.state.withdrawn, true)
        {
            self.inputs.registry.fleet_mut().unplace(record.id());
        }
    }

    /// The hub's job of the Workload, if it may be written.
    fn free_job(&self) -> Option<(Key, Arc<Job>)> {
        let (key, job) = job_of(self.key, self.inputs.workloads, self.inputs.jobs)?;
        self.inputs.jobs.is_free(key, self.ctx).then(|| (key.clone(), Arc::clone(job)))
    }

    /// Sets the active pods of the hub's job to 0.
    fn idle(&self) -> Option<DispatchEffect> {
        let (key, job) = self.free_job()?;
        let after = Box::new(job.with_idle_status()?);
        Some(DispatchEffect::WriteJob(key, JobChange::status(after, Purpose::Idle)))
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

    fn worker(&self, cluster: ClusterId) -> Option<&'a Worker> {
        self.workers.get(cluster, self.inputs.registry)
    }
}

/// Why a Workload with quota and without a cluster cannot be dispatched at all.
fn undispatchable(key: &Key, record: &TrackedWorkload, jobs: &Jobs) -> Option<String> {
    let workload = record.object();
    // With a recorded cluster the Workload was dispatched already, and its copies must be followed.
    if !record.phase().holds_quota() || workload.status.cluster_name.is_some() {
        return None;
    }
    jobs.undispatchable(key, workload)
}

/// The hub's job of a Workload, which may be gone already.
fn job_of<'a>(key: &Key, workloads: &Workloads, jobs: &'a Jobs) -> Option<(&'a Key, &'a Arc<Job>)> {
    match workloads.get(key) {
        Some(record) => jobs.of(key, record.object()),
        None => jobs.get(&jobs.orphan_of(key)?.job),
    }
}
