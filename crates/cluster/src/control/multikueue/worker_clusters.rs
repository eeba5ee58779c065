//! All worker clusters: their connections, what their watches report, and the answers to writes there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ::jobs::{Job, pod_sets_info::FlavorsByName};
use crds::{v1alpha1::ClusterCapacity, v1beta2::Workload};
use engine::ids::ClusterId;
use jiff::Timestamp;
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

use super::{DispatchInputs, copies::is_status, label_keys, worker::Worker};
use crate::control::{
    context::Context,
    fleet::{ActiveCondition, FleetRegistry},
    input::Connection,
    jobs::Jobs,
    outbox::{Destination, Subject, Ticket, UNCONFIRMED_FOR, Writes, after},
    scheduling::Scheduler,
    timers::Reevaluation,
    workloads::Workloads,
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct WorkerClusters {
    workers: BTreeMap<Box<str>, Worker>,
}

impl WorkerClusters {
    /// A worker by its number in the fleet.
    pub(super) fn get(&self, cluster: ClusterId, registry: &FleetRegistry) -> Option<&Worker> {
        self.workers.get(registry.fleet().name(cluster))
    }

    pub(super) fn by_name(&self, name: &str) -> Option<&Worker> {
        self.workers.get(name)
    }

    pub(super) fn by_name_mut(&mut self, name: &str) -> Option<&mut Worker> {
        self.workers.get_mut(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Box<str>, &Worker)> {
        self.workers.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Box<str>, &mut Worker)> {
        self.workers.iter_mut()
    }

    pub(super) fn names(&self) -> Vec<Box<str>> {
        self.workers.keys().cloned().collect()
    }

    /// Workers that have, or may get, anything of a Workload.
    pub(super) fn concerned<'a>(
        &'a self,
        key: &'a Key,
        writes: &'a Writes,
    ) -> impl Iterator<Item = (&'a Box<str>, &'a Worker)> {
        self.workers.iter().filter(move |(_, worker)| worker.concerns(key, writes))
    }

    /// Records the state of a connection. Returns whether anything about it changed.
    pub(super) fn connection_changed(
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
    pub(super) fn clones_changed(
        &mut self,
        name: &str,
        change: Change<Workload>,
        (workloads, registry): (&Workloads, &mut FleetRegistry),
        ctx: &mut Context,
    ) {
        let worker = self.worker_mut(name, registry, ctx.now);
        for key in worker.clones.observe(change) {
            ctx.outbox.writes_mut().observed(&worker.target(Subject::Workload, &key));
            // A report with `asOf` at or above this version includes the clone
            // (docs/reference/dispatch.md §2).
            if let (Some(record), Some(clone)) = (workloads.get(&key), worker.clones.get(&key)) {
                registry.fleet_mut().clone_created(record.id(), clone.version());
            }
            ctx.agenda.now(Reevaluation::Workload(key));
        }
    }

    /// Records a change of jobs on a worker.
    pub(super) fn jobs_changed(
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
    pub(super) fn report_changed(
        &mut self,
        name: &str,
        change: Change<ClusterCapacity>,
        (scheduler, registry): (&mut Scheduler, &mut FleetRegistry),
        ctx: &mut Context,
    ) {
        self.worker_mut(name, registry, ctx.now).observe_capacity(change);
        self.read_report(name, scheduler, registry, ctx);
    }

    /// Whether a worker is connected.
    pub(super) fn is_connected(&self, name: &str) -> bool {
        self.workers.get(name).is_some_and(|worker| worker.connection().active)
    }

    /// The condition of a MultiKueueCluster; `None` if its worker was never tried.
    pub(super) fn active_condition(&self, name: &str, confirmed: bool) -> Option<ActiveCondition> {
        let worker = self.workers.get(name).filter(|one| !one.connection().reason.is_empty())?;
        let Connection { active, reason, message } = worker.connection();
        let asks = worker.breaker.is_tripped() && !confirmed && *active;
        let message = if asks { worker.breaker.message(message) } else { message.clone() };
        Some(ActiveCondition { status: *active, reason, message })
    }

    /// Unregistered workers that have nothing of ours and cannot get anything.
    pub(super) fn clean_workers(
        &self,
        registry: &FleetRegistry,
        ctx: &Context,
    ) -> BTreeSet<Box<str>> {
        let unregistered = self.workers.iter().filter(|(name, _)| !registry.is_registered(name));
        let clean =
            unregistered.filter(|(_, worker)| worker.is_clean(ctx.outbox.writes(), ctx.now));
        clean.map(|(name, _)| name.clone()).collect()
    }

    /// Takes the answer to a write on a worker.
    pub(super) fn answered(
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
            WriteOutcome::Done(value) if is_status(&value) && still_has(worker, ticket) => {
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
            // The refusal counts for this epoch; a later nomination may try the cluster again.
            WriteOutcome::Refused { message, .. } => {
                let record = inputs.workloads.get(workload);
                let epoch = record.map_or(1, |record| index::epoch(record.object()));
                worker.refuse(workload.clone(), epoch, message);
            }
            // The watch reports an object that exists or has changed. The outbox keeps a write
            // without an answer as unconfirmed.
            WriteOutcome::Exists | WriteOutcome::Stale | WriteOutcome::Unknown(_) => {}
        }
        let clone = worker.clones.get(workload).filter(|_| subject == Subject::Workload);
        if let (Some(record), Some(clone)) = (inputs.workloads.get(workload), clone) {
            inputs.registry.fleet_mut().clone_created(record.id(), clone.version());
        }
    }

    /// Takes the answer to a write of a worker's ClusterCapacity.
    pub(super) fn label_keys_answered(
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
    pub(super) fn report_copy_answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        ctx: &mut Context,
    ) {
        if let Some(worker) = self.workers.get_mut(&ticket.target.key.name) {
            worker.report_copy.answered(answer, ctx);
        }
    }

    /// Writes copies of reports that differ from what the hub shows.
    pub(super) fn write_report_copies(&mut self, registry: &FleetRegistry, ctx: &mut Context) {
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
    pub(super) fn request_label_keys(&self, flavors: &FlavorsByName, ctx: &mut Context) {
        if !ctx.agenda.take_label_keys() {
            return;
        }
        let keys = label_keys::label_keys(flavors);
        self.workers.values().for_each(|worker| label_keys::request(worker, &keys, ctx));
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
        // A report without a protocol does not count (docs/reference/dispatch.md §2).
        let report = report.filter(|one| one.status.protocol > 0);
        let report = report.map(|capacity| index::capacity_report(scheduler.names_mut(), capacity));
        registry.fleet_mut().set_report(worker.id, report);
        ctx.agenda.now(Reevaluation::LabelKeys);
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
}

/// Whether a write was about a clone that is still observed.
fn still_has(worker: &Worker, ticket: &Ticket) -> bool {
    ticket.target.subject == Subject::Workload && worker.clones.get(&ticket.target.key).is_some()
}
