//! Dispatch to worker clusters: what each worker has of ours, and the copies of every Workload (MultiKueue).
//!
//! Inputs: connections and watches of workers, Workload changes, and answers of workers. The state machine of one Workload
//! over clusters is `dispatch::workload`; its steps become writes on workers, and [`DispatchEffect`]s for the machines of the hub.
//!
//! | file | concept |
//! |---|---|
//! | `worker`, `copies`, `naming` | one worker: connection, clones and jobs, which job names which clone |
//! | `state` | what is remembered of a Workload's dispatch |
//! | `view` | the input of the state machine |
//! | `worker_writes` | creates and deletes of copies |
//! | `status_sync` | when a copy's status is written to the hub's job |
//! | `breaker` | orphan cleanup, and when it stops for a user |
//! | `unregistered` | Events about workers without a MultiKueueCluster |
//! | `report_copies`, `label_keys` | capacity reports on the hub, and the labels that workers report by |

mod breaker;
mod copies;
mod label_keys;
mod naming;
mod report_copies;
mod state;
mod status_sync;
mod unregistered;
mod view;
mod worker;
mod worker_writes;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use ::jobs::{GenericJob, Job, pod_sets_info::FlavorsByName, remote_objects::RemoteIdentity};
use crds::v1beta2::{Workload, WorkloadSpec};
use dispatch::{
    AssignedWorkload, find_orphans,
    workload::{
        self as dispatch_workload, DispatchStep, DispatchTimeouts, LocalWorkload, RemoteCopy,
        RetryReason,
    },
};
use engine::ids::{ClusterId, WorkloadId};
use jiff::Timestamp;
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

use self::{
    state::DispatchState,
    status_sync::StatusNews,
    view::{CopyInputs, copy_view, expected_spec, hub_view, orphan_view, unknown_cluster},
    worker::Worker,
};
use super::{
    context::Context,
    fleet::{ActiveCondition, FleetRegistry},
    input::Connection,
    jobs::{JobChange, Jobs},
    outbox::{Destination, Purpose, Subject, Ticket, UNCONFIRMED_FOR, after},
    scheduling::Scheduler,
    time::{engine_time, timestamp},
    timers::Reevaluation,
    workloads::{Phase, Transition, WorkloadChange, WorkloadRecord, Workloads},
};

/// What dispatch is configured with.
#[derive(Clone, Debug)]
pub(crate) struct DispatchConfig {
    /// Written on every copy.
    pub(crate) origin: String,
    /// After this time without a connection a worker's Workloads may start elsewhere.
    pub(crate) lost_after: Duration,
    /// How often workers are compared with the hub; never if unset.
    pub(crate) gc_interval: Option<Duration>,
    /// How long a nominated worker may take to admit a clone.
    pub(crate) admit_within: Duration,
    /// How long a worker that did not take a Workload is excluded.
    pub(crate) exclude_for: Duration,
}

/// What decides beside the copies.
pub(crate) struct DispatchInputs<'a> {
    pub(crate) workloads: &'a Workloads,
    pub(crate) jobs: &'a Jobs,
    pub(crate) registry: &'a mut FleetRegistry,
    pub(crate) scheduler: &'a Scheduler,
    pub(crate) flavors: &'a FlavorsByName,
}

/// What a step of a Workload's dispatch means for the hub.
#[derive(Debug)]
pub(crate) enum DispatchEffect {
    /// Part of the next status.
    Propose(Transition),
    /// The reservation ends: no worker took the Workload. With the message.
    Unreserve(String),
    /// The next epoch is written.
    RaiseEpoch,
    /// The status of the hub's job is written.
    WriteJob(Key, JobChange),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct MultiKueue {
    config: DispatchConfig,
    workers: BTreeMap<Box<str>, Worker>,
    states: BTreeMap<Key, DispatchState>,
    /// When workers are compared with the hub next.
    garbage_collection_at: Option<Timestamp>,
    /// When this process began to observe anything.
    began: Option<Timestamp>,
    /// Unregistered workers that an Event was published about.
    announced: BTreeSet<Box<str>>,
}

impl MultiKueue {
    pub(crate) fn new(config: DispatchConfig) -> Self {
        Self {
            config,
            workers: BTreeMap::new(),
            states: BTreeMap::new(),
            garbage_collection_at: None,
            began: None,
            announced: BTreeSet::new(),
        }
    }

    /// Records when this process began to observe anything.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.began.get_or_insert(now);
    }

