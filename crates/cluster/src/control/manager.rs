//! The control loop of a manager: a composition of machines.
//!
//! [`ManagerControl::observe`] routes each input to the machines that it concerns; [`ManagerControl::decide`] lets them
//! decide what follows, round by round, until nothing is left to evaluate. It neither waits nor reads a clock. After a
//! restart nothing is known but what the API servers hold, and nothing is decided before everything was listed.

use std::sync::Arc;

use crds::v1beta2::Workload;
use index::AffectedWorkloads;
use jiff::Timestamp;
use k8s_openapi::{Metadata, Resource, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

use super::{
    change::{for_each_object, is_list},
    control_loop::{Control, Decisions},
    core::{Core, JobEnvironment, MAX_ROUNDS},
    fleet::{FleetRegistry, work_of},
    input::{ManagerInput, WorkerInput},
    job_selection::JobSelection,
    listing::Listing,
    manager_settings::ManagerSettings,
    multikueue::{DispatchEffect, DispatchInputs, MultiKueueDispatch, multikueue_check},
    namespaces_and_priorities::NamespacesAndPriorities,
    outbox::{Destination, Purpose, Subject, Ticket, decode},
    queues::Queues,
    timers::Reevaluation,
    workloads::{StatusInputs, WorkloadChange, WorkloadCommand},
};

/// Kinds that every manager lists.
const KINDS: &[&str] = &[
    "Namespace",
    "LimitRange",
    "RuntimeClass",
    "PriorityClass",
    "WorkloadPriorityClass",
    "ResourceFlavor",
    "Cohort",
    "AdmissionCheck",
    "ClusterQueue",
    "LocalQueue",
    "Workload",
    "Job",
];

/// Kinds that a manager lists that dispatches to workers.
const DISPATCH_KINDS: &[&str] = &["MultiKueueConfig", "MultiKueueCluster", "DispatchPolicy"];

/// See the module.
#[derive(Debug)]
pub struct ManagerControl {
    pub(super) core: Core,
    selection: JobSelection,
    listing: Listing,
    configuration: NamespacesAndPriorities,
    queues: Queues,
    pub(super) registry: FleetRegistry,
    /// Dispatch to workers, if it is configured.
    pub(super) multikueue: Option<MultiKueueDispatch>,
}

impl ManagerControl {
    /// A manager that has observed nothing.
    #[must_use]
    pub fn new(settings: ManagerSettings) -> Self {
        let dispatch: &[&str] = if settings.dispatches() { DISPATCH_KINDS } else { &[] };
        Self {
            core: Core::new(settings.core),
            selection: settings.jobs,
            listing: Listing::new(KINDS.iter().chain(dispatch).copied()),
            configuration: NamespacesAndPriorities::default(),
            queues: Queues::default(),
            registry: FleetRegistry::default(),
            multikueue: settings.dispatch.map(MultiKueueDispatch::new),
        }
    }

    /// Whether everything was listed, so that decisions are made.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.listing.is_complete()
    }
}

impl Control for ManagerControl {
    type Input = ManagerInput;

