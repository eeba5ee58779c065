//! Dispatch to worker clusters: what each worker has of ours, and the copies of every Workload (MultiKueue).
//!
//! Inputs: connections and watches of workers, Workload changes, and answers of workers. The state machine of one Workload
//! over clusters is `dispatch::workload`; its steps become writes on workers, and [`DispatchEffect`]s for the machines of the hub.
//!
//! | module | concept |
//! |---|---|
//! | `dispatch_config`, `dispatch_inputs`, `dispatch_effect` | configuration, what decides beside the copies, and what a step means for the hub |
//! | `evaluation`, `state` | one evaluation of a Workload, which asks the parts below and takes the steps; what is remembered of its dispatch |
//! | `workers`, `worker_changes` | all workers: connections, watches, clones and jobs; which Workloads a change concerns |
//! | `view` | the input of the state machine: the Workload, the hub's jobs and the copies |
//! | `race` | which clusters may have a Workload, count it, or are left out; moves of queued work, and why it waits |
//! | `copies` | creates, changes and deletes of copies, their answers, and the names and gates that they wait for |
//! | `statuses` | statuses and reclaimable pods that copies bring to the hub's jobs |
//! | `leases` | leases of workers, and what they mean for a Workload |
//! | `cleanup` | the hub's incarnation, copies of unknown Workloads, and when their deletion waits for a user |
//! | `reports` | capacity reports and Leases of workers |

mod cleanup;
mod copies;
mod dispatch_config;
mod dispatch_effect;
mod dispatch_inputs;
mod evaluation;
mod leases;
mod race;
mod reports;
mod state;
mod statuses;
mod view;
mod worker_changes;
mod workers;

use std::{collections::BTreeSet, time::Duration};

use ::jobs::{Kinds, admitted_infos::FlavorsByName};
use crds::{v1alpha1::ClusterCapacity, v1beta2::Workload};
use dispatch::Fleet;
use engine::ids::WorkloadId;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

use self::{
    cleanup::{
        incarnation::IncarnationRecord,
        orphan_cleanup::{self, DepartedWorkloads, HubHistory, OrphanCleanup},
    },
    copies::{copy_answers::waiting_workload, worker_writes},
    evaluation::DispatchEvaluation,
    leases::{exactly_once::LeasedDispatch, grants::Grants, lease_state},
    race::admitted_work::AdmittedWork,
    state::DispatchState,
    view::{evaluated_workload::EvaluatedWorkload, set_siblings},
    workers::{unregistered, worker::Worker, worker_clusters::WorkerClusters},
};
pub(crate) use self::{
    dispatch_config::DispatchConfig,
    dispatch_effect::DispatchEffect,
    dispatch_inputs::{DispatchInputs, HubObjects, JobsChange, WorkerInputs},
    race::queued_moves::Rebalancing,
    view::hub_jobs::multikueue_check,
};
use super::{
    context::Context,
    fleet::{ActiveCondition, FleetRegistry},
    input::ConnectionStatus,
    jobs::Jobs,
    outbox::{Subject, Ticket},
    quota_automation::WorkerPresence,
    start_failure::PodStarts,
    timers::Reevaluation,
    workloads::{TrackedWorkload, WorkloadChange, WorkloadPhase, Workloads},
};
use crate::control::key_map::KeyMap;

/// See the module.
#[derive(Debug)]
pub(crate) struct MultiKueueDispatch {
    config: DispatchConfig,
    workers: WorkerClusters,
    cleanup: OrphanCleanup,
    states: KeyMap<Key, DispatchState>,
    incarnation: IncarnationRecord,
    grants: Grants,
    departed: DepartedWorkloads,
    /// Unregistered workers that an Event was published about.
    announced: BTreeSet<Box<str>>,
}

