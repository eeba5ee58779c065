//! The control loop of a manager: a composition of machines.
//!
//! [`ManagerControl::observe`] routes each input to the machines that it concerns; [`ManagerControl::decide`] lets them
//! decide what follows, round by round, until nothing is left to evaluate. It neither waits nor reads a clock. After a
//! restart nothing is known but what the API servers hold, and nothing is decided before everything was listed.
//!
//! | file | concept |
//! |---|---|
//! | `workload_changes` | changes of Workloads, routed to every machine |
//! | `rounds` | what is decided in a round |
//! | `answers` | answers to writes |
//!
//! What concerns workers is behind one part of it, `dispatching`, and what concerns pods in its own cluster behind `pod_machines`.

mod answers;
mod dispatching;
mod pod_machines;
mod rounds;
mod workload_changes;

use std::{collections::BTreeSet, sync::Arc};

use ::jobs::{JobObject, Kind, admitted_infos::AssignedFlavors, lookups::LookupKind};
use crds::{
    meta::is_true,
    names::conditions::FINISHED,
    v1alpha1::DispatchPolicy,
    v1beta2::{
        AdmissionCheck, ClusterQueue, LocalQueue, MultiKueueCluster, MultiKueueConfig,
        ProvisioningRequestConfig, Workload, WorkloadPriorityClass,
    },
};
use dispatch::Fleet;
use index::Index;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    core::v1::{LimitRange, Namespace},
    node::v1::RuntimeClass,
    scheduling::v1::PriorityClass,
};
use kube::{Resource, core::DynamicObject};
use provisioning::{EntryTemplate, ProvisioningRequest};
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

use self::{dispatching::Dispatching, pod_machines::PodMachines};

use super::{
    change::for_each_object,
    concurrent_admission::ConcurrentAdmission,
    core::{Core, MAX_ROUNDS},
    decisions::{Control, Decisions},
    fleet::FleetRegistry,
    input::{ManagerInput, WorkerInput},
    job_selection::JobSelection,
    listing::{DISPATCH_KINDS, Listing, MANAGER_KINDS, listed_name, listed_names},
    manager_settings::ManagerSettings,
    multikueue::{HubObjects, MultiKueueDispatch, Rebalancing},
    namespaces_and_priorities::NamespacesAndPriorities,
    observed::Observed,
    outbox::{Destination, Purpose, Subject, Ticket},
    provisioning::Provisioning,
    queue_objects::QueueObjects,
    queues::Queues,
    quota_automation::QuotaAutomation,
    timers::Reevaluation,
    topology::{WatchedNode, WatchedPod},
    unavailable_integrations::UnavailableIntegrations,
    workload_measurements::WorkloadNumbers,
};

/// The namespace with the identity of a cluster.
const KUBE_SYSTEM: &str = "kube-system";

/// The composition of machines of a manager.
#[derive(Debug)]
pub struct ManagerControl {
    pub(super) core: Core,
    selection: JobSelection,
    listing: Listing,
    configuration: NamespacesAndPriorities,
    queues: Queues,
    numbers: WorkloadNumbers,
    pods: PodMachines,
    provisioning: Provisioning,
    concurrent_admission: ConcurrentAdmission,
    integrations: UnavailableIntegrations,
    pub(super) dispatching: Dispatching,
}

impl ManagerControl {
    /// A manager that has observed nothing.
    #[must_use]
    pub fn new(settings: ManagerSettings) -> Self {
        let dispatch: &[&str] = if settings.dispatches() { DISPATCH_KINDS } else { &[] };
        let concurrent_admission = ConcurrentAdmission::new(
            settings.core.scheduler.index.concurrent_admission,
            settings.core.jobs.gates.short_names,
        );
        let numbers = WorkloadNumbers::new(settings.core.scheduler.index.workload_labels.clone());
        let mut core = Core::new(settings.core);
        settings.begin_events.into_iter().for_each(|event| core.ctx.outbox.publish(event));
        let names = MANAGER_KINDS.iter().chain(dispatch).copied().map(Box::from);
        Self {
            core,
            selection: settings.jobs,
            listing: Listing::new(names.chain(listed_names(&settings.kinds))),
            configuration: NamespacesAndPriorities::default(),
            queues: Queues::new(settings.queue_status_period),
            numbers,
            pods: PodMachines::new(settings.node_replacement),
            provisioning: Provisioning::new(settings.cleans_up_provisioning),
            concurrent_admission,
            integrations: UnavailableIntegrations::new(settings.namespace),
            dispatching: Dispatching {
                registry: FleetRegistry::default(),
                fleet: Fleet::default(),
                rebalancing: Rebalancing::default(),
                changed_workers: BTreeSet::new(),
                n_changes_raced: 0,
                quotas: settings.automates_quotas.then(QuotaAutomation::default),
                multikueue: settings
                    .dispatch
                    .map(|config| MultiKueueDispatch::new(config, settings.kinds)),
            },
        }
    }