    fn observe(&mut self, input: ManagerInput, now: Timestamp) {
        self.set_time(now);
        match input {
            ManagerInput::Namespace(change) => self.each(change, Self::namespace),
            ManagerInput::LimitRange(change) => self.each(change, |this, key, object| {
                let namespace = key.namespace.clone().unwrap_or_default();
                let affected = this.core.scheduler.update_defaults(|index| {
                    index.limit_range(&namespace, &key.name, object.as_ref())
                });
                this.reenter(&affected);
            }),
            ManagerInput::RuntimeClass(change) => self.each(change, |this, key, object| {
                let affected = this
                    .core
                    .scheduler
                    .update_defaults(|index| index.runtime_class(&key.name, object.as_ref()));
                this.reenter(&affected);
            }),
            ManagerInput::PriorityClass(change) => self.each(change, |this, key, object| {
                this.configuration.set_priority_class(key.name.clone(), object);
                this.evaluate_all_jobs();
            }),
            ManagerInput::WorkloadPriorityClass(change) => {
                self.each(change, Self::workload_priority_class);
            }
            ManagerInput::ResourceFlavor(change) => self.each(change, Self::resource_flavor),
            ManagerInput::Cohort(change) => self.each(change, |this, key, object| {
                let agenda = &mut this.core.ctx.agenda;
                this.core
                    .scheduler
                    .update(agenda, |index, names| index.cohort(names, &key.name, object.as_ref()));
            }),
            ManagerInput::AdmissionCheck(change) => self.each(change, Self::admission_check),
            ManagerInput::ClusterQueue(change) => self.each(change, Self::cluster_queue),
            ManagerInput::LocalQueue(change) => self.each(change, Self::local_queue),
            ManagerInput::Workload(change) => self.workloads(change),
            ManagerInput::Job(change) => self.each(change, |this, key, object| {
                this.core.jobs.observe(key, object, &mut this.core.ctx);
            }),
            ManagerInput::MultiKueueConfig(change) => self.each(change, |this, key, object| {
                this.registry.observe_config(key.name.clone(), object, &mut this.core.ctx.agenda);
                this.core.scheduler.request_cycle();
            }),
            ManagerInput::MultiKueueCluster(change) => {
                self.each(change, Self::multikueue_cluster);
            }
            ManagerInput::DispatchPolicy(change) => self.each(change, |this, key, object| {
                this.registry.observe_policy(key.name.clone(), object, &mut this.core.ctx.agenda);
                this.core.scheduler.request_cycle();
            }),
            ManagerInput::Worker(name, input) => self.worker(&name, input),
        }
    }

    fn answered(&mut self, ticket: &Ticket, answer: WriteOutcome, now: Timestamp) {
        self.set_time(now);
        let settled = self.core.ctx.settle(ticket, &answer);
        let ctx = &mut self.core.ctx;
        match (&ticket.target.to, ticket.target.subject) {
            (Destination::Worker(_), subject) => self.worker_answered(subject, ticket, answer),
            (Destination::Home, Subject::Workload) => {
                if ticket.purpose == Purpose::WorkloadCreate {
                    return self.workload_created(ticket, answer);
                }
                if ticket.purpose == Purpose::RaiseEpoch
                    && let (Some(multikueue), WriteOutcome::Done(_)) =
                        (&mut self.multikueue, &answer)
                {
                    multikueue.epoch_raised(&ticket.target.key, now);
                }
                let change = self.core.workloads.answered(ticket, answer, &settled, ctx);
                self.after_answer(&ticket.target.key, change.as_ref());
            }
            (Destination::Home, Subject::Job) => {
                let Core { jobs, workloads, ctx, .. } = &mut self.core;
                jobs.answered(ticket, answer, (&settled, workloads), ctx);
            }
            (Destination::Home, Subject::Capacity) => {
                if let Some(multikueue) = &mut self.multikueue {
                    multikueue.report_copy_answered(ticket, answer, ctx);
                }
            }
            (Destination::Home, Subject::MultiKueueCluster) => {
                self.registry.cluster_answered(ticket, answer);
            }
            (Destination::Home, Subject::AdmissionCheck) => {
                if let Some(check) = self.registry.check_answered(ticket, answer) {
                    let name = &ticket.target.key.name;
                    self.core.scheduler.update(&mut ctx.agenda, |index, names| {
                        index.admission_check(names, name, Some(&check))
                    });
                }
            }
            (
                Destination::Home,
                Subject::ClusterQueue | Subject::LocalQueue | Subject::ResourceFlavor,
            ) => self.queues.answered(ticket, answer),
        }
    }