impl MultiKueueDispatch {
    /// Dispatch of jobs of these kinds.
    pub(crate) fn new(config: DispatchConfig, kinds: Kinds) -> Self {
        Self {
            cleanup: OrphanCleanup::new(config.gc_interval),
            incarnation: IncarnationRecord::new(&config.namespace),
            departed: KeyMap::new(),
            grants: Grants::default(),
            workers: WorkerClusters::new(kinds, config.origin.clone()),
            config,
            states: KeyMap::new(),
            announced: BTreeSet::new(),
        }
    }

    /// Whether clusters race for Workloads; otherwise one is chosen together with the quota.
    pub(crate) fn races(&self) -> bool {
        self.config.dispatcher.races()
    }

    /// Workloads for which more clusters may race after a change of clusters.
    pub(crate) fn await_clusters(&self) -> impl Iterator<Item = &Key> {
        let waiting = self.states.iter().filter(|(_, state)| state.race.awaits_clusters);
        waiting.map(|(key, _)| key)
    }

    /// Records when this process began to observe anything.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.workers.begin(now);
    }

    /// Records the state of a connection. Returns whether more than its message changed.
    pub(crate) fn connection_changed(
        &mut self,
        name: &str,
        connection: ConnectionStatus,
        inputs: &mut WorkerInputs<'_>,
        ctx: &mut Context,
    ) -> bool {
        if self.workers.is_connected(name) != connection.active {
            self.grants.connection_changed(name);
        }
        self.workers.connection_changed(name, connection, inputs, ctx)
    }

    /// Records a change of clones on a worker.
    pub(crate) fn clones_changed(
        &mut self,
        name: &str,
        change: Change<Workload>,
        inputs: &mut WorkerInputs<'_>,
        ctx: &mut Context,
    ) {
        self.workers.clones_changed(name, change, inputs, ctx);
    }

    /// Records a change of jobs of a kind on a worker.
    pub(crate) fn jobs_changed(
        &mut self,
        name: &str,
        change: JobsChange<'_>,
        inputs: &mut WorkerInputs<'_>,
        ctx: &mut Context,
    ) {
        self.workers.jobs_changed(name, change, inputs, ctx);
    }

    /// Records a change of a worker's report.
    pub(crate) fn report_changed(
        &mut self,
        name: &str,
        change: Change<ClusterCapacity>,
        inputs: &mut WorkerInputs<'_>,
        ctx: &mut Context,
    ) {
        self.workers.report_changed(name, change, inputs, ctx);
    }

    /// What is known of the connection to a worker of a MultiKueueConfig, for quotas that follow it.
    pub(crate) fn presence(
        &self,
        config: &str,
        name: &str,
        fleet: &Fleet,
        now: Timestamp,
    ) -> WorkerPresence {
        let timeouts = self.config.timeouts(fleet.lost_after(config));
        self.workers.presence(name, timeouts.worker_lost_timeout, fleet, now)
    }

    /// The process gave a connection up: it neither is connected nor tries to be.
    pub(crate) fn connection_given_up(
        &mut self,
        name: &str,
        registry: &FleetRegistry,
        ctx: &mut Context,
    ) {
        // Without a connection no read can settle a create there. If the worker comes back, its first list shows what
        // was created.
        ctx.outbox.forget_worker(name);
        let n_workloads = self.workers.by_name(name).map_or(0, Worker::n_workloads);
        if n_workloads > 0 && !registry.is_registered(name) {
            self.announce_unregistered(name, n_workloads, ctx);
        }
    }

    /// Whether a worker takes work if it is registered.
    pub(crate) fn takes_work(&self, name: &str) -> bool {
        self.workers.takes_work(name)
    }

    /// The condition of a MultiKueueCluster; `None` if its worker was never tried.
    pub(crate) fn active_condition(
        &self,
        name: &str,
        now: Timestamp,
        annotated: bool,
    ) -> Option<ActiveCondition> {
        let condition = self.workers.active_condition(name, now, annotated)?;
        let state = self.grants.state(name);
        let message = lease_state::with_fence(condition.message, name, &state);
        Some(ActiveCondition { message, ..condition })
    }

    /// The clock jumped: what lasts goes on.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self {
            config: _,
            workers,
            cleanup,
            states,
            incarnation: _,
            grants,
            departed: _,
            announced: _,
        } = self;
        workers.clock_jumped(by);
        cleanup.clock_jumped(by);
        grants.clock_jumped(by);
        states.for_each_mut(|_, state| state.clock_jumped(by));
    }

    /// A MultiKueueCluster was created, changed or deleted. `lost` says since when its condition shows that it is not reached: the
    /// time of a loss survives a restart. `annotated`: it has a confirmation of a cleanup.
    pub(crate) fn registration_changed(
        &mut self,
        name: &str,
        lost: Option<Timestamp>,
        annotated: bool,
        ctx: &mut Context,
    ) {
        if let Some(since) = lost {
            self.workers.lost_before(name, since.min(ctx.now));
        }
        // A worker that is registered again and removed once more gets another Event.
        self.announced.remove(name);
        if let Some(worker) = self.workers.by_name_mut(name) {
            worker.breaker.registration_observed(annotated);
        }
        // A user may have confirmed a cleanup.
        for (_, worker) in self.workers.iter().filter(|(_, one)| one.breaker.is_tripped()) {
            ctx.agenda.workloads(worker.workloads().into_iter().cloned());
        }
    }

    /// Unregistered workers that have nothing of ours and cannot get anything.
    pub(crate) fn clean_workers(
        &self,
        registry: &FleetRegistry,
        ctx: &Context,
    ) -> BTreeSet<Box<str>> {
        self.workers.clean_workers(registry, ctx)
    }

    /// How long the connection to an unregistered worker is kept at most.
    pub(crate) fn keep_connections_for(&self) -> Duration {
        self.config.lost_after.saturating_mul(2)
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

    /// Takes a change of a Workload.
    pub(crate) fn workload_changed(
        &mut self,
        change: &WorkloadChange,
        jobs: &Jobs,
        ctx: &mut Context,
    ) {
        let (key, now) = (&change.key, ctx.now);
        for set in set_siblings::sets_left(change, jobs) {
            ctx.agenda.workloads(self.workers.clones_of(&set).cloned());
        }
        if change.after.is_none() {
            self.states.remove(key);
            let uid = change.before.as_ref().and_then(|before| before.metadata.uid.as_deref());
            if let Some(uid) = uid {
                // A copy of this uid is an orphan then, and not disputed (docs/reference/dispatch.md §6).
                self.departed.insert(key.clone(), uid.into());
            }
            // A Workload that is created again under the name is another one; the worker may take it.
            self.workers.iter_mut().for_each(|(_, worker)| worker.refused.forget(key));
        } else if change.releases_quota() {
            // The release waited for the withdrawal, so nothing of the Workload is on any worker.
            self.state_mut(key, now).restarted(now);
        } else {
            self.state_mut(key, now);
        }
    }

    /// The engine reserved quota: copies are made from scratch.
    pub(crate) fn reserved(&mut self, key: &Key, now: Timestamp) {
        self.state_mut(key, now).restarted(now);
    }

    /// The reservation was decided on an old version, or may not be written: a former leader may have reserved and created.
    pub(crate) fn reservation_failed(&mut self, key: &Key, now: Timestamp) {
        self.state_mut(key, now).doubted(now);
    }

    /// The next epoch is written.
    pub(crate) fn epoch_raised(&mut self, key: &Key, now: Timestamp) {
        self.state_mut(key, now).epoch_raised = true;
    }

    /// Whether nothing of a Workload runs on any worker.
    pub(crate) fn is_withdrawn(&self, key: &Key) -> bool {
        self.states.get(key).is_some_and(|state| state.withdrawn)
    }

    /// Whether pods of a Workload fail to start on its recorded worker.
    pub(crate) fn pod_starts(&self, key: &Key, workload: &Workload) -> PodStarts {
        let worker = workload.status.cluster_name.as_deref();
        let worker = worker.and_then(|name| self.workers.by_name(name));
        worker.map_or(PodStarts::Unknown, |worker| worker.pod_starts(key))
    }

    /// Counts a new Workload that holds quota on a worker there, as after a restart.
    pub(crate) fn recover_placement(
        &self,
        record: &TrackedWorkload,
        inputs: &mut DispatchInputs<'_>,
    ) {
        let status = &record.object().status;
        // Of several clusters that race it is not known which one takes the Workload.
        let nominated = Some(&status.nominated_cluster_names).filter(|names| names.len() == 1);
        let cluster = status.cluster_name.as_ref().or(nominated.and_then(|names| names.first()));
        let Some(id) = record.id().filter(|_| record.phase().holds_quota()) else {
            return;
        };
        let fleet = &mut *inputs.fleet;
        // In a race no room is charged to a cluster: the queues of each worker decide about it.
        if fleet.placed_on(id).is_some() || self.races() {
            return;
        }
        if let Some(cluster) = cluster.map(|name| fleet.intern_cluster(name)) {
            let since = record.started_at();
            let placed = AdmittedWork { record, cluster, since };
            placed.place(inputs.scheduler, inputs.workloads, fleet);
        }
    }

    /// The resourceVersion at which the clone of a Workload finished, on the cluster where it counts.
    pub(crate) fn finished_at(&self, key: &Key, id: WorkloadId, fleet: &Fleet) -> Option<u64> {
        let worker = self.workers.get(fleet.placed_on(id)?, fleet)?;
        let clone = worker.clones.get(key)?;
        let phase = WorkloadPhase::of(&clone.object().status.conditions);
        (phase == WorkloadPhase::Finished).then(|| clone.version())
    }

    /// Decides about the copies of one Workload.
    pub(crate) fn evaluate(
        &mut self,
        key: &Key,
        inputs: DispatchInputs<'_>,
        ctx: &mut Context,
    ) -> Vec<DispatchEffect> {
        // Without a copy anywhere the uid decides nothing. Kept, it would stay for every Workload that ever was
        // deleted.
        let has_copies = || self.workers.concerned(key, ctx.outbox.writes()).next().is_some();
        if self.departed.contains_key(key) && !has_copies() {
            self.departed.remove(key);
        }
        // Nothing happens on any worker before this leader has written its term.
        let Some(incarnation) = self.incarnation.present() else {
            return Vec::new();
        };
        let known = inputs.workloads.get(key).is_some();
        let mut absent = DispatchState::unknown(ctx.now);
        // Nothing is remembered of a Workload that does not exist.
        let state = if known {
            self.states.entry(key.clone()).or_insert(DispatchState::unknown(ctx.now))
        } else {
            &mut absent
        };
        let Self { config, workers, grants, departed, .. } = self;
        let DispatchInputs { workloads, jobs, registry, fleet, scheduler, flavors } = inputs;
        let workload = EvaluatedWorkload {
            key,
            config,
            workers,
            registry,
            incarnation,
            departed,
            workloads,
            jobs,
            scheduler,
            flavors,
        };
        let leases = LeasedDispatch::new(grants);
        DispatchEvaluation { workload, leases, state, fleet, ctx }.run()
    }

    /// Moves queued Workloads to workers with room. Returns whether one moves.
    pub(crate) fn rebalance(
        &mut self,
        memory: &mut Rebalancing,
        inputs: &mut DispatchInputs<'_>,
        ctx: &mut Context,
    ) -> bool {
        memory.rebalance(&mut self.states, self.config.dispatcher, inputs, ctx)
    }

    /// Whether the object of a write is of a kind that its worker does not serve, as the watch of the kind has shown.
    pub(crate) fn is_not_served(&self, ticket: &Ticket) -> bool {
        let worker = ticket.target.to.worker().and_then(|name| self.workers.by_name(name));
        let Subject::Job(kind) = &ticket.target.subject else { return false };
        worker.is_some_and(|worker| worker.jobs.is_not_served(kind))
    }

    /// Takes the answer to a write of a copy.
    pub(crate) fn answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        inputs: &mut DispatchInputs<'_>,
        ctx: &mut Context,
    ) {
        let state = waiting_workload(ticket).and_then(|key| self.states.get(key));
        self.workers.answered((ticket, state.map(|state| &state.sent)), answer, inputs, ctx);
    }

    /// Takes the answer to a write of a worker's ClusterCapacity.
    pub(crate) fn label_keys_answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        inputs: &mut WorkerInputs<'_>,
        ctx: &mut Context,
    ) {
        self.workers.label_keys_answered(ticket, answer, inputs, ctx);
    }

    /// The uid of the manager's cluster is known.
    pub(crate) fn set_own_cluster(&mut self, uid: &str, ctx: &mut Context) {
        if self.workers.set_own_cluster(uid) {
            ctx.agenda.now(Reevaluation::LabelKeys);
            ctx.agenda.now(Reevaluation::Clusters);
        }
    }

    /// Asks workers whose reports go by other labels than flavors name.
    pub(crate) fn request_label_keys(&self, flavors: &FlavorsByName, ctx: &mut Context) {
        self.workers.request_label_keys(flavors, ctx);
    }

    /// Records a change of the ConfigMap of the incarnation. Returns whether all Workloads are to be evaluated.
    pub(crate) fn incarnation_changed(&mut self, change: Change<ConfigMap>) -> bool {
        self.incarnation.observe(change)
    }

    /// Takes the answer to a write of that ConfigMap. Returns whether the incarnation is known now.
    pub(crate) fn incarnation_answered(&mut self, answer: WriteOutcome) -> bool {
        self.incarnation.answered(answer)
    }

    /// Writes the term of this leader, reads copies with creates that are not settled, and every `gcInterval` evaluates what a worker
    /// has and the hub does not know. Called at each decision.
    pub(crate) fn keep(&mut self, objects: HubObjects<'_>, ctx: &mut Context) {
        let Self { config, workers, incarnation, departed, cleanup, .. } = self;
        incarnation.write(ctx);
        worker_writes::read_unsettled(workers, &config.origin, ctx);
        let hub = HubHistory { objects, departed, incarnation };
        cleanup.collect_garbage(workers, &hub, ctx);
    }

    /// Compares a worker with the hub, after a list of either. Returns whether it was compared.
    pub(crate) fn compare(
        &mut self,
        name: &str,
        objects: HubObjects<'_>,
        ctx: &mut Context,
    ) -> bool {
        let Self { workers, incarnation, departed, .. } = self;
        let mut hub = HubHistory { objects, departed, incarnation };
        orphan_cleanup::compare(workers, name, &mut hub, ctx)
    }

    /// Compares every worker with the hub. Returns whether any was compared.
    pub(crate) fn compare_all(&mut self, objects: HubObjects<'_>, ctx: &mut Context) -> bool {
        let Self { workers, incarnation, departed, .. } = self;
        let mut hub = HubHistory { objects, departed, incarnation };
        orphan_cleanup::compare_all(workers, &mut hub, ctx)
    }

    /// Whether the confirmation of a cleanup on a worker is to be removed.
    pub(crate) fn ends_confirmation(&self, name: &str) -> bool {
        self.workers.by_name(name).is_some_and(|worker| worker.breaker.ends_confirmation())
    }

    /// The leader has written its term.
    #[cfg(test)]
    pub(crate) fn set_incarnation(&mut self, present: dispatch::HubIncarnation) {
        self.incarnation.set(present);
    }

    fn announce_unregistered(&mut self, name: &str, n_workloads: usize, ctx: &mut Context) {
        if self.announced.insert(name.into()) {
            ctx.outbox.publish(unregistered::worker_event(name, n_workloads));
        }
    }

    fn state_mut(&mut self, key: &Key, now: Timestamp) -> &mut DispatchState {
        self.states.entry(key.clone()).or_insert_with(|| DispatchState::unknown(now))
    }
}