    // ---- Connections and watches of workers ----

    /// Records the state of a connection. Returns whether anything about it changed.
    pub(crate) fn connection_changed(
        &mut self,
        name: &str,
        connection: Connection,
        registry: &mut FleetRegistry,
        ctx: &mut Context,
    ) -> bool {
        let worker = self.worker_mut(name, registry, ctx.now);
        if *worker.connection() == connection {
            return false;
        }
        let (active, reason) = (connection.active, connection.reason);
        if worker.set_connection(connection, ctx.now) {
            // A write in flight may still be applied, whatever becomes of the connection.
            ctx.outbox.writes_mut().drop_settled(name, ctx.now);
            tracing::info!(cluster = name, active, reason, "worker");
        }
        registry.set_connected(name, active);
        ctx.agenda.now(Reevaluation::Clusters);
        ctx.agenda.now(Reevaluation::LabelKeys);
        true
    }

    /// Records a change of clones on a worker.
    pub(crate) fn clones_changed(
        &mut self,
        name: &str,
        change: Change<Workload>,
        (workloads, registry): (&Workloads, &mut FleetRegistry),
        ctx: &mut Context,
    ) {
        let worker = self.worker_mut(name, registry, ctx.now);
        for key in worker.clones.observe(change) {
            ctx.outbox.writes_mut().observed(&worker.target(Subject::Workload, &key));
            if let (Some(record), Some(clone)) = (workloads.get(&key), worker.clones.get(&key)) {
                registry.fleet_mut().clone_created(record.id(), clone.version());
            }
            ctx.agenda.now(Reevaluation::Workload(key));
        }
    }

    /// Records a change of jobs on a worker.
    pub(crate) fn jobs_changed(
        &mut self,
        name: &str,
        change: Change<Job>,
        (jobs, registry): (&Jobs, &mut FleetRegistry),
        ctx: &mut Context,
    ) {
        let worker = self.worker_mut(name, registry, ctx.now);
        for key in worker.jobs.observe(change) {
            ctx.outbox.writes_mut().observed(&worker.target(Subject::Job, &key));
            ctx.agenda.workloads(worker.job_observed(&key, jobs.gates()));
        }
    }

    /// Records a change of a worker's report.
    pub(crate) fn report_changed(
        &mut self,
        name: &str,
        change: Change<crds::v1alpha1::ClusterCapacity>,
        (scheduler, registry): (&mut Scheduler, &mut FleetRegistry),
        ctx: &mut Context,
    ) {
        self.worker_mut(name, registry, ctx.now).observe_capacity(change);
        self.read_report(name, scheduler, registry, ctx);
    }

    /// The process gave a connection up: it neither is connected nor tries to be.
    pub(crate) fn connection_given_up(
        &mut self,
        name: &str,
        registry: &FleetRegistry,
        ctx: &mut Context,
    ) {
        let n_workloads = self.workers.get(name).map_or(0, Worker::n_workloads);
        if n_workloads > 0 && !registry.is_registered(name) {
            self.announce_unregistered(name, n_workloads, ctx);
        }
    }

    /// Whether a worker is connected.
    pub(crate) fn is_connected(&self, name: &str) -> bool {
        self.workers.get(name).is_some_and(|worker| worker.connection().active)
    }

    /// The condition of a MultiKueueCluster; `None` if its worker was never tried.
    pub(crate) fn active_condition(&self, name: &str, confirmed: bool) -> Option<ActiveCondition> {
        let worker = self.workers.get(name).filter(|one| !one.connection().reason.is_empty())?;
        let Connection { active, reason, message } = worker.connection();
        let asks = worker.breaker.is_tripped() && !confirmed && *active;
        let message = if asks { worker.breaker.message(message) } else { message.clone() };
        Some(ActiveCondition { status: *active, reason, message })
    }

    /// A MultiKueueCluster was created, changed or deleted.
    pub(crate) fn registration_changed(&mut self, name: &str, ctx: &mut Context) {
        self.announced.remove(name);
        // A user may have confirmed a cleanup.
        for worker in self.workers.values_mut().filter(|worker| worker.breaker.is_tripped()) {
            let named = worker.named_clones().map(|(clone, _)| clone);
            ctx.agenda.workloads(worker.clones.keys().chain(named).cloned());
        }
    }

