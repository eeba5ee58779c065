//! Dispatch as the composition uses it: the registered workers, and the copies on them if the component is configured.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crds::v1beta2::{MultiKueueCluster, Workload};
use dispatch::Fleet;
use engine::ids::WorkloadId;
use index::{finished_run, run_time_group};
use jiff::{SignedDuration, Timestamp};
use runtime::{watch::Key, writer::WriteOutcome};

use crate::control::{
    core::Core,
    fleet::{ConnectionPlans, FleetRegistry, records_work, work_of},
    input::WorkerInput,
    listing::Listing,
    multikueue::{
        DispatchEffect, DispatchInputs, HubObjects, JobsChange, MultiKueueDispatch, Rebalancing,
        WorkerInputs,
    },
    outbox::{Purpose, Subject, Ticket},
    queues::Queues,
    quota_automation::{KnownWorkers, QuotaAutomation},
    scheduling::{ChangesNodes, DispatchedEntryOf},
    start_failure::PodStarts,
    time::{engine_time, signed_nanos},
    timers::Reevaluation,
    topology::ClusterTopology,
    workloads::{WorkloadChange, WorkloadCommand, WorkloadPhase},
};

/// The registered workers and the copies on them. Without the component, registrations and policies are observed and nothing is dispatched.
#[derive(Debug)]
pub(in crate::control) struct Dispatching {
    pub(in crate::control) registry: FleetRegistry,
    /// What placement decides on.
    pub(in crate::control) fleet: Fleet,
    pub(in crate::control) multikueue: Option<MultiKueueDispatch>,
    /// Moves of queued work.
    pub(in crate::control) rebalancing: Rebalancing,
    /// Under the gate MultiKueueManagerQuotaAutomation.
    pub(in crate::control) quotas: Option<QuotaAutomation>,
    /// Workers with a change that Workloads are yet to be evaluated for.
    pub(super) changed_workers: BTreeSet<Box<str>>,
    /// Changes of the fleet when Workloads that wait for further clusters were last evaluated.
    pub(super) n_changes_raced: u64,
}

impl Dispatching {
    /// Records an input of a worker. Returns whether every copy on it is to be compared with the hub.
    pub(super) fn worker(&mut self, name: &str, input: WorkerInput, core: &mut Core) -> bool {
        let Some(multikueue) = &mut self.multikueue else {
            return false;
        };
        let Core { ctx, scheduler, workloads, jobs, .. } = core;
        let (registry, fleet) = (&self.registry, &mut self.fleet);
        let inputs = &mut WorkerInputs { workloads, jobs, registry, fleet, scheduler };
        match input {
            WorkerInput::Connection(connection) => {
                if let Some(quotas) = &mut self.quotas {
                    quotas.connection_changed(name);
                }
                if multikueue.connection_changed(name, connection, inputs, ctx) {
                    self.changed_workers.insert(name.into());
                }
            }
            WorkerInput::Identity { request, uid } => {
                let identity = (request, uid);
                self.registry.identity_reported(name, identity, workloads, &mut ctx.agenda);
            }
            WorkerInput::Credential(expiry) => {
                self.registry.credential_observed(name, expiry, ctx);
            }
            WorkerInput::GivenUp => {
                self.registry.connection_given_up(name);
                multikueue.connection_given_up(name, &self.registry, ctx);
            }
            WorkerInput::Workload(change) => {
                let listed = change.is_list();
                multikueue.clones_changed(name, change, inputs, ctx);
                // A list shows what no watch has reported: many copies may be unknown at once
                // (docs/reference/dispatch.md §9).
                return listed;
            }
            WorkerInput::Job(kind, change) => {
                let listed = change.is_list();
                let change = JobsChange { kind: &kind, change };
                multikueue.jobs_changed(name, change, inputs, ctx);
                return listed;
            }
            WorkerInput::Lease(change) => multikueue.leases_changed(name, change, ctx),
            WorkerInput::ClusterQueue(change) => {
                if let Some(quotas) = &mut self.quotas {
                    quotas.observe_cluster_queues(name, change);
                }
            }
            WorkerInput::LocalQueue(change) => {
                if let Some(quotas) = &mut self.quotas {
                    quotas.observe_local_queues(name, change);
                }
            }
            WorkerInput::Capacity(change) => {
                multikueue.report_changed(name, change, inputs, ctx);
            }
        }
        false
    }