    fn decide(&mut self, now: Timestamp) -> Decisions {
        self.set_time(now);
        if !self.listing.is_complete() {
            return Decisions::default();
        }
        self.core.advance();
        if let Some(multikueue) = &mut self.multikueue {
            multikueue.collect_garbage(&self.core.workloads, &mut self.core.ctx);
        }
        for _ in 0..MAX_ROUNDS {
            let n_evaluated = self.evaluate_jobs() + self.evaluate_workloads();
            if !self.run_cycles() && n_evaluated == 0 {
                break;
            }
        }
        self.write_conditions();
        if let Some(multikueue) = &self.multikueue {
            multikueue.request_label_keys(self.queues.flavors(), &mut self.core.ctx);
        }
        self.queues.evaluate(&self.core.scheduler, &mut self.core.ctx);
        let mut decisions = Decisions::default();
        if let Some(multikueue) = &mut self.multikueue {
            multikueue.write_report_copies(&self.registry, &mut self.core.ctx);
            decisions.clean = multikueue.clean_workers(&self.registry, &self.core.ctx);
        }
        self.core.complete(decisions)
    }
}

/// Inputs, one kind each.
impl ManagerControl {
    /// Applies every object of a change, and records that its kind was listed.
    fn each<K>(&mut self, change: Change<K>, mut apply: impl FnMut(&mut Self, &Key, Option<K>))
    where
        K: Metadata<Ty = ObjectMeta> + Resource,
    {
        let listed = is_list(&change);
        for_each_object(change, |key, object| apply(self, &key, object));
        if listed && self.listing.listed(K::KIND) {
            self.compare_all_workers();
            if let Some(multikueue) = &mut self.multikueue {
                let Core { workloads, ctx, .. } = &mut self.core;
                multikueue.announce_unregistered_workers(workloads, &self.registry, ctx);
            }
        }
    }

    fn namespace(&mut self, key: &Key, object: Option<k8s_openapi::api::core::v1::Namespace>) {
        let labels = object.as_ref().map(|one| one.metadata.labels.clone().unwrap_or_default());
        self.core.scheduler.update(&mut self.core.ctx.agenda, |index, names| {
            index.namespace(names, &key.name, labels.as_ref())
        });
        self.configuration.set_namespace(key.name.clone(), object);
        self.evaluate_all_jobs();
    }

    /// The value of a class is written into every Workload that refers to it.
    fn workload_priority_class(
        &mut self,
        key: &Key,
        object: Option<crds::v1beta2::WorkloadPriorityClass>,
    ) {
        let refers = |workload: &Workload| {
            let class = workload.spec.priority_class_ref.as_ref();
            class.is_some_and(|class| *class.name == *key.name)
        };
        self.core.ctx.agenda.workloads(self.core.workloads.select(refers));
        self.configuration.set_workload_priority_class(key.name.clone(), object);
        self.evaluate_all_jobs();
    }

    fn resource_flavor(&mut self, key: &Key, object: Option<crds::v1beta2::ResourceFlavor>) {
        let agenda = &mut self.core.ctx.agenda;
        self.core.scheduler.update(agenda, |index, names| {
            index.resource_flavor(names, &key.name, object.as_ref())
        });
        agenda.now(Reevaluation::Queues);
        agenda.now(Reevaluation::LabelKeys);
        self.queues.observe_flavor(key.name.clone(), object);
        self.evaluate_all_jobs();
    }

    fn admission_check(&mut self, key: &Key, object: Option<crds::v1beta2::AdmissionCheck>) {
        let agenda = &mut self.core.ctx.agenda;
        self.core.scheduler.update(agenda, |index, names| {
            index.admission_check(names, &key.name, object.as_ref())
        });
        self.registry.observe_check(&key.name, object, agenda);
        self.evaluate_all_workloads();
    }

    fn cluster_queue(&mut self, key: &Key, object: Option<crds::v1beta2::ClusterQueue>) {
        let agenda = &mut self.core.ctx.agenda;
        self.core
            .scheduler
            .update(agenda, |index, names| index.cluster_queue(names, &key.name, object.as_ref()));
        if self.queues.observe_cluster_queue(&key.name, object, agenda) {
            self.evaluate_all_workloads();
        }
    }