    /// Whether everything was listed, so that decisions are made.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.listing.is_complete()
    }

    fn set_time(&mut self, now: Timestamp) {
        self.core.ctx.now = now;
        if let Some(multikueue) = &mut self.dispatching.multikueue {
            multikueue.begin(now);
        }
    }
}

impl Control for ManagerControl {
    type Input = ManagerInput;

    fn observe(&mut self, input: ManagerInput, now: Timestamp) {
        self.set_time(now);
        match input {
            ManagerInput::Namespace(change) => self.namespaces(change),
            ManagerInput::LimitRange(change) => self.limit_ranges(change),
            ManagerInput::RuntimeClass(change) => self.runtime_classes(change),
            ManagerInput::PriorityClass(change) => self.priority_classes(change),
            ManagerInput::WorkloadPriorityClass(change) => self.workload_priority_classes(change),
            ManagerInput::ResourceFlavor(change) => self.each(change, |this, key, flavor| {
                if this.queue_objects().resource_flavor(key, flavor) {
                    this.pods.topology.flavor_changed();
                }
            }),
            ManagerInput::Cohort(change) => self.each(change, |this, key, cohort| {
                this.queue_objects().cohort(key, cohort);
            }),
            ManagerInput::Topology(change) => self.each(change, |this, key, topology| {
                this.queue_objects().topology(key, topology);
            }),
            ManagerInput::Node(change) => self.nodes(change),
            ManagerInput::Pod(change) => self.topology_pods(change),
            ManagerInput::ElasticPod(change) => {
                self.pods.elastic_pods(change, &mut self.core.ctx);
            }
            ManagerInput::TerminatingPod(change) => {
                self.pods.terminating_pods(change, &mut self.core.ctx);
            }
            ManagerInput::NodeReachability(change) => {
                self.pods.nodes(change, &mut self.core.ctx);
            }
            ManagerInput::AdmissionCheck(change) => self.each(change, Self::admission_check),
            ManagerInput::ProvisioningRequestConfig(change) => {
                self.each(change, Self::provisioning_config);
            }
            ManagerInput::ProvisioningRequest(change) => self.provisioning_requests(change),
            ManagerInput::PodTemplate(change) => self.pod_templates(change),
            ManagerInput::ClusterQueue(change) => self.each(change, Self::cluster_queue),
            ManagerInput::LocalQueue(change) => self.each(change, Self::local_queue),
            ManagerInput::Workload(change) => self.workloads(change),
            ManagerInput::Job(kind, change) => self.job(&kind, change),
            ManagerInput::Members(kind, change) => self.members(&kind, change),
            ManagerInput::LookedUp(kind, change) => self.looked_up(&kind, change),
            ManagerInput::MultiKueueConfig(change) => self.each(change, Self::multikueue_config),
            ManagerInput::MultiKueueCluster(change) => self.each(change, Self::multikueue_cluster),
            ManagerInput::DispatchPolicy(change) => self.each(change, Self::dispatch_policy),
            ManagerInput::Incarnation(one) => {
                let changes = |all: &mut MultiKueueDispatch| all.incarnation_changed(one);
                self.dispatching.incarnation(changes, &mut self.core, &self.listing);
            }
            ManagerInput::Worker(name, input) => self.worker(&name, input),
        }
    }