    /// Unregistered workers that have nothing of ours and cannot get anything.
    pub(crate) fn clean_workers(
        &self,
        registry: &FleetRegistry,
        ctx: &Context,
    ) -> BTreeSet<Box<str>> {
        let unregistered = self.workers.iter().filter(|(name, _)| !registry.is_registered(name));
        let clean =
            unregistered.filter(|(_, worker)| worker.is_clean(ctx.outbox.writes(), ctx.now));
        clean.map(|(name, _)| name.clone()).collect()
    }

    /// Publishes an Event for each unregistered worker that Workloads hold quota on. Called once, when everything was listed.
    pub(crate) fn announce_unregistered_workers(
        &mut self,
        workloads: &Workloads,
        registry: &FleetRegistry,
        ctx: &mut Context,
    ) {
        let workers =
            unregistered::unregistered_workers(workloads, |name| registry.is_registered(name));
        let n_more = workers.len().saturating_sub(unregistered::MAX_EVENTS);
        for (name, n_workloads) in workers.into_iter().take(unregistered::MAX_EVENTS) {
            self.announce_unregistered(&name, n_workloads, ctx);
        }
        if n_more > 0 {
            tracing::warn!(n_more, "copies on further unregistered workers are left behind");
        }
    }

    // ---- Workloads ----

    /// Takes a change of a Workload.
    pub(crate) fn workload_changed(&mut self, change: &WorkloadChange, now: Timestamp) {
        let key = &change.key;
        if change.after.is_none() {
            self.states.remove(key);
            self.workers.values_mut().for_each(|worker| worker.forget_refusal(key));
        } else if change.releases_quota() {
            self.states.insert(key.clone(), DispatchState::fresh(now));
        } else {
            self.state_mut(key, now);
        }
    }

    /// The engine reserved quota: copies are made from scratch.
    pub(crate) fn reserved(&mut self, key: &Key, now: Timestamp) {
        self.states.insert(key.clone(), DispatchState::fresh(now));
    }

    /// The next epoch is written.
    pub(crate) fn epoch_raised(&mut self, key: &Key, now: Timestamp) {
        self.state_mut(key, now).epoch_raised = true;
    }

    /// Whether nothing of a Workload runs on any worker.
    pub(crate) fn is_withdrawn(&self, key: &Key) -> bool {
        self.states.get(key).is_some_and(|state| state.withdrawn)
    }

    /// Counts a new Workload that holds quota on a worker there, as after a restart.
    pub(crate) fn recover_placement(
        &self,
        record: &WorkloadRecord,
        inputs: &mut DispatchInputs<'_>,
    ) {
        let status = &record.object().status;
        let cluster = status.cluster_name.as_ref().or(status.nominated_cluster_names.first());
        let (Some(cluster), Some(admission)) = (cluster, &status.admission) else {
            return;
        };
        let fleet = inputs.registry.fleet_mut();
        if !record.phase().holds_quota() || fleet.placed_on(record.id()).is_some() {
            return;
        }
        if let Some(request) = inputs.scheduler.request(record.id()) {
            let assigned = inputs.scheduler.admitted_pod_sets(admission);
            let work = Arc::new(AssignedWorkload { request: Arc::clone(request), assigned });
            let cluster = fleet.cluster(cluster);
            fleet.place(record.id(), cluster, work, record.started_at());
        }
    }

    /// The resourceVersion at which the clone of a Workload finished, on the cluster where it counts.
    pub(crate) fn finished_at(
        &self,
        key: &Key,
        id: WorkloadId,
        registry: &FleetRegistry,
    ) -> Option<u64> {
        let fleet = registry.fleet();
        let worker = self.workers.get(fleet.name(fleet.placed_on(id)?))?;
        let clone = worker.clones.get(key)?;
        let phase = Phase::of(&clone.object().status.conditions);
        (phase == Phase::Finished).then(|| clone.version())
    }