    fn local_queue(&mut self, key: &Key, object: Option<crds::v1beta2::LocalQueue>) {
        let agenda = &mut self.core.ctx.agenda;
        let namespace = key.namespace.clone().unwrap_or_default();
        self.core.scheduler.update(agenda, |index, names| {
            index.local_queue(names, &namespace, &key.name, object.as_ref())
        });
        if self.queues.observe_local_queue(key, object, agenda) {
            self.evaluate_all_workloads();
        }
    }

    fn workloads(&mut self, change: Change<Workload>) {
        // A new list shows what no watch has reported: many Workloads may be gone at once.
        let relisted = matches!(&change, Change::Reset { removed, .. } if !removed.is_empty());
        self.each(change, |this, key, object| this.observe_workload(key, object));
        if relisted {
            self.compare_all_workers();
        }
    }

    fn multikueue_cluster(&mut self, key: &Key, object: Option<crds::v1beta2::MultiKueueCluster>) {
        let ctx = &mut self.core.ctx;
        let connected =
            self.multikueue.as_ref().is_some_and(|multikueue| multikueue.is_connected(&key.name));
        self.registry.observe_cluster(&key.name, object, connected, &mut ctx.agenda);
        self.core.scheduler.request_cycle();
        if let Some(multikueue) = &mut self.multikueue {
            multikueue.registration_changed(&key.name, ctx);
        }
        ctx.agenda.workloads(self.core.jobs.orphaned_workloads().cloned());
    }

    fn worker(&mut self, name: &str, input: WorkerInput) {
        let Some(multikueue) = &mut self.multikueue else {
            return;
        };
        let Core { ctx, scheduler, workloads, jobs, .. } = &mut self.core;
        let registry = &mut self.registry;
        match input {
            WorkerInput::Connection(connection) => {
                if multikueue.connection_changed(name, connection, registry, ctx) {
                    self.evaluate_all_workloads();
                }
            }
            WorkerInput::GivenUp => multikueue.connection_given_up(name, registry, ctx),
            WorkerInput::Workload(change) => {
                let listed = is_list(&change);
                multikueue.clones_changed(name, change, (workloads, registry), ctx);
                self.compare_worker(name, listed);
            }
            WorkerInput::Job(change) => {
                let listed = is_list(&change);
                multikueue.jobs_changed(name, change, (jobs, registry), ctx);
                self.compare_worker(name, listed);
            }
            WorkerInput::Capacity(change) => {
                multikueue.report_changed(name, change, (scheduler, registry), ctx);
            }
        }
    }

    fn compare_worker(&mut self, name: &str, listed: bool) {
        let hub = (&self.core.workloads, self.listing.is_complete());
        let ctx = &mut self.core.ctx;
        let compared =
            listed && self.multikueue.as_mut().is_some_and(|one| one.compare(name, hub, ctx));
        if compared {
            self.evaluate_all_workloads();
        }
    }

    fn compare_all_workers(&mut self) {
        let complete = self.listing.is_complete();
        let Core { workloads, ctx, .. } = &mut self.core;
        let multikueue = self.multikueue.as_mut();
        if multikueue.is_some_and(|one| one.compare_all(workloads, complete, ctx)) {
            self.evaluate_all_workloads();
        }
    }
}

/// Workloads and jobs.
impl ManagerControl {
    fn set_time(&mut self, now: Timestamp) {
        self.core.ctx.now = now;
        if let Some(multikueue) = &mut self.multikueue {
            multikueue.begin(now);
        }
    }