    fn answered(&mut self, ticket: &Ticket, answer: WriteOutcome, now: Timestamp) {
        self.set_time(now);
        let answer = self.dispatching.confirmed_by_watch(ticket, answer);
        let settled = self.core.ctx.settle(ticket, &answer);
        match (&ticket.target.to, &ticket.target.subject) {
            (Destination::Worker(_), subject) => {
                let inputs = (&mut self.core, &self.queues);
                self.dispatching.worker_answered(subject, ticket, answer, inputs);
            }
            (Destination::Home, Subject::Workload) => {
                self.workload_answered(ticket, answer, &settled);
            }
            (Destination::Home, Subject::Job(_)) if PodMachines::writes(ticket.purpose) => {
                let Core { workloads, ctx, .. } = &mut self.core;
                self.pods.answered(ticket, answer, (&settled, workloads), ctx);
            }
            (Destination::Home, Subject::Job(_)) => {
                let Core { jobs, workloads, ctx, .. } = &mut self.core;
                jobs.answered(ticket, answer, (&settled, workloads), ctx);
            }
            (Destination::Home, Subject::Owner { .. }) if ticket.purpose == Purpose::Ancestor => {
                self.core.jobs.owner_answered(&answer, &settled, now);
            }
            (Destination::Home, Subject::Capacity) => {
                if let Some(multikueue) = &mut self.dispatching.multikueue {
                    multikueue.report_copy_answered(ticket, answer, &mut self.core.ctx);
                }
            }
            (Destination::Home, Subject::Incarnation) => {
                let changes = |all: &mut MultiKueueDispatch| all.incarnation_answered(answer);
                self.dispatching.incarnation(changes, &mut self.core, &self.listing);
            }
            (Destination::Home, Subject::MultiKueueCluster) => {
                self.dispatching.registry.cluster_answered(ticket, answer);
            }
            (Destination::Home, Subject::ProvisioningRequest | Subject::PodTemplate) => {
                let Core { workloads, ctx, .. } = &mut self.core;
                let workload = match &ticket.waiter {
                    Reevaluation::Workload(key) => workloads.get(key).map(|one| &**one.object()),
                    _ => None,
                };
                self.provisioning.answered(ticket, answer, &settled, (workload, ctx));
            }
            (Destination::Home, Subject::AdmissionCheck) => self.check_answered(ticket, answer),
            (Destination::Home, Subject::Owner { .. }) => {
                let Core { jobs, ctx, .. } = &mut self.core;
                jobs.set_read(ticket, &answer, ctx);
            }
            (
                Destination::Home,
                Subject::ClusterQueue
                | Subject::Cohort
                | Subject::LocalQueue
                | Subject::ResourceFlavor
                | Subject::Topology
                | Subject::Lease,
            ) => self.queues.answered(ticket, answer),
        }
    }

    fn clock_jumped(&mut self, by: SignedDuration) {
        let Self {
            core,
            selection: _,
            listing: _,
            configuration: _,
            // `kept_back` ignores a `not_before` that is further away than the period, as after a clock that was set back.
            queues: _,
            numbers,
            pods: _,
            provisioning: _,
            concurrent_admission: _,
            // `is_due` ignores a `since` in the future.
            integrations: _,
            dispatching,
        } = self;
        core.clock_jumped(by);
        numbers.clock_jumped(by);
        if dispatching.multikueue.is_none() {
            return;
        }
        dispatching.clock_jumped(by);
        // Deadlines were set for the time before the jump.
        core.evaluate_all_workloads();
        core.ctx.agenda.now(Reevaluation::Clusters);
    }

    fn decide(&mut self, now: Timestamp) -> Decisions {
        self.set_time(now);
        // Before every kind was listed, quota in use would be reserved again.
        if !self.listing.is_complete() {
            return Decisions::default();
        }
        self.integrations.report(&mut self.core.ctx);
        self.core.advance();
        if let Some(multikueue) = &mut self.dispatching.multikueue {
            let (workloads, registry) = (&self.core.workloads, &self.dispatching.registry);
            let objects = HubObjects { workloads, registry, complete: true };
            multikueue.keep(objects, &mut self.core.ctx);
        }
        self.dispatching.keep_leases(&mut self.core);
        self.dispatching.workers_changed(&mut self.core);
        self.pods.topology.evaluate_suspects(&self.core.workloads, &mut self.core.ctx);
        // Before `write_workers`, which takes the message that clusters have changed.
        self.dispatching.clusters_changed(&mut self.core);
        for _ in 0..MAX_ROUNDS {
            let n_evaluated = self.evaluate_jobs() + self.evaluate_workloads();
            let Core { workloads, scheduler, ctx, .. } = &mut self.core;
            self.pods.topology.update_engine(workloads, scheduler, ctx);
            // A cycle without progress may still have made something due: another reason to be pending.
            let progress = self.dispatching.run_cycles(&mut self.core, &self.pods.topology);
            let settled = !progress && n_evaluated == 0 && !self.core.has_work();
            // What waits for room has got what it could.
            if settled && !self.dispatching.rebalance(&mut self.core, &self.queues) {
                break;
            }
        }
        let flavors = AssignedFlavors::Own(self.queues.flavors());
        let Core { workloads, ctx, .. } = &mut self.core;
        self.pods.evaluate(workloads, flavors, ctx);
        self.provisioning.write_conditions(&mut self.core.ctx);
        self.dispatching.write_workers(&mut self.core, &self.queues);
        self.dispatching.automate_quotas(&mut self.core, &mut self.queues);
        self.queues.evaluate(&self.core.scheduler, &mut self.core.ctx);
        // Last: a worker is clean only if no create of this decision is on its way there.
        let connections = self.dispatching.plan_connections(&mut self.core);
        self.core.complete(Decisions { connections, ..Decisions::default() })
    }

