//! All worker clusters: their connections, what their watches report, and which worker an answer is for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ::jobs::{Kinds, admitted_infos::FlavorsByName};
use crds::{
    names::reasons::{CLIENT_CONNECTION_FAILED, ORIGIN_SHARED},
    v1alpha1::ClusterCapacity,
    v1beta2::Workload,
};
use dispatch::Fleet;
use engine::{Time, ids::ClusterId};
use jiff::{SignedDuration, Timestamp};
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

use super::worker::{LISTED_WITHIN, Worker};
use crate::control::{
    context::Context,
    fleet::{ActiveCondition, FleetRegistry},
    input::ConnectionStatus,
    job_key::JobKey,
    key_map::KeyMap,
    measurement::{Measurement, WorkerMeasurement},
    multikueue::{
        copies::{copy_answers::CopyAnswer, sent_copies::SentCopies},
        dispatch_inputs::{DispatchInputs, JobsChange, WorkerInputs},
        reports::label_keys::{self, OwnEntry},
        statuses::status_sync::too_large,
    },
    outbox::{Subject, Target, Ticket, Writes, after},
    quota_automation::WorkerPresence,
    scheduling::Scheduler,
    time::{engine_time, moved, timestamp},
    timers::{NamesToEvaluate, Reevaluation},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct WorkerClusters {
    workers: BTreeMap<Box<str>, Worker>,
    /// The names of the workers that have anything of a Workload, so that its evaluation looks at these alone.
    holders: KeyMap<Key, BTreeSet<Box<str>>>,
    /// Kinds of jobs that are watched on every worker.
    kinds: Kinds,
    /// The origin of this manager.
    origin: String,
    /// The uid of this manager's cluster, once it is known.
    own_cluster: Option<Box<str>>,
    /// Since when an earlier process has not reached a worker, by its MultiKueueCluster.
    losses: KeyMap<Box<str>, Timestamp>,
    /// When this process began to observe anything.
    began: Option<Timestamp>,
}

impl WorkerClusters {
    /// No workers yet; jobs of these kinds will be watched on them.
    pub(crate) fn new(kinds: Kinds, origin: String) -> Self {
        Self {
            workers: BTreeMap::new(),
            holders: KeyMap::new(),
            kinds,
            origin,
            own_cluster: None,
            losses: KeyMap::new(),
            began: None,
        }
    }

    /// Records when this process began to observe anything.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.began.get_or_insert(now);
    }

    /// The uid of this manager's cluster is known. Returns whether it is news.
    pub(crate) fn set_own_cluster(&mut self, uid: &str) -> bool {
        let news = self.own_cluster.as_deref() != Some(uid);
        self.own_cluster = Some(uid.into());
        news
    }

    /// The cluster of another manager that uses a worker with this origin.
    fn shared_with<'a>(&self, worker: &'a Worker) -> Option<&'a str> {
        let cluster = self.own_cluster.as_deref();
        label_keys::shared_with(worker, &OwnEntry { origin: &self.origin, cluster, keys: &[] })
    }

    /// An earlier process did not reach a worker since this time. The first observation counts: later ones are of this process.
    pub(crate) fn lost_before(&mut self, name: &str, since: Timestamp) {
        if self.losses.get(name).is_some() {
            return;
        }
        self.losses.insert(name.into(), since);
        if let Some(worker) = self.workers.get_mut(name) {
            worker.lost_before(since);
        }
    }

    /// Since when a worker has not been reached, where it is lost after this many nanoseconds; `None` if it is reached. A process
    /// that has never reached it has a moment to connect, whatever the time is and however long an earlier process has not reached it.
    pub(crate) fn lost_since(
        &self,
        name: &str,
        lost_after: i64,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let began = self.began.unwrap_or(now);
        let (since, was_reached) = match self.workers.get(name) {
            Some(worker) => (worker.lost_since()?, worker.was_reached()),
            None => (self.losses.get(name).copied().unwrap_or(began), false),
        };
        let tried_until = engine_time(after(began, LISTED_WITHIN)).0;
        let earliest = timestamp(Time(tried_until.saturating_sub(lost_after)));
        Some(if was_reached { since } else { since.max(earliest) })
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { workers, holders: _, kinds: _, origin: _, own_cluster: _, losses, began } = self;
        workers.values_mut().for_each(|worker| worker.clock_jumped(by));
        losses.for_each_mut(|_, since| *since = moved(*since, by));
        *began = began.map(|at| moved(at, by));
    }

    /// A worker by its number in the fleet.
    pub(crate) fn get(&self, cluster: ClusterId, fleet: &Fleet) -> Option<&Worker> {
        self.workers.get(fleet.name(cluster))
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<&Worker> {
        self.workers.get(name)
    }

    pub(crate) fn by_name_mut(&mut self, name: &str) -> Option<&mut Worker> {
        self.workers.get_mut(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Box<str>, &Worker)> {
        self.workers.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&Box<str>, &mut Worker)> {
        self.workers.iter_mut()
    }

    pub(crate) fn names(&self) -> Vec<Box<str>> {
        self.workers.keys().cloned().collect()
    }

    /// Workers that have, or may get, anything of a Workload, in the order of names.
    pub(crate) fn concerned<'a: 'w, 'w>(
        &'a self,
        key: &Key,
        writes: &'w Writes,
    ) -> impl Iterator<Item = (&'a Box<str>, &'a Worker)> {
        let holders = self.holders.get(key).into_iter().flatten().map(|name| &**name);
        let names: BTreeSet<&str> = holders.chain(writes.may_have_clone(key)).collect();
        names.into_iter().filter_map(|name| self.workers.get_key_value(name))
    }

    /// Records whether a worker has anything of these Workloads.
    fn note_holder(&mut self, name: &str, keys: impl IntoIterator<Item = Key>) {
        let Some(worker) = self.workers.get(name) else {
            return;
        };
        for key in keys {
            if worker.holds(&key) {
                self.holders.entry(key).or_default().insert(name.into());
            } else if let Some(holders) = self.holders.get_mut(&key) {
                holders.remove(name);
                if holders.is_empty() {
                    self.holders.remove(&key);
                }
            }
        }
    }

    /// The clones that copies of a job name.
    pub(crate) fn clones_of(&self, job: &JobKey) -> impl Iterator<Item = &Key> {
        self.workers.values().filter_map(move |worker| worker.clone_of(job))
    }

    /// Records the state of a connection. Returns whether more than its message changed.
    pub(crate) fn connection_changed(
        &mut self,
        name: &str,
        connection: ConnectionStatus,
        inputs: &mut WorkerInputs<'_>,
        ctx: &mut Context,
    ) -> bool {
        let WorkerInputs { registry, fleet, .. } = inputs;
        let worker = self.worker_mut(name, fleet, ctx.now);
        let known = worker.connection();
        if *known == connection {
            return false;
        }
        // The message of each failed attempt differs, and is for the condition alone.
        if known.has_state_of(&connection) {
            worker.set_connection(connection, ctx.now);
            ctx.agenda.now(Reevaluation::Cluster(name.into()));
            return false;
        }
        let (active, reason) = (connection.active, connection.reason);
        if worker.set_connection(connection, ctx.now) {
            fleet.forget_report(worker.id);
            // The backoff of a write over the old connection says nothing about the new one. A write in flight stays:
            // it may be applied.
            ctx.outbox.connection_changed(name);
            tracing::info!(cluster = name, active, reason, "worker");
        }
        // Nothing new is sent before it is known what is there.
        registry.set_usable(name, self.takes_work(name), fleet);
        // The condition names the lists that are missing by then. No watch reports that a list does not end.
        ctx.agenda.at(after(ctx.now, LISTED_WITHIN), Reevaluation::Cluster(name.into()));
        ctx.agenda.now(Reevaluation::Cluster(name.into()));
        // Flavors may have changed while the worker was away.
        ctx.agenda.now(Reevaluation::LabelKeysOf(name.into()));
        true
    }

    /// Records a change of clones on a worker.
    pub(crate) fn clones_changed(
        &mut self,
        name: &str,
        change: Change<Workload>,
        inputs: &mut WorkerInputs<'_>,
        ctx: &mut Context,
    ) {
        let WorkerInputs { workloads, registry, fleet, .. } = inputs;
        let worker = self.worker_mut(name, fleet, ctx.now);
        let outbox = &mut ctx.outbox;
        let target = |key: &Key| Target::worker(name, Subject::Workload, key);
        let observe_version = |key: &Key, version| outbox.observe_version(&target(key), version);
        let concerned = worker.clones.observe(change, ctx.now, observe_version);
        for key in &concerned {
            // A report with `asOf` at or above this version includes the clone
            // (docs/reference/dispatch.md §2).
            let id = workloads.id_of(key);
            if let (Some(id), Some(clone)) = (id, worker.clones.get(key)) {
                fleet.clone_created(id, clone.version());
            }
        }
        self.note_reached(name, registry, fleet, ctx);
        ctx.agenda.workloads(concerned.iter().cloned());
        self.note_holder(name, concerned);
    }

    /// Records a change of jobs on a worker.
    pub(crate) fn jobs_changed(
        &mut self,
        name: &str,
        JobsChange { kind, change }: JobsChange<'_>,
        inputs: &mut WorkerInputs<'_>,
        ctx: &mut Context,
    ) {
        let WorkerInputs { jobs, registry, fleet, .. } = inputs;
        let worker = self.worker_mut(name, fleet, ctx.now);
        let outbox = &mut ctx.outbox;
        let target = |job: &JobKey| Target::worker(name, Subject::Job(job.kind.clone()), &job.key);
        let observe_version = |job: &JobKey, version| outbox.observe_version(&target(job), version);
        let observed = worker.jobs.observe(kind, change, ctx.now, observe_version);
        let concerned: Vec<Key> =
            observed.into_iter().flat_map(|job| worker.job_observed(&job, jobs)).collect();
        for key in worker.jobs.take_cut(|key| jobs.get(key).is_some()) {
            if let Some((_, job)) = jobs.get(&key) {
                ctx.outbox.publish(too_large(job, name));
            }
        }
        self.note_reached(name, registry, fleet, ctx);
        ctx.agenda.workloads(concerned.iter().cloned());
        self.note_holder(name, concerned);
    }

    /// Records a change of a worker's report.
    pub(crate) fn report_changed(
        &mut self,
        name: &str,
        change: Change<ClusterCapacity>,
        inputs: &mut WorkerInputs<'_>,
        ctx: &mut Context,
    ) {
        let WorkerInputs { scheduler, registry, fleet, .. } = inputs;
        let listed = change.is_list();
        let worker = self.worker_mut(name, fleet, ctx.now);
        worker.observe_capacity(change, ctx.now);
        // A worker that was removed may be connected for a while; its series are gone.
        if let Some(at) = worker.heartbeat_seen().filter(|_| registry.is_registered(name)) {
            ctx.measurements.push(Measurement::Worker(WorkerMeasurement::Reported {
                cluster: name.to_owned(),
                at,
            }));
        }
        let (id, active) = (worker.id, worker.connection().active);
        if listed && active {
            fleet.set_report_listed(id, true);
        }
        self.read_report(name, scheduler, fleet, ctx);
    }

    /// Leaves clusters out whose reports have no heartbeat any more, and those that another manager uses with this origin.
    pub(crate) fn age_reports(
        &self,
        clusters: &NamesToEvaluate,
        registry: &FleetRegistry,
        fleet: &mut Fleet,
        ctx: &mut Context,
    ) {
        for worker in self.workers.values().filter(|one| clusters.includes(one.name())) {
            registry.set_usable(worker.name(), self.takes_work(worker.name()), fleet);
            let until = worker.report_counts_until();
            let stale = until.is_some_and(|until| until <= ctx.now);
            fleet.set_stale(worker.id, stale);
            if let Some(until) = until.filter(|_| !stale) {
                ctx.agenda.at(until, Reevaluation::Cluster(worker.name().into()));
            }
        }
    }

    /// Whether a worker takes work: it is connected and was listed since, and no manager of the same origin uses it, which would take
    /// what is sent there for its own.
    pub(crate) fn takes_work(&self, name: &str) -> bool {
        let worker = self.workers.get(name).filter(|worker| worker.lost_since().is_none());
        worker.is_some_and(|worker| self.shared_with(worker).is_none())
    }

    /// What is known of the connection to a worker. Its Workloads are lost this many nanoseconds after it was last reached.
    pub(crate) fn presence(
        &self,
        name: &str,
        lost_after: i64,
        fleet: &Fleet,
        now: Timestamp,
    ) -> WorkerPresence {
        let tried = self.workers.get(name).filter(|one| !one.connection().reason.is_empty());
        let Some(worker) = tried else {
            return WorkerPresence::Starting;
        };
        let listed = worker.is_listed() && fleet.is_report_listed(worker.id);
        match worker.connection().active {
            true if listed => {
                WorkerPresence::Connected(worker.capacity().map(|one| Arc::clone(one.object())))
            }
            true if worker.overdue_lists(now).is_none() => WorkerPresence::Starting,
            _ => {
                let since = engine_time(self.lost_since(name, lost_after, now).unwrap_or(now));
                WorkerPresence::Away(timestamp(Time(since.0.saturating_add(lost_after))))
            }
        }
    }

    /// Whether a worker is connected.
    pub(crate) fn is_connected(&self, name: &str) -> bool {
        self.workers.get(name).is_some_and(|worker| worker.connection().active)
    }

    /// The condition of a MultiKueueCluster; `None` if its worker was never tried. `annotated`: it has a confirmation of a cleanup.
    pub(crate) fn active_condition(
        &self,
        name: &str,
        now: Timestamp,
        annotated: bool,
    ) -> Option<ActiveCondition> {
        let worker = self.workers.get(name).filter(|one| !one.connection().reason.is_empty())?;
        let ConnectionStatus { active, reason, message } = worker.connection();
        if let Some(overdue) = worker.overdue_lists(now) {
            let message = format!(
                "it answers, but did not complete its lists within {LISTED_WITHIN:?}: {}",
                overdue.join(", ")
            );
            return Some(ActiveCondition {
                status: false,
                reason: CLIENT_CONNECTION_FAILED,
                message,
            });
        }
        if let Some(other) = self.shared_with(worker) {
            let origin = &self.origin;
            let message = format!(
                "the manager of cluster {other} uses this worker with the same origin \"{origin}\"; configure another multiKueue.origin, \
                 or remove its entry from spec.managers of the worker's ClusterCapacity if that manager is gone"
            );
            return Some(ActiveCondition { status: false, reason: ORIGIN_SHARED, message });
        }
        // Nothing is deleted on a worker that is not connected, so the reason of its connection comes before the
        // question.
        let breaker = &worker.breaker;
        let asks = breaker.is_tripped() && !breaker.is_confirmed(annotated) && *active;
        let message = if asks { worker.breaker.message(message) } else { message.clone() };
        let message = match &worker.unread_report {
            Some(why) => format!("{message}; its capacity report is not read: {why}"),
            None => message,
        };
        Some(ActiveCondition { status: *active, reason, message })
    }

    /// Unregistered workers that have nothing of ours and cannot get anything.
    pub(crate) fn clean_workers(
        &self,
        registry: &FleetRegistry,
        ctx: &Context,
    ) -> BTreeSet<Box<str>> {
        // Every decision asks, and mostly all are registered.
        if !registry.has_unregistered() {
            return BTreeSet::new();
        }
        let unregistered = self.workers.iter().filter(|(name, _)| !registry.is_registered(name));
        let clean = unregistered.filter(|(_, worker)| worker.is_clean(ctx.outbox.writes()));
        clean.map(|(name, _)| name.clone()).collect()
    }

    /// Takes the answer to a write on a worker.
    pub(crate) fn answered(
        &mut self,
        (ticket, sent): (&Ticket, Option<&SentCopies>),
        answer: WriteOutcome,
        inputs: &mut DispatchInputs<'_>,
        ctx: &mut Context,
    ) {
        let Some(name) = ticket.target.to.worker() else {
            return;
        };
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        let before = worker.workload_of(&ticket.target);
        CopyAnswer { cluster: name, worker, ticket, sent }.record(answer, inputs, ctx);
        let after = worker.workload_of(&ticket.target);
        self.note_holder(name, before.into_iter().chain(after));
    }

    /// Takes the answer to a write of a worker's ClusterCapacity.
    pub(crate) fn label_keys_answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        inputs: &mut WorkerInputs<'_>,
        ctx: &mut Context,
    ) {
        let Some(name) = ticket.target.to.worker() else {
            return;
        };
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        if let WriteOutcome::Done(value) = answer {
            // Written again, it would be dropped again.
            worker.drops_entries = !label_keys::has_entry(&value.tree(), &self.origin);
            if let Some(capacity) = worker.capacity_mut() {
                capacity.observe_answer(&value);
            }
        }
        worker.note_heartbeat(ctx.now);
        self.read_report(name, inputs.scheduler, inputs.fleet, ctx);
    }

    /// Takes the answer to a write of a report's copy on the hub.
    pub(crate) fn report_copy_answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        ctx: &mut Context,
    ) {
        if let Some(worker) = self.workers.get_mut(&*ticket.target.key.name) {
            worker.report_copy.answered(answer, ctx);
        }
    }

    /// Writes copies of reports that differ from what the hub shows.
    pub(crate) fn write_report_copies(&mut self, registry: &FleetRegistry, ctx: &mut Context) {
        for (name, worker) in &mut self.workers {
            // The hub's own report, if it is a worker of others, has that name.
            if **name == *crds::v1alpha1::LOCAL || !worker.report_copy.is_stale() {
                continue;
            }
            let report = worker.capacity().map(|tracked| Arc::clone(tracked.object()));
            let owner = registry.owner_reference(name);
            worker.report_copy.evaluate(name, report.as_deref(), owner, ctx);
        }
    }

    /// Asks workers whose reports go by other labels than flavors name.
    pub(crate) fn request_label_keys(&self, flavors: &FlavorsByName, ctx: &mut Context) {
        let Some(asked) = ctx.agenda.take_label_keys() else {
            return;
        };
        let keys = label_keys::label_keys(flavors);
        let (origin, cluster) = (&*self.origin, self.own_cluster.as_deref());
        let own = OwnEntry { origin, cluster, keys: &keys };
        let workers = self.workers.values().filter(|worker| asked.includes(worker.name()));
        workers.for_each(|worker| label_keys::request(worker, &own, ctx));
    }

    fn read_report(
        &mut self,
        name: &str,
        scheduler: &mut Scheduler,
        fleet: &mut Fleet,
        ctx: &mut Context,
    ) {
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        worker.report_copy.mark_stale();
        let report = worker.capacity().map(|tracked| Arc::clone(tracked.object()));
        let object_exists = report.is_some();
        // A report without a protocol does not count, nor does one that lists too much
        // (docs/reference/dispatch.md §2).
        let report = report.filter(|one| one.status.protocol > 0);
        let (names, added) = (scheduler.names_mut(), &mut worker.resource_names);
        let read = report.map(|capacity| index::capacity_report(names, added, &capacity));
        let (report, unread) = match read.transpose() {
            Ok(report) => (report, None),
            Err(oversized) => (None, Some(oversized)),
        };
        worker.unread_report = unread;
        fleet.set_report_awaited(worker.id, object_exists && report.is_none());
        fleet.set_report(worker.id, report);
        ctx.agenda.now(Reevaluation::LabelKeysOf(name.into()));
        ctx.agenda.now(Reevaluation::Cluster(name.into()));
    }

    /// A worker with complete lists may take work.
    fn note_reached(
        &mut self,
        name: &str,
        registry: &FleetRegistry,
        fleet: &mut Fleet,
        ctx: &mut Context,
    ) {
        if self.workers.get_mut(name).is_some_and(Worker::mark_reached) {
            registry.set_usable(name, self.takes_work(name), fleet);
            ctx.agenda.now(Reevaluation::Cluster(name.into()));
        }
    }

    fn worker_mut(&mut self, name: &str, fleet: &mut Fleet, now: Timestamp) -> &mut Worker {
        let id = fleet.intern_cluster(name);
        let since = self.losses.get(name).copied().map_or(now, |since| since.min(now));
        self.workers.entry(name.into()).or_insert_with(|| Worker::new(id, name, &self.kinds, since))
    }
}