    /// Records a Workload; `None` if it is gone.
    fn observe_workload(&mut self, key: &Key, object: Option<Workload>) {
        let Some(object) = object else {
            let removed = self.core.workloads.remove(key);
            return removed.iter().for_each(|change| self.route(change));
        };
        if self.core.workloads.is_replaced_by(key, &object) {
            self.observe_workload(key, None);
        }
        let new = self.core.workloads.get(key).is_none();
        let scheduler = &mut self.core.scheduler;
        let change = self.core.workloads.observe(key, object, || scheduler.intern(key));
        change.iter().for_each(|change| self.route(change));
        if new {
            self.recover_placement(key);
        }
    }

    /// Routes a change of a Workload to every machine.
    fn route(&mut self, change: &WorkloadChange) {
        if change.voids_reservation {
            self.registry.fleet_mut().unplace(change.id);
        }
        if self.core.workload_changed(change) {
            self.end_placement(change);
        }
        self.queues.workload_changed(change, &mut self.core.ctx.agenda);
        if let Some(multikueue) = &mut self.multikueue {
            multikueue.workload_changed(change, self.core.ctx.now);
        }
    }

    /// A finished or deleted Workload takes no room any more once its worker's report shows it.
    fn end_placement(&mut self, change: &WorkloadChange) {
        let multikueue = self.multikueue.as_ref();
        let finished =
            multikueue.and_then(|one| one.finished_at(&change.key, change.id, &self.registry));
        let fleet = self.registry.fleet_mut();
        if let Some(version) = finished {
            fleet.workload_ended(change.id, version);
        }
        fleet.workload_removed(change.id);
    }

    fn recover_placement(&mut self, key: &Key) {
        let Core { workloads, scheduler, jobs, .. } = &self.core;
        let (Some(multikueue), Some(record)) = (&self.multikueue, workloads.get(key)) else {
            return;
        };
        let (registry, flavors) = (&mut self.registry, self.queues.flavors());
        let mut inputs = DispatchInputs { workloads, jobs, registry, scheduler, flavors };
        multikueue.recover_placement(record, &mut inputs);
    }

    /// Enters Workloads again whose requests are read differently now.
    fn reenter(&mut self, affected: &AffectedWorkloads) {
        let changes = match affected {
            AffectedWorkloads::None => return,
            AffectedWorkloads::InNamespace(name) => {
                self.core.workloads.reenter(|key, _| key.namespace.as_deref() == Some(&**name))
            }
            AffectedWorkloads::OfRuntimeClass(name) => {
                self.core.workloads.reenter(|_, workload| {
                    let sets = workload.spec.pod_sets.iter();
                    let mut pods = sets.filter_map(|set| set.template.spec.as_ref());
                    pods.any(|pod| pod.runtime_class_name.as_ref() == Some(name))
                })
            }
        };
        changes.iter().for_each(|change| self.route(change));
    }

    fn evaluate_all_jobs(&mut self) {
        self.core.ctx.agenda.jobs(self.core.jobs.keys().cloned());
    }

    fn evaluate_all_workloads(&mut self) {
        let agenda = &mut self.core.ctx.agenda;
        agenda.workloads(self.core.workloads.keys().cloned());
        agenda.workloads(self.core.jobs.orphaned_workloads().cloned());
    }

    fn evaluate_jobs(&mut self) -> usize {
        let Self { core, selection, configuration, queues, .. } = self;
        let environment = JobEnvironment {
            flavors: queues.flavors(),
            priority: &|source| configuration.priority(source),
            managed: &|key, job| selection.selects(key, job, configuration),
        };
        core.evaluate_jobs(&environment)
    }

    fn evaluate_workloads(&mut self) -> usize {
        let keys = self.core.ctx.agenda.take_workloads();
        for key in &keys {
            if let Some(change) = self.core.ended_backoff(key) {
                self.route(&change);
                self.core.ctx.agenda.withdraw_workload(key);
            }
            self.evaluate_copies(key);
            if self.core.prepare_workload(key, self.registry.fleet_mut()) {
                self.evaluate_workload(key);
            }
        }
        keys.len()
    }