    /// Decides about the copies of one Workload.
    pub(crate) fn evaluate(
        &mut self,
        key: &Key,
        inputs: &mut DispatchInputs<'_>,
        ctx: &mut Context,
    ) -> Vec<DispatchEffect> {
        let record = inputs.workloads.get(key);
        let check = record.and_then(|record| multikueue_check(record, inputs.scheduler));
        let writes = ctx.outbox.writes();
        let somewhere = self.workers.values().any(|worker| worker.concerns(key, writes));
        if !somewhere && check.is_none() && inputs.jobs.orphan_of(key).is_none() {
            return Vec::new();
        }
        if let Some(message) = record.and_then(|record| undispatchable(key, record, inputs.jobs)) {
            self.state_mut(key, ctx.now).withdrawn = true;
            let message = format!("{message}, Previously: \"Pending\"");
            return vec![DispatchEffect::Propose(Transition::CheckRejected(message))];
        }
        let hub = self.hub_view(key, check.as_deref(), inputs, ctx.now);
        if !hub.exists && self.breaker_holds(key, inputs.registry, ctx) {
            return Vec::new();
        }
        let copies = self.copies(key, &hub, inputs, ctx);
        let nanos = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        let settings = DispatchTimeouts {
            worker_lost_timeout: nanos(self.config.lost_after),
            admission_timeout: nanos(self.config.admit_within),
        };
        let steps = dispatch_workload::decide(&hub, &copies, &settings, engine_time(ctx.now));
        tracing::trace!(workload = %key, ?hub, ?copies, ?steps, "dispatch");
        let steps = steps.into_iter();
        steps.filter_map(|step| self.take_step(key, step, inputs, ctx)).collect()
    }

    // ---- Answers ----