    /// Compares the copies on a worker with the hub.
    pub(super) fn compare_worker(&mut self, name: &str, core: &mut Core, listing: &Listing) {
        let Core { workloads, ctx, .. } = core;
        let (registry, complete) = (&self.registry, listing.is_complete());
        let objects = HubObjects { workloads, registry, complete };
        let multikueue = self.multikueue.as_mut();
        if multikueue.is_some_and(|one| one.compare(name, objects, ctx)) {
            self.changed_workers.insert(name.into());
        }
    }

    /// Compares the copies on every worker with the hub.
    pub(super) fn compare_all_workers(&mut self, core: &mut Core, listing: &Listing) {
        let multikueue = self.multikueue.as_mut();
        let Core { workloads, ctx, .. } = core;
        let (registry, complete) = (&self.registry, listing.is_complete());
        let objects = HubObjects { workloads, registry, complete };
        if multikueue.is_some_and(|one| one.compare_all(objects, ctx)) {
            core.evaluate_all_workloads();
        }
    }

    /// Records that another kind was listed on the hub: every copy is compared, and registrations that went meanwhile are
    /// reported.
    pub(super) fn listed(&mut self, core: &mut Core, listing: &Listing) {
        self.compare_all_workers(core, listing);
        if let Some(multikueue) = &mut self.multikueue {
            let Core { workloads, ctx, .. } = core;
            multikueue.announce_unregistered_workers(workloads, &self.registry, ctx);
        }
    }

    /// Records something about the incarnation. If it is another one now, every copy is compared with it.
    pub(super) fn incarnation(
        &mut self,
        changes: impl FnOnce(&mut MultiKueueDispatch) -> bool,
        core: &mut Core,
        listing: &Listing,
    ) {
        if self.multikueue.as_mut().is_some_and(changes) {
            self.compare_all_workers(core, listing);
            core.evaluate_all_workloads();
        }
    }