    fn dump(&self) -> String {
        self.core.scheduler.dump()
    }
}

/// Inputs, one kind each.
impl ManagerControl {
    fn nodes(&mut self, change: Change<Observed<WatchedNode>>) {
        self.pods.topology.observe_nodes(&change);
        self.each(change, |this, key, node| this.pods.observe_node(&key.name, node.as_ref()));
    }

    fn topology_pods(&mut self, change: Change<Observed<WatchedPod>>) {
        let change = self.pods.topology.observe_pods(change);
        self.each(change, |this, key, pod| {
            this.pods.topology.observe_pod(key, pod.as_ref(), &mut this.core.ctx);
        });
    }

    fn provisioning_requests(&mut self, change: Change<ProvisioningRequest>) {
        let listed = change.is_list().then_some("ProvisioningRequest");
        let Core { workloads, ctx, .. } = &mut self.core;
        self.provisioning.observe_requests(change, workloads, ctx);
        self.listed(listed);
    }

    fn pod_templates(&mut self, change: Change<EntryTemplate>) {
        let listed = change.is_list().then_some("PodTemplate");
        let Core { workloads, ctx, .. } = &mut self.core;
        self.provisioning.observe_templates(change, workloads, ctx);
        self.listed(listed);
    }

    /// Applies every object of a change, and records that its kind was listed.
    fn each<K: Resource<DynamicType = ()>>(
        &mut self,
        change: Change<K>,
        mut apply: impl FnMut(&mut Self, &Key, Option<Arc<K>>),
    ) {
        let listed = change.is_list();
        for_each_object(change, |key, object| apply(self, &key, object));
        self.listed(listed.then(|| K::kind(&())).as_deref());
    }

    /// Records that everything of a kind was listed.
    fn listed(&mut self, kind: Option<&str>) {
        if kind.is_some_and(|kind| self.listing.listed(kind)) {
            self.dispatching.listed(&mut self.core, &self.listing);
        }
    }

    fn namespaces(&mut self, change: Change<Namespace>) {
        self.each(change, |this, key, object| this.namespace(key, object.as_deref()));
    }

    fn limit_ranges(&mut self, change: Change<LimitRange>) {
        self.each(change, |this, key, object| {
            let namespace = key.namespace.clone().unwrap_or_default();
            this.reenter(|index| index.limit_range(&namespace, &key.name, object.as_deref()));
        });
    }

    fn runtime_classes(&mut self, change: Change<RuntimeClass>) {
        self.each(change, |this, key, object| {
            this.reenter(|index| index.runtime_class(&key.name, object.as_deref()));
        });
    }

    fn priority_classes(&mut self, change: Change<PriorityClass>) {
        self.each(change, |this, key, object| {
            this.configuration.set_priority_class((*key.name).into(), object.as_deref());
            // A job without a Workload may have waited for this class; nothing else tries it again.
            this.core.evaluate_all_jobs();
        });
    }

    fn workload_priority_classes(&mut self, change: Change<WorkloadPriorityClass>) {
        self.each(change, |this, key, object| {
            this.workload_priority_class(key, object.as_deref());
        });
    }

    fn namespace(&mut self, key: &Key, object: Option<&Namespace>) {
        self.queue_objects().namespace(key, object);
        let uid = object.and_then(|one| one.metadata.uid.as_deref());
        if let (Some(multikueue), Some(uid)) = (&mut self.dispatching.multikueue, uid)
            && *key.name == *KUBE_SYSTEM
        {
            multikueue.set_own_cluster(uid, &mut self.core.ctx);
        }
        self.configuration.set_namespace((*key.name).into(), object);
        self.core.evaluate_all_jobs();
    }