    /// Takes the answer to a write on a worker.
    pub(crate) fn answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        inputs: &mut DispatchInputs<'_>,
        ctx: &mut Context,
    ) {
        let Destination::Worker(name) = &ticket.target.to else {
            return;
        };
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        let (subject, key) = (ticket.target.subject, &ticket.target.key);
        let Reevaluation::Workload(workload) = &ticket.waiter else {
            return;
        };
        match answer {
            // The copy is gone, and only the watch may report it; until then it is not deleted again.
            WriteOutcome::Done(value) if copies::is_status(&value) && still_has(worker, ticket) => {
                let until = after(ctx.now, UNCONFIRMED_FOR);
                ctx.outbox.writes_mut().await_removal(ticket.target.clone(), until);
                ctx.agenda.at(until, Reevaluation::Workload(key.clone()));
            }
            WriteOutcome::Done(value) => match subject {
                Subject::Workload => worker.clones.observe_answer(key, value),
                _ => {
                    worker.jobs.observe_answer(key, value);
                    worker.job_observed(key, inputs.jobs.gates());
                }
            },
            WriteOutcome::Gone if subject == Subject::Workload => worker.clones.remove(key),
            WriteOutcome::Gone => {
                worker.jobs.remove(key);
                worker.job_observed(key, inputs.jobs.gates());
            }
            WriteOutcome::Refused { message, .. } => {
                let record = inputs.workloads.get(workload);
                let epoch = record.map_or(1, |record| index::epoch(record.object()));
                worker.refuse(workload.clone(), epoch, message);
            }
            WriteOutcome::Exists | WriteOutcome::Stale | WriteOutcome::Unknown(_) => {}
        }
        let clone = worker.clones.get(workload).filter(|_| subject == Subject::Workload);
        if let (Some(record), Some(clone)) = (inputs.workloads.get(workload), clone) {
            inputs.registry.fleet_mut().clone_created(record.id(), clone.version());
        }
    }

    /// Takes the answer to a write of a worker's ClusterCapacity.
    pub(crate) fn label_keys_answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        (scheduler, registry): (&mut Scheduler, &mut FleetRegistry),
        ctx: &mut Context,
    ) {
        let Destination::Worker(name) = &ticket.target.to else {
            return;
        };
        let capacity = self.workers.get_mut(name).and_then(Worker::capacity_mut);
        if let (Some(capacity), WriteOutcome::Done(value)) = (capacity, answer) {
            capacity.observe_answer(value);
        }
        self.read_report(name, scheduler, registry, ctx);
    }

    /// Takes the answer to a write of a report's copy on the hub.
    pub(crate) fn report_copy_answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        ctx: &mut Context,
    ) {
        if let Some(worker) = self.workers.get_mut(&ticket.target.key.name) {
            worker.report_copy.answered(answer, ctx);
        }
    }

    // ---- Reports ----

    /// Writes copies of reports that differ from what the hub shows.
    pub(crate) fn write_report_copies(&mut self, registry: &FleetRegistry, ctx: &mut Context) {
        for (name, worker) in &mut self.workers {
            // The hub's own report, if it is a worker of others, has that name.
            if **name == *crds::v1alpha1::LOCAL {
                continue;
            }
            let report = worker.capacity().map(|tracked| Arc::clone(tracked.object()));
            let owner = registry.owner_reference(name);
            worker.report_copy.evaluate(name, report.as_deref(), owner, ctx);
        }
    }

    /// Asks workers whose reports go by other labels than flavors name.
    pub(crate) fn request_label_keys(&self, flavors: &FlavorsByName, ctx: &mut Context) {
        if !ctx.agenda.take_label_keys() {
            return;
        }
        let keys = label_keys::label_keys(flavors);
        self.workers.values().for_each(|worker| label_keys::request(worker, &keys, ctx));
    }

    // ---- Orphan cleanup ----

    /// Compares a worker with the hub, after a list of either. `complete` says whether the hub was listed.
    pub(crate) fn compare(
        &mut self,
        name: &str,
        (workloads, complete): (&Workloads, bool),
        ctx: &mut Context,
    ) -> bool {
        let Some(worker) = self.workers.get_mut(name).filter(|one| one.is_listed() && complete)
        else {
            return false;
        };
        let n_on_hub = worker.breaker.is_first().then_some(workloads.len());
        let sweep = sweep(worker, workloads, n_on_hub, ctx);
        worker.breaker.compare(name, &sweep);
        ctx.agenda.now(Reevaluation::Clusters);
        true
    }

    /// Compares every worker with the hub. Returns whether any was compared.
    pub(crate) fn compare_all(
        &mut self,
        workloads: &Workloads,
        complete: bool,
        ctx: &mut Context,
    ) -> bool {
        let names: Vec<Box<str>> = self.workers.keys().cloned().collect();
        let compared = names.iter().filter(|name| self.compare(name, (workloads, complete), ctx));
        compared.count() > 0
    }

    /// Every `gcInterval`: evaluates everything that a worker has and the hub does not know.
    pub(crate) fn collect_garbage(&mut self, workloads: &Workloads, ctx: &mut Context) {
        let Some(interval) = self.config.gc_interval else {
            return;
        };
        if self.garbage_collection_at.is_some_and(|at| at > ctx.now) {
            return;
        }
        let next = after(ctx.now, interval);
        ctx.agenda.at(next, Reevaluation::GarbageCollection);
        if self.garbage_collection_at.replace(next).is_none() {
            return;
        }
        for worker in self.workers.values_mut().filter(|worker| worker.is_listed()) {
            let orphans = sweep(worker, workloads, None, ctx).orphans;
            if worker.breaker.recount(orphans.len()) {
                ctx.agenda.now(Reevaluation::Clusters);
            }
            ctx.agenda.workloads(orphans.iter().filter_map(|(name, _)| parse_key(name)));
        }
    }

    /// Whether copies of a deleted Workload must stay: the breaker of their worker has tripped and no user has confirmed.
    fn breaker_holds(&self, key: &Key, registry: &FleetRegistry, ctx: &Context) -> bool {
        let writes = ctx.outbox.writes();
        let mut concerned = self.workers.iter().filter(|(_, worker)| worker.concerns(key, writes));
        concerned.any(|(name, worker)| {
            worker.breaker.is_tripped() && !registry.is_cleanup_confirmed(name)
        })
    }

    // ---- Views and steps ----

    fn hub_view(
        &mut self,
        key: &Key,
        check: Option<&str>,
        inputs: &mut DispatchInputs<'_>,
        now: Timestamp,
    ) -> LocalWorkload {
        let job = job_of(key, inputs.workloads, inputs.jobs).map(|(_, job)| &**job);
        let Some(record) = inputs.workloads.get(key) else {
            return self.hub_view_of_orphan(key, job, inputs);
        };
        let state = self.state_mut(key, now);
        hub_view(record, (check, job), state, inputs.registry.fleet_mut())
    }

    /// A Workload that does not exist has nothing, unless its job has lost it by force.
    fn hub_view_of_orphan(
        &self,
        key: &Key,
        job: Option<&Job>,
        inputs: &mut DispatchInputs<'_>,
    ) -> LocalWorkload {
        let (Some(job), Some(orphan)) = (job, inputs.jobs.orphan_of(key)) else {
            return LocalWorkload::default();
        };
        let names = match orphan.clusters.is_empty() {
            false => orphan.clusters.clone(),
            true => self.every_worker(inputs.registry),
        };
        let fleet = inputs.registry.fleet_mut();
        let ids: Vec<ClusterId> = names.iter().map(|name| fleet.cluster(name)).collect();
        orphan_view(job, ids)
    }

    fn every_worker(&self, registry: &FleetRegistry) -> Vec<Box<str>> {
        let registered = registry.names().map(Into::into);
        let all: BTreeSet<Box<str>> = registered.chain(self.workers.keys().cloned()).collect();
        all.into_iter().collect()
    }

    /// Every cluster that matters to a Workload, in the order of names.
    fn copies(
        &self,
        key: &Key,
        hub: &LocalWorkload,
        inputs: &DispatchInputs<'_>,
        ctx: &Context,
    ) -> Vec<RemoteCopy> {
        let record = inputs.workloads.get(key).filter(|_| hub.quota_reserved);
        let expected: Option<WorkloadSpec> = record.and_then(|one| expected_spec(one.object()));
        let hub_job = job_of(key, inputs.workloads, inputs.jobs).map(|(_, job)| &**job);
        let chosen: BTreeSet<ClusterId> =
            hub.nominated_clusters.iter().chain(&hub.recorded_cluster).copied().collect();
        let writes = ctx.outbox.writes();
        let copy_inputs =
            CopyInputs { hub, hub_job, expected: expected.as_ref(), writes, now: ctx.now };
        let workers = self.workers.values();
        let concerned =
            workers.filter(|worker| chosen.contains(&worker.id) || worker.concerns(key, writes));
        let mut copies: Vec<RemoteCopy> =
            concerned.map(|worker| copy_view(worker, key, &copy_inputs)).collect();
        let known: BTreeSet<ClusterId> = copies.iter().map(|copy| copy.cluster).collect();
        let began = self.began.unwrap_or(ctx.now);
        let unknown = chosen.difference(&known);
        copies.extend(unknown.map(|cluster| unknown_cluster(*cluster, began)));
        copies
    }

    /// Takes one step. Returns what it means for the hub.
    fn take_step(
        &mut self,
        key: &Key,
        step: DispatchStep,
        inputs: &mut DispatchInputs<'_>,
        ctx: &mut Context,
    ) -> Option<DispatchEffect> {
        let propose = |transition| Some(DispatchEffect::Propose(transition));
        match step {
            DispatchStep::CreateClone(cluster) => self.create_clone(key, cluster, inputs, ctx),
            DispatchStep::CreateJob(cluster) => self.create_job(key, cluster, inputs, ctx),
            DispatchStep::DeleteJob(cluster) => {
                let worker = self.worker(cluster, inputs.registry)?;
                worker_writes::delete_job(worker, key, ctx);
            }
            DispatchStep::DeleteClone(cluster) => {
                let worker = self.worker(cluster, inputs.registry)?;
                worker_writes::delete_clone(worker, key, ctx);
            }
            DispatchStep::SyncStatus(cluster) => {
                return self.sync_status(key, cluster, inputs, ctx);
            }
            DispatchStep::ClearActivePods => return idle(key, inputs, ctx),
            DispatchStep::RaiseEpoch => return Some(DispatchEffect::RaiseEpoch),
            DispatchStep::WaitUntil(at) => {
                ctx.agenda.at(timestamp(at), Reevaluation::Workload(key.clone()));
            }
            DispatchStep::SetCheckReady(cluster) => {
                let name = inputs.registry.fleet().name(cluster).into();
                return propose(Transition::CheckReady(name));
            }
            DispatchStep::Finish { reason, message } => {
                let (reason, message) = (reason.into(), message.into());
                return propose(Transition::Finish { reason, message });
            }
            DispatchStep::SetCheckRetry(retry) => {
                return propose(self.retry(key, retry, inputs, ctx));
            }
            DispatchStep::CancelNomination { cluster, why } => {
                return Some(self.unreserve(key, (cluster, why), inputs, ctx));
            }
            DispatchStep::Withdrawn => self.withdrawn(key, inputs, ctx.now),
        }
        None
    }

    fn create_clone(
        &mut self,
        key: &Key,
        cluster: ClusterId,
        inputs: &DispatchInputs<'_>,
        ctx: &mut Context,
    ) {
        let Some(record) = inputs.workloads.get(key) else {
            return;
        };
        let Some(worker) = self.worker(cluster, inputs.registry) else {
            return;
        };
        let workload = record.object();
        let mark = RemoteIdentity { origin: &self.config.origin, epoch: index::epoch(workload) };
        let clone = (key, &**workload);
        if worker_writes::create_clone(worker, clone, (inputs.flavors, mark), ctx) {
            self.state_mut(key, ctx.now).sent = true;
        }
    }

    fn create_job(
        &mut self,
        key: &Key,
        cluster: ClusterId,
        inputs: &DispatchInputs<'_>,
        ctx: &mut Context,
    ) {
        let Some(record) = inputs.workloads.get(key) else {
            return;
        };
        let workload = record.object();
        let Some((job_key, job)) = inputs.jobs.of(key, workload) else {
            return;
        };
        let Some(worker) = self.worker(cluster, inputs.registry) else {
            return;
        };
        let mark = RemoteIdentity { origin: &self.config.origin, epoch: index::epoch(workload) };
        let (workload, job) = ((key, &**workload), (job_key, &**job));
        worker_writes::create_job(worker, workload, job, (mark, inputs.jobs.gates()), ctx);
        self.state_mut(key, ctx.now).sent = true;
    }

    /// Copies the status of a worker's job to the hub's job, when the throttle allows it.
    fn sync_status(
        &mut self,
        key: &Key,
        cluster: ClusterId,
        inputs: &DispatchInputs<'_>,
        ctx: &mut Context,
    ) -> Option<DispatchEffect> {
        let (job_key, job) = free_job_of(key, inputs, ctx)?;
        let worker = self.worker(cluster, inputs.registry)?;
        let copy = Arc::clone(worker.jobs.get(worker.job_of(key)?)?.object());
        inputs.workloads.get(key)?;
        let news = StatusNews::between(&*job, &*copy);
        let throttle = &mut self.state_mut(key, ctx.now).throttle;
        if let Some(until) = throttle.keep_back(news, ctx.now) {
            ctx.agenda.at(until, Reevaluation::Workload(key.clone()));
            return None;
        }
        throttle.copied(ctx.now);
        let after = Box::new(job.with_remote_status(&copy));
        let change = JobChange::status(after, Purpose::SyncStatus);
        Some(DispatchEffect::WriteJob(job_key, change))
    }

    /// The check goes back. A worker that evicted or refused the Workload is excluded for a while.
    fn retry(
        &mut self,
        key: &Key,
        retry: RetryReason,
        inputs: &mut DispatchInputs<'_>,
        ctx: &mut Context,
    ) -> Transition {
        match retry {
            RetryReason::EvictedOnWorker(cluster) | RetryReason::RefusedByWorker(cluster) => {
                self.exclude(key, cluster, inputs, ctx.now);
            }
            RetryReason::RemoteLost => announce_left_behind(key, inputs, ctx),
            RetryReason::RemoteMissing
            | RetryReason::OutOfSync(_)
            | RetryReason::NoClusterRecorded => {}
        }
        let fleet = inputs.registry.fleet();
        Transition::CheckRetry(retry.message(|cluster| fleet.name(cluster)))
    }

    fn exclude(
        &self,
        key: &Key,
        cluster: ClusterId,
        inputs: &mut DispatchInputs<'_>,
        now: Timestamp,
    ) {
        let worker = self.worker(cluster, inputs.registry);
        let (Some(worker), Some(record)) = (worker, inputs.workloads.get(key)) else {
            return;
        };
        let epoch = index::epoch(record.object());
        let evicted = || format!("evicted there: {}", worker.eviction(key).unwrap_or_default());
        let why = worker.refusal(key, epoch).map_or_else(evicted, str::to_owned);
        let until = engine_time(after(now, self.config.exclude_for));
        inputs.registry.fleet_mut().exclude_cluster(record.id(), cluster, until, why.into());
    }

    /// The reservation ends, and the cluster is excluded for a while.
    fn unreserve(
        &mut self,
        key: &Key,
        (cluster, why): (ClusterId, Box<str>),
        inputs: &mut DispatchInputs<'_>,
        ctx: &Context,
    ) -> DispatchEffect {
        let until = engine_time(after(ctx.now, self.config.exclude_for));
        let fleet = inputs.registry.fleet_mut();
        let name = fleet.name(cluster);
        let message = format!("worker cluster \"{name}\" did not take it: {why}");
        if let Some(record) = inputs.workloads.get(key) {
            fleet.unplace(record.id());
            fleet.exclude_cluster(record.id(), cluster, until, why);
            self.state_mut(key, ctx.now).withdrawn = true;
        }
        DispatchEffect::Unreserve(message)
    }

    fn withdrawn(&mut self, key: &Key, inputs: &mut DispatchInputs<'_>, now: Timestamp) {
        if let Some(record) = inputs.workloads.get(key)
            && !std::mem::replace(&mut self.state_mut(key, now).withdrawn, true)
        {
            inputs.registry.fleet_mut().unplace(record.id());
        }
    }

    fn read_report(
        &mut self,
        name: &str,
        scheduler: &mut Scheduler,
        registry: &mut FleetRegistry,
        ctx: &mut Context,
    ) {
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        worker.report_copy.mark_stale();
        let report = worker.capacity().map(|tracked| tracked.object());
        let report = report.filter(|one| one.status.protocol > 0);
        let report = report.map(|capacity| index::capacity_report(scheduler.names_mut(), capacity));
        registry.fleet_mut().set_report(worker.id, report);
        ctx.agenda.now(Reevaluation::LabelKeys);
    }

    fn announce_unregistered(&mut self, name: &str, n_workloads: usize, ctx: &mut Context) {
        if self.announced.insert(name.into()) {
            ctx.outbox.publish(unregistered::worker_event(name, n_workloads));
        }
    }

    fn worker(&self, cluster: ClusterId, registry: &FleetRegistry) -> Option<&Worker> {
        self.workers.get(registry.fleet().name(cluster))
    }

    fn worker_mut(
        &mut self,
        name: &str,
        registry: &mut FleetRegistry,
        now: Timestamp,
    ) -> &mut Worker {
        let id = registry.fleet_mut().cluster(name);
        self.workers.entry(name.into()).or_insert_with(|| Worker::new(id, name, now))
    }

    fn state_mut(&mut self, key: &Key, now: Timestamp) -> &mut DispatchState {
        self.states.entry(key.clone()).or_insert_with(|| DispatchState::unknown(now))
    }
}