    /// The clock jumped: what lasts goes on.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self {
            registry,
            fleet,
            multikueue,
            // Times of nominations move with `multikueue`, so that the next decision about moves has other inputs and is made.
            rebalancing: _,
            quotas,
            changed_workers: _,
            n_changes_raced: _,
        } = self;
        registry.clock_jumped(by);
        fleet.clock_jumped(signed_nanos(by));
        if let Some(multikueue) = multikueue {
            multikueue.clock_jumped(by);
        }
        if let Some(quotas) = quotas {
            quotas.clock_jumped(by);
        }
    }

    /// Records a MultiKueueCluster.
    pub(super) fn multikueue_cluster(
        &mut self,
        key: &Key,
        object: Option<Arc<MultiKueueCluster>>,
        core: &mut Core,
    ) {
        let ctx = &mut core.ctx;
        let usable = self.multikueue.as_ref().is_some_and(|one| one.takes_work(&key.name));
        let changed =
            self.registry.observe_cluster(&key.name, object, usable, (&mut self.fleet, ctx));
        if let Some(multikueue) = &mut self.multikueue {
            let lost = self.registry.not_active_since(&key.name);
            let annotated = self.registry.is_cleanup_confirmed(&key.name);
            multikueue.registration_changed(&key.name, lost, annotated, ctx);
        }
        if changed {
            // Its labels decide about selectors and affinities, so a further cluster may have room for an inadmissible
            // Workload.
            core.scheduler.request_cycle();
            // After a restart every registered worker may have the copy of an orphaned job, and their set has changed.
            ctx.agenda.workloads(core.jobs.orphaned_workloads().cloned());
        }
    }

    /// The answer to a create or a read of a copy on a worker. A 404 that names nothing may come from a program between, so it neither
    /// refuses the kind nor settles a create; it does both if the watch has shown that the worker does not serve the kind.
    pub(super) fn confirmed_by_watch(&self, ticket: &Ticket, answer: WriteOutcome) -> WriteOutcome {
        let is_unnamed = match &answer {
            WriteOutcome::UnnamedNotFound(_) => true,
            WriteOutcome::Refused { code: 404, .. } => ticket.purpose == Purpose::Settle,
            _ => false,
        };
        let multikueue = self.multikueue.as_ref().filter(|_| is_unnamed);
        let is_not_served = multikueue.is_some_and(|one| one.is_not_served(ticket));
        if is_not_served { WriteOutcome::Gone } else { answer }
    }

    /// Takes the answer to a write on a worker.
    pub(super) fn worker_answered(
        &mut self,
        subject: &Subject,
        ticket: &Ticket,
        answer: WriteOutcome,
        (core, queues): (&mut Core, &Queues),
    ) {
        let Some(multikueue) = &mut self.multikueue else {
            return;
        };
        let Core { ctx, scheduler, workloads, jobs, .. } = core;
        let (registry, fleet) = (&self.registry, &mut self.fleet);
        if *subject == Subject::Capacity {
            let mut inputs = WorkerInputs { workloads, jobs, registry, fleet, scheduler };
            return multikueue.label_keys_answered(ticket, answer, &mut inputs, ctx);
        }
        if *subject == Subject::Lease {
            return multikueue.lease_answered(ticket, answer);
        }
        let flavors = queues.flavors();
        let mut inputs = DispatchInputs { workloads, jobs, registry, fleet, scheduler, flavors };
        multikueue.answered(ticket, answer, &mut inputs, ctx);
    }

    /// Takes the answer to a write of a Workload on the hub.
    pub(super) fn workload_answered(
        &mut self,
        ticket: &Ticket,
        answer: &WriteOutcome,
        now: Timestamp,
    ) {
        // A rise without an answer is repeated. It skips a number, and nothing runs at that time that it would void.
        let Some(multikueue) = &mut self.multikueue else {
            return;
        };
        match (ticket.purpose, answer) {
            (Purpose::RaiseEpoch, WriteOutcome::Done(_)) => {
                multikueue.epoch_raised(&ticket.target.key, now);
            }
            (Purpose::Reserve, WriteOutcome::Stale | WriteOutcome::Unknown(_)) => {
                multikueue.reservation_failed(&ticket.target.key, now);
            }
            _ => {}
        }
    }

    /// Finds the worker of a Workload that an earlier process has placed.
    pub(super) fn recover_placement(&mut self, key: &Key, core: &Core, queues: &Queues) {
        let Core { workloads, scheduler, jobs, .. } = core;
        let (Some(multikueue), Some(record)) = (&self.multikueue, workloads.get(key)) else {
            return;
        };
        let (registry, fleet, flavors) = (&self.registry, &mut self.fleet, queues.flavors());
        let mut inputs = DispatchInputs { workloads, jobs, registry, fleet, scheduler, flavors };
        multikueue.recover_placement(record, &mut inputs);
    }

    /// A finished or deleted Workload takes no room any more once its worker's report shows it.
    pub(super) fn end_placement(&mut self, key: &Key, id: WorkloadId) {
        let multikueue = self.multikueue.as_ref();
        let finished = multikueue.and_then(|one| one.finished_at(key, id, &self.fleet));
        if let Some(version) = finished {
            self.fleet.workload_ended(id, version);
        }
        self.fleet.workload_removed(id);
    }

    /// Learns from a Workload that has finished how long others of its origin run. After a restart the finished Workloads of the
    /// first list teach it.
    pub(super) fn learn_run_time(&mut self, change: &WorkloadChange) {
        let finished = Some(WorkloadPhase::Finished);
        if self.multikueue.is_none() || change.phase != finished || change.phase_before == finished
        {
            return;
        }
        let Some(workload) = change.after.as_ref() else {
            return;
        };
        if let Some(run) = finished_run(workload) {
            let (group, end) = (run_time_group(workload), engine_time(run.end));
            self.fleet.record_run_time(&group, run.nanos, end);
        }
    }

    /// Takes a change of a Workload on the hub.
    pub(super) fn workload_changed(&mut self, change: &WorkloadChange, core: &mut Core) {
        if let Some(multikueue) = &mut self.multikueue {
            multikueue.workload_changed(change, &core.jobs, &mut core.ctx);
            self.registry.observe_guarantee(change, &mut self.fleet);
        }
    }

    /// Whether the copies of a Workload were withdrawn.
    pub(super) fn is_withdrawn(&self, key: &Key) -> bool {
        self.multikueue.as_ref().is_some_and(|one| one.is_withdrawn(key))
    }

    /// Whether pods of a dispatched Workload fail to start.
    pub(super) fn pod_starts(&self, key: &Key, workload: &Workload) -> PodStarts {
        let multikueue = self.multikueue.as_ref();
        multikueue.map_or(PodStarts::Unknown, |one| one.pod_starts(key, workload))
    }

    /// Decides about the copies of a Workload.
    pub(super) fn evaluate_copies(&mut self, key: &Key, core: &mut Core, queues: &Queues) {
        let Some(multikueue) = &mut self.multikueue else {
            return;
        };
        let Core { ctx, scheduler, workloads, jobs, .. } = core;
        let (registry, fleet, flavors) = (&self.registry, &mut self.fleet, queues.flavors());
        let inputs = DispatchInputs { workloads, jobs, registry, fleet, scheduler, flavors };
        for effect in multikueue.evaluate(key, inputs, ctx) {
            match effect {
                DispatchEffect::Propose(transition) => {
                    core.workloads.propose_quietly(key, transition);
                }
                DispatchEffect::Unreserve(message) => core.workloads.unreserve(key, message),
                DispatchEffect::RaiseEpoch(epoch) => {
                    let command = &WorkloadCommand::RaiseEpoch(epoch);
                    core.workloads.perform(key, command, None, &mut core.ctx);
                }
                DispatchEffect::ConfirmVersion { term, exactly_once } => {
                    let command = &WorkloadCommand::ConfirmVersion { term, exactly_once };
                    core.workloads.perform(key, command, None, &mut core.ctx);
                }
                DispatchEffect::Reclaim(pods) => {
                    let command = &WorkloadCommand::ReclaimDispatched(pods);
                    core.workloads.perform(key, command, None, &mut core.ctx);
                }
                DispatchEffect::WriteJobs(changes) => changes.iter().for_each(|(job, change)| {
                    core.jobs.write(job, change, &mut core.ctx);
                }),
            }
        }
    }

    /// Runs scheduling cycles. Returns whether a Workload got something.
    pub(super) fn run_cycles(&mut self, core: &mut Core, topology: &ClusterTopology) -> bool {
        let Core { ctx, scheduler, workloads, .. } = core;
        // Clusters that race are asked after the reservation.
        let races = self.multikueue.as_ref().is_some_and(MultiKueueDispatch::races);
        let work_of: DispatchedEntryOf = if races { |_, _, _| None } else { work_of };
        let changes_nodes =
            |key: &Key, workload: &Workload| topology.charges_pods_of(key, workload);
        let rules = (work_of, &changes_nodes as ChangesNodes<'_>);
        let run = scheduler.run_cycles(&mut self.fleet, workloads, rules, ctx);
        if let Some(multikueue) = &mut self.multikueue {
            run.reserved.iter().for_each(|key| multikueue.reserved(key, ctx.now));
        }
        run.progress
    }

    /// Moves queued work to workers with room. Returns whether any moves.
    pub(super) fn rebalance(&mut self, core: &mut Core, queues: &Queues) -> bool {
        let Some(multikueue) = &mut self.multikueue else {
            return false;
        };
        let Core { ctx, scheduler, workloads, jobs, .. } = core;
        let (registry, fleet, flavors) = (&self.registry, &mut self.fleet, queues.flavors());
        let mut inputs = DispatchInputs { workloads, jobs, registry, fleet, scheduler, flavors };
        multikueue.rebalance(&mut self.rebalancing, &mut inputs, ctx)
    }

    /// Decides about the leases of workers. What they allow now is decided about the Workloads of those workers.
    pub(super) fn keep_leases(&mut self, core: &mut Core) {
        let Some(multikueue) = &mut self.multikueue else {
            return;
        };
        let Core { workloads, ctx, .. } = core;
        let changed = multikueue.keep_leases(&mut self.registry, &mut self.fleet, workloads, ctx);
        if !changed.is_empty() {
            for name in &changed {
                core.ctx.agenda.now(Reevaluation::Cluster(name.clone()));
            }
            self.changed_workers.extend(changed);
            core.scheduler.request_cycle();
        }
    }

    /// Evaluates what the changes of workers concern.
    pub(in crate::control) fn workers_changed(&mut self, core: &mut Core) {
        let workers = std::mem::take(&mut self.changed_workers);
        let Some(multikueue) = self.multikueue.as_ref().filter(|_| !workers.is_empty()) else {
            return;
        };
        let Core { ctx, scheduler, workloads, jobs, .. } = core;
        let (registry, fleet) = (&self.registry, &mut self.fleet);
        let inputs = WorkerInputs { workloads, jobs, registry, fleet, scheduler };
        let concerned = multikueue.concerned_by(&workers, &inputs, ctx.outbox.writes());
        ctx.agenda.workloads(concerned);
        ctx.agenda.workloads(jobs.orphaned_workloads().cloned());
    }

    /// More clusters may race for Workloads, or fewer: those are evaluated again. Reports may be too old, and windows of drains
    /// open or close.
    pub(in crate::control) fn clusters_changed(&mut self, core: &mut Core) {
        let clusters = core.ctx.agenda.pending_clusters();
        if clusters.is_empty() {
            return;
        }
        // A drain that begins or ends asks for more.
        let clusters = clusters.clone();
        if self.registry.advance_drains(core.ctx.now, (&mut self.fleet, &mut core.ctx.agenda)) {
            core.evaluate_all_workloads();
            core.scheduler.request_cycle();
        }
        if let Some(multikueue) = &self.multikueue {
            multikueue.age_reports(&clusters, &self.registry, &mut self.fleet, &mut core.ctx);
            // The same fleet gives them no further cluster. The end of an exclusion is on the agenda of the Workload.
            let n_changes = self.fleet.n_changes();
            if std::mem::replace(&mut self.n_changes_raced, n_changes) != n_changes {
                core.ctx.agenda.workloads(multikueue.await_clusters().cloned());
            }
        }
        if self.registry.take_configs_changed() {
            let nominated = |one: &Workload| !one.status.nominated_cluster_names.is_empty();
            core.ctx.agenda.workloads(core.workloads.select(nominated));
        }
    }

    /// A ClusterQueue was observed.
    pub(super) fn observe_checks_of(&mut self, queue: &str, queues: &Queues) {
        // Else nothing is measured.
        if self.multikueue.is_some() {
            self.registry.observe_checks_of(queue, queues.spec_of(queue));
        }
    }

    /// Writes conditions and label keys of workers, and measures the conditions.
    pub(super) fn write_workers(&mut self, core: &mut Core, queues: &Queues) {
        let Some(multikueue) = &self.multikueue else {
            return;
        };
        let active = |name: &str, now, annotated| multikueue.active_condition(name, now, annotated);
        let ends_confirmation = |name: &str| multikueue.ends_confirmation(name);
        self.registry.write_conditions(active, ends_confirmation, &mut core.ctx);
        core.ctx.measurements.extend(self.registry.measure_statuses(&self.fleet));
        multikueue.request_label_keys(queues.flavors(), &mut core.ctx);
    }

    /// Decides about quotas that follow workers.
    pub(super) fn automate_quotas(&mut self, core: &mut Core, queues: &mut Queues) {
        let (Some(multikueue), Some(quotas)) = (&self.multikueue, &mut self.quotas) else {
            return;
        };
        if !quotas.begin(&mut core.ctx) {
            return;
        }
        let (registry, fleet) = (&self.registry, &self.fleet);
        let (workloads, now) = (&core.workloads, core.ctx.now);
        let presence = |config: &str, worker: &str| multikueue.presence(config, worker, fleet, now);
        let mut working: BTreeMap<Box<str>, bool> = BTreeMap::new();
        let mut has_work = |worker: &str| {
            *working.entry(worker.into()).or_insert_with(|| records_work(workloads, worker))
        };
        let mut known = KnownWorkers { presence: &presence, has_work: &mut has_work };
        let hub = queues.hub_queues();
        let decided: Vec<_> = hub
            .map(|queue| {
                let inputs = (registry, fleet, queues.flavors());
                let quota = quotas.evaluate(&queue, inputs, &mut known, &mut core.ctx);
                (Box::from(queue.name), quota)
            })
            .collect();
        for (name, quota) in decided {
            queues.set_managed_quota(name, quota, &mut core.ctx.agenda);
        }
    }

    /// Writes the copies of reports, and plans the connections.
    pub(super) fn plan_connections(&mut self, core: &mut Core) -> Option<Arc<ConnectionPlans>> {
        let multikueue = self.multikueue.as_mut()?;
        multikueue.write_report_copies(&self.registry, &mut core.ctx);
        let clean = multikueue.clean_workers(&self.registry, &core.ctx);
        let keep_for = multikueue.keep_connections_for();
        let Core { workloads, ctx, .. } = core;
        Some(self.registry.plan_connections(&clean, keep_for, workloads, ctx))
    }
}