    /// The value of a class is written into every Workload that refers to it.
    fn workload_priority_class(&mut self, key: &Key, object: Option<&WorkloadPriorityClass>) {
        let refers = |workload: &Workload| {
            let class = workload.spec.priority_class_ref.as_ref();
            class.is_some_and(|class| *class.name == *key.name)
        };
        self.core.ctx.agenda.workloads(self.core.workloads.select(refers));
        self.configuration.set_workload_priority_class((*key.name).into(), object);
        self.core.evaluate_all_jobs();
    }

    /// Queues, and what they refer to.
    fn queue_objects(&mut self) -> QueueObjects<'_> {
        QueueObjects { queues: &mut self.queues, core: &mut self.core }
    }

    fn cluster_queue(&mut self, key: &Key, object: Option<Arc<ClusterQueue>>) {
        self.queue_objects().cluster_queue(key, object);
        self.dispatching.observe_checks_of(&key.name, &self.queues);
        self.reenter(Index::take_workloads_to_reenter);
    }

    fn local_queue(&mut self, key: &Key, object: Option<Arc<LocalQueue>>) {
        self.queue_objects().local_queue(key, object);
        self.reenter(Index::take_workloads_to_reenter);
    }

    fn admission_check(&mut self, key: &Key, object: Option<Arc<AdmissionCheck>>) {
        let agenda = &mut self.core.ctx.agenda;
        self.queues.observe_check(&key.name, object.clone(), agenda);
        self.provisioning.observe_check(&key.name, object.clone(), agenda);
        let newest = self.dispatching.registry.observe_check(&key.name, object, agenda);
        self.queue_objects().admission_check(key, newest.as_deref());
        self.reenter(Index::take_workloads_to_reenter);
    }

    fn provisioning_config(&mut self, key: &Key, object: Option<Arc<ProvisioningRequestConfig>>) {
        let Core { workloads, ctx, .. } = &mut self.core;
        self.provisioning.observe_config(&key.name, object, workloads, &mut ctx.agenda);
    }

    fn job(&mut self, kind: &Kind, change: Change<JobObject>) {
        let listed = change.is_list();
        self.integrations.observe(kind, &change, &mut self.core.ctx);
        self.core.observe_jobs(kind, change);
        self.listed(listed.then(|| listed_name(kind)).as_deref());
    }

    fn members(&mut self, kind: &Kind, change: Change<JobObject>) {
        let listed = self.core.observe_members(kind, change);
        self.listed(listed.as_deref());
    }

    fn looked_up(&mut self, kind: &LookupKind, change: Change<DynamicObject>) {
        let listed = self.core.observe_looked_up(kind, change);
        self.listed(listed.as_deref());
    }

    fn workloads(&mut self, mut change: Change<Workload>) {
        // Work that ran teaches how long the work runs that is placed after it.
        if let Change::Reset { objects, .. } = &mut change {
            objects.sort_by_cached_key(|one| !is_true(&one.status.conditions, FINISHED));
        }
        // A new list shows what no watch has reported: many Workloads may be gone at once.
        let relisted = matches!(&change, Change::Reset { removed, .. } if !removed.is_empty());
        self.each(change, |this, key, object| this.observe_workload(key, object));
        if relisted {
            self.dispatching.compare_all_workers(&mut self.core, &self.listing);
        }
    }

    fn multikueue_config(&mut self, key: &Key, object: Option<Arc<MultiKueueConfig>>) {
        let Dispatching { registry, fleet, .. } = &mut self.dispatching;
        let parts = (fleet, &mut self.core.ctx.agenda);
        registry.observe_config((*key.name).into(), object, parts);
        // No event of the engine says that a cluster was added, which may have room for inadmissible Workloads.
        self.core.scheduler.request_cycle();
    }

    fn dispatch_policy(&mut self, key: &Key, object: Option<Arc<DispatchPolicy>>) {
        let Dispatching { registry, fleet, .. } = &mut self.dispatching;
        let parts = (fleet, &mut self.core.ctx.agenda);
        registry.observe_policy((*key.name).into(), object, parts);
        // Deadlines of losses and drains may be others now.
        self.core.evaluate_all_workloads();
        self.core.scheduler.request_cycle();
    }

    fn multikueue_cluster(&mut self, key: &Key, object: Option<Arc<MultiKueueCluster>>) {
        self.dispatching.multikueue_cluster(key, object, &mut self.core);
    }

    fn worker(&mut self, name: &str, input: WorkerInput) {
        if self.dispatching.worker(name, input, &mut self.core) {
            self.dispatching.compare_worker(name, &mut self.core, &self.listing);
        }
    }
}