/// The MultiKueue check of a Workload that holds quota.
pub(crate) fn multikueue_check(record: &WorkloadRecord, scheduler: &Scheduler) -> Option<String> {
    let admission = record.object().status.admission.as_ref();
    let admission = admission.filter(|_| record.phase().holds_quota())?;
    scheduler.multikueue_check(&admission.cluster_queue).map(str::to_owned)
}

/// Why a Workload with quota and without a cluster cannot be dispatched at all.
fn undispatchable(key: &Key, record: &WorkloadRecord, jobs: &Jobs) -> Option<String> {
    let workload = record.object();
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

fn free_job_of(key: &Key, inputs: &DispatchInputs<'_>, ctx: &Context) -> Option<(Key, Arc<Job>)> {
    let (job_key, job) = job_of(key, inputs.workloads, inputs.jobs)?;
    inputs.jobs.is_free(job_key, ctx).then(|| (job_key.clone(), Arc::clone(job)))
}

/// Sets the active pods of the hub's job to 0.
fn idle(key: &Key, inputs: &DispatchInputs<'_>, ctx: &Context) -> Option<DispatchEffect> {
    let (job_key, job) = free_job_of(key, inputs, ctx)?;
    let after = Box::new(job.with_idle_status()?);
    Some(DispatchEffect::WriteJob(job_key, JobChange::status(after, Purpose::Idle)))
}

/// Publishes an Event about a Workload that moves away from an unregistered worker, once.
fn announce_left_behind(key: &Key, inputs: &DispatchInputs<'_>, ctx: &mut Context) {
    let Some(record) = inputs.workloads.get(key).filter(|one| one.phase().holds_quota()) else {
        return;
    };
    let workload = record.object();
    let cluster = workload.status.cluster_name.as_deref();
    let unregistered = cluster.filter(|name| !inputs.registry.is_registered(name));
    if let Some(cluster) = unregistered.filter(|_| !record.transitions().retries_check()) {
        ctx.outbox.publish(unregistered::workload_event(key, workload, cluster));
    }
}

/// Whether a write was about a clone that is still observed.
fn still_has(worker: &Worker, ticket: &Ticket) -> bool {
    ticket.target.subject == Subject::Workload && worker.clones.get(&ticket.target.key).is_some()
}

/// Compares what a worker has with the hub. `n_on_hub` is given for the first comparison.
fn sweep(
    worker: &Worker,
    workloads: &Workloads,
    n_on_hub: Option<usize>,
    ctx: &Context,
) -> dispatch::OrphanScan {
    let on_hub =
        |name: &str| workloads.get(&parse_key(name)?).map(|record| index::epoch(record.object()));
    find_orphans(&worker.listed(ctx.outbox.writes()), on_hub, n_on_hub)
}

/// The key of `namespace/name`.
fn parse_key(name: &str) -> Option<Key> {
    let (namespace, name) = name.split_once('/')?;
    Some(Key { namespace: Some(namespace.into()), name: name.into() })
}