    fn evaluate_workload(&mut self, key: &Key) {
        let Some(record) = self.core.workloads.get(key) else {
            return;
        };
        let workload = Arc::clone(record.object());
        let inputs = StatusInputs {
            stop: self.queues.stop_policy(key, &workload),
            multikueue_check: multikueue_check(record, &self.core.scheduler),
            withdrawn: self.multikueue.as_ref().is_some_and(|one| one.is_withdrawn(key)),
            class_priority: self.configuration.class_priority(&workload),
            ..StatusInputs::default()
        };
        if self.core.evaluate_workload(key, inputs, self.registry.fleet_mut()) {
            self.queues.mark(key, &workload, &mut self.core.ctx.agenda);
        }
    }

    fn evaluate_copies(&mut self, key: &Key) {
        let Some(multikueue) = &mut self.multikueue else {
            return;
        };
        let Core { ctx, scheduler, workloads, jobs, .. } = &mut self.core;
        let (registry, flavors) = (&mut self.registry, self.queues.flavors());
        let inputs = DispatchInputs { workloads, jobs, registry, scheduler, flavors };
        for effect in multikueue.evaluate(key, inputs, ctx) {
            match effect {
                DispatchEffect::Propose(transition) => {
                    self.core.workloads.propose_quietly(key, transition);
                }
                DispatchEffect::Unreserve(message) => self.core.workloads.unreserve(key, message),
                DispatchEffect::RaiseEpoch => {
                    let command = &WorkloadCommand::RaiseEpoch;
                    self.core.workloads.perform(key, command, &mut self.core.ctx);
                }
                DispatchEffect::WriteJob(job, change) => {
                    self.core.jobs.write(&job, &change, &mut self.core.ctx);
                }
            }
        }
    }

    /// Runs scheduling cycles. Returns whether a Workload got something.
    fn run_cycles(&mut self) -> bool {
        let Core { ctx, scheduler, workloads, .. } = &mut self.core;
        let run = scheduler.run_cycles(self.registry.fleet_mut(), workloads, work_of, ctx);
        if let Some(multikueue) = &mut self.multikueue {
            run.reserved.iter().for_each(|key| multikueue.reserved(key, ctx.now));
        }
        run.progress
    }

    fn write_conditions(&mut self) {
        let (Some(multikueue), registry) = (&self.multikueue, &self.registry) else {
            return;
        };
        let active =
            |name: &str| multikueue.active_condition(name, registry.is_cleanup_confirmed(name));
        registry.write_conditions(active, &mut self.core.ctx);
    }
}

/// Answers.
impl ManagerControl {
    fn workload_created(&mut self, ticket: &Ticket, answer: WriteOutcome) {
        if let WriteOutcome::Done(value) = answer
            && let Some(workload) = decode(value)
        {
            self.observe_workload(&ticket.target.key, Some(workload));
        }
    }

    fn after_answer(&mut self, key: &Key, change: Option<&WorkloadChange>) {
        change.into_iter().for_each(|change| self.route(change));
        let Core { workloads, jobs, ctx, .. } = &mut self.core;
        if let Some(record) = workloads.get(key) {
            jobs.evaluate_jobs_of(key, record.object(), ctx);
        }
    }

    fn worker_answered(&mut self, subject: Subject, ticket: &Ticket, answer: WriteOutcome) {
        let Some(multikueue) = &mut self.multikueue else {
            return;
        };
        let Core { ctx, scheduler, workloads, jobs, .. } = &mut self.core;
        let registry = &mut self.registry;
        if subject == Subject::Capacity {
            return multikueue.label_keys_answered(ticket, answer, (scheduler, registry), ctx);
        }
        let flavors = self.queues.flavors();
        let mut inputs = DispatchInputs { workloads, jobs, registry, scheduler, flavors };
        multikueue.answered(ticket, answer, &mut inputs, ctx);
    }
}
