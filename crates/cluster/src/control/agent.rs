//! The control loop of an agent: the machines of the core, and the capacity of its cluster in place of queues.
//!
//! In mode Thin clones queue in one queue that is not in the API; its quota is the capacity of the cluster. In mode Quota they queue
//! in the LocalQueues of the cluster (`agent_queues`). In both a clone is admitted only if its pods have room on nodes. Nothing is decided
//! before everything was listed.

use std::{collections::BTreeSet, sync::Arc};

use ::jobs::{
    GenericJob, JobGates, Kind, Kinds, integrations::controller, prebuilt::prebuilt_name,
};
use crds::{
    meta::is_true,
    names::{conditions::EVICTED, reasons::PROVISIONING_FAILED},
    v1beta2::Workload,
};
use dispatch::Fleet;
use index::{AffectedWorkloads, Index};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::LimitRange, node::v1::RuntimeClass};
use kube::Resource;
use provisioning::{CheckUpdate, EntryTemplate, ProvisioningRequest};
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

use super::{
    agent_policy::{AgentPolicy, job_kind},
    agent_provisioning::AgentProvisioning,
    agent_queues::AgentQueues,
    agent_settings::AgentSettings,
    capacity::{
        CapacityInputs, LocalCapacity, ObjectName, OwnerSearch, RefusedOwners, RefusedPodsEvent,
        ReportInputs, assigned_nodes,
    },
    change::for_each_object,
    core::{Core, JobEnvironment, MAX_ROUNDS},
    decisions::{Control, Decisions},
    elastic_pods::ElasticPods,
    elastic_slices::replaced,
    grants::AgentGrants,
    input::{AgentInput, QueueInput},
    job_key::JobKey,
    listing::{AGENT_KINDS, ASKING_KINDS, Listing, QUEUE_KINDS, listed_name, listed_names},
    namespaces_and_priorities::NamespacesAndPriorities,
    observed::Observed,
    outbox::{Purpose, Subject, Ticket},
    scheduling::ChangesNodes,
    timers::Reevaluation,
    workloads::{StatusInputs, Transition, WorkloadChange},
};

/// The composition of machines of an agent.
#[derive(Debug)]
pub struct AgentControl {
    core: Core,
    policy: AgentPolicy,
    origin: String,
    listing: Listing,
    queues: AgentQueues,
    /// Its only cluster is the agent's own.
    fleet: Fleet,
    capacity: LocalCapacity,
    provisioning: AgentProvisioning,
    elastic_pods: ElasticPods,
    grants: AgentGrants,
    /// Children of jobs that got no pods.
    owners: RefusedOwners,
    /// Kinds of jobs that run here.
    kinds: Kinds,
    /// Clones that wait for a grant.
    held: BTreeSet<Key>,
    /// Empty: a worker has no priority classes of Kueue.
    configuration: NamespacesAndPriorities,
}

impl AgentControl {
    /// An agent that has observed nothing.
    #[must_use]
    pub fn new(settings: AgentSettings) -> Self {
        let queues = if settings.has_queues() { QUEUE_KINDS } else { &[] };
        let asked = if settings.asks_for_nodes() { ASKING_KINDS } else { &[] };
        let names = AGENT_KINDS.iter().chain(queues).chain(asked).copied().map(Box::from);
        let job_kinds: Vec<_> = settings.kinds.iter().map(job_kind).collect();
        let mut fleet = Fleet::new();
        Self {
            core: Core::new(settings.core),
            policy: settings.policy,
            origin: settings.origin,
            listing: Listing::new(names.chain(listed_names(&settings.kinds))),
            owners: RefusedOwners::default(),
            queues: AgentQueues::new(settings.mode),
            capacity: LocalCapacity::new(&job_kinds, settings.mode, &mut fleet),
            fleet,
            provisioning: AgentProvisioning::new(settings.provisioning),
            elastic_pods: ElasticPods::default(),
            grants: AgentGrants::new(settings.namespace, settings.boot),
            kinds: settings.kinds,
            held: BTreeSet::new(),
            configuration: NamespacesAndPriorities::default(),
        }
    }
}

impl Control for AgentControl {
    type Input = AgentInput;

    fn observe(&mut self, input: AgentInput, now: Timestamp) {
        self.core.ctx.now = now;
        match input {
            AgentInput::Workload(change) => self.each(change, |this, key, object| {
                this.observe_workload(key, object);
            }),
            AgentInput::Job(kind, change) => {
                let listed = change.is_list();
                if self.core.observe_jobs(&kind, change) {
                    // The report names the kinds that are served.
                    self.core.ctx.agenda.now(Reevaluation::Capacity);
                }
                self.listed(listed.then(|| listed_name(&kind)).as_deref());
            }
            AgentInput::Members(kind, change) => {
                let listed = self.core.observe_members(&kind, change);
                self.listed(listed.as_deref());
            }
            AgentInput::LookedUp(kind, change) => {
                let listed = self.core.observe_looked_up(&kind, change);
                self.listed(listed.as_deref());
            }
            AgentInput::LimitRange(change) => self.limit_ranges(change),
            AgentInput::RuntimeClass(change) => self.runtime_classes(change),
            AgentInput::Node(change) => self.each(change, |this, key, object| {
                this.capacity.observe_node(&key.name, content(object.as_ref()), &mut this.core.ctx);
            }),
            AgentInput::Pod(change) => self.each(change, |this, key, object| {
                let pod = content(object.as_ref());
                let of_clone = pod.and_then(|pod| pod.of_clone.as_ref());
                this.grants.observe_pod(key, of_clone, &mut this.core.ctx);
                this.capacity.observe_pod(key.clone(), pod, &mut this.core.ctx);
            }),
            // They start later than everything else is decided, and change nothing of it.
            AgentInput::ElasticPod(change) => for_each_object(change, |key, pod| {
                self.elastic_pods.observe_pod(&key, pod.as_ref(), &mut self.core.ctx);
            }),
            AgentInput::RefusedPods(change) => for_each_object(change, |_, object| {
                if let Some(RefusedPodsEvent { object, uid, message }) = content(object.as_ref()) {
                    self.pods_refused(object.clone(), OwnerSearch::of(uid, message));
                }
            }),
            AgentInput::Capacity(change) => self.each(change, |this, key, object| {
                this.capacity.observe_report(key, object);
            }),
            AgentInput::Queue(input) => self.observe_queues(input),
            AgentInput::ProvisioningRequest(change) => self.provisioning_requests(change),
            AgentInput::PodTemplate(change) => self.pod_templates(change),
            AgentInput::Autoscaler(input) => {
                self.capacity.observe_autoscaler(input, &mut self.core.ctx);
            }
            AgentInput::Lease(change) => {
                let listed = change.is_list().then(|| Lease::kind(&()));
                self.grants.observe(change, &mut self.core.ctx);
                self.listed(listed.as_deref());
            }
        }
    }

    fn answered(&mut self, ticket: &Ticket, answer: WriteOutcome, now: Timestamp) {
        self.core.ctx.now = now;
        let settled = self.core.ctx.settle(ticket, &answer);
        let Core { ctx, workloads, jobs, .. } = &mut self.core;
        match &ticket.target.subject {
            Subject::Workload => {
                let key = &ticket.target.key;
                let change = workloads.answered(ticket, answer, &settled, ctx);
                change.iter().for_each(|change| self.route(change));
                let Core { ctx, workloads, jobs, .. } = &mut self.core;
                if let Some(record) = workloads.get(key) {
                    jobs.evaluate_jobs_of(key, record.object(), ctx);
                }
            }
            Subject::Job(_) if ticket.purpose == Purpose::UngateElastic => {
                self.elastic_pods.answered(ticket, answer, &settled, ctx);
            }
            Subject::Job(_) if ticket.purpose == Purpose::FencePod => {
                self.grants.pod_answered(ticket, &answer);
            }
            Subject::Job(_) => jobs.answered(ticket, answer, (&settled, workloads), ctx),
            Subject::Lease => self.grants.answered(ticket, answer),
            Subject::Capacity => self.capacity.report_answered(ticket, answer),
            Subject::Owner { .. } => {
                if let Some((owner, search)) = self.owners.answered(ticket, &answer) {
                    self.pods_refused(owner, search);
                }
            }
            Subject::ClusterQueue
            | Subject::Cohort
            | Subject::ResourceFlavor
            | Subject::LocalQueue
            | Subject::AdmissionCheck => self.queues.answered(ticket, answer),
            Subject::ProvisioningRequest | Subject::PodTemplate => {
                let Reevaluation::Workload(key) = &ticket.waiter else { return };
                let clone = workloads.get(key).map(|record| &**record.object());
                self.provisioning.answered(ticket, answer, &settled, (clone, ctx));
            }
            // Kinds that an agent never writes.
            Subject::Topology | Subject::MultiKueueCluster | Subject::Incarnation => {}
        }
    }

    fn clock_jumped(&mut self, by: SignedDuration) {
        let Self {
            core,
            policy: _,
            origin: _,
            listing: _,
            queues: _,
            fleet: _,
            capacity,
            provisioning: _,
            elastic_pods: _,
            grants,
            owners: _,
            kinds: _,
            held: _,
            configuration: _,
        } = self;
        core.clock_jumped(by);
        capacity.clock_jumped(by);
        grants.clock_jumped(by, &mut core.ctx);
        // Deadlines were set for the time before the jump.
        core.evaluate_all_workloads();
    }

    fn decide(&mut self, now: Timestamp) -> Decisions {
        self.core.ctx.now = now;
        // Until every kind was listed, an absent object proves nothing: room in use would count as
        // free.
        if !self.listing.is_complete() {
            return Decisions::default();
        }
        self.core.advance();
        for _ in 0..MAX_ROUNDS {
            // Every round: what was reserved or released in the last one changes the room of the
            // next cycle.
            self.refresh_capacity();
            let n_evaluated = self.evaluate_jobs() + self.evaluate_workloads();
            // A cycle without progress may still have made something due: another reason to be pending.
            if !self.run_cycles() && n_evaluated == 0 && !self.core.has_work() {
                break;
            }
        }
        self.queues.evaluate(&self.core.scheduler, &mut self.core.ctx);
        let clones = |key: &Key| self.core.workloads.get(key).map(|one| &**one.object());
        self.grants.beat(clones, &mut self.core.ctx);
        self.provisioning.write_conditions(&mut self.core.ctx);
        self.elastic_pods.ungate(&self.core.workloads, &mut self.core.ctx);
        self.write_report();
        self.core.complete(Decisions::default())
    }

    fn dump(&self) -> String {
        self.core.scheduler.dump()
    }
}

impl AgentControl {
    fn provisioning_requests(&mut self, change: Change<ProvisioningRequest>) {
        let listed = change.is_list().then(|| ProvisioningRequest::kind(&()));
        let Core { ctx, workloads, .. } = &mut self.core;
        self.provisioning.observe_requests(change, workloads, ctx);
        self.listed(listed.as_deref());
    }

    fn pod_templates(&mut self, change: Change<EntryTemplate>) {
        let listed = change.is_list().then(|| EntryTemplate::kind(&()));
        let Core { ctx, workloads, .. } = &mut self.core;
        self.provisioning.observe_templates(change, workloads, ctx);
        self.listed(listed.as_deref());
    }

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
            // A cluster without any nodes reports that, too.
            self.core.ctx.agenda.now(Reevaluation::Capacity);
        }
    }

    fn observe_workload(&mut self, key: &Key, object: Option<Arc<Workload>>) {
        let Some(object) = object else {
            self.grants.observe_clone(key, None);
            let removed = self.core.workloads.remove(key);
            return removed.iter().for_each(|change| self.route(change));
        };
        if self.core.workloads.is_replaced_by(key, &object) {
            self.observe_workload(key, None);
        }
        self.grants.observe_clone(key, Some(&object));
        self.capacity.watch_shows(&object);
        if self.core.workloads.get(key).is_none() {
            self.open_namespace(key);
        }
        let scheduler = &mut self.core.scheduler;
        let change = self.core.workloads.observe(key, object, || scheduler.intern(key));
        change.iter().for_each(|change| self.route(change));
    }

    fn observe_queues(&mut self, input: QueueInput) {
        let (listed, affected) = self.queues.observe(input, &mut self.core);
        let changes = self.core.workloads.reenter_affected(&affected);
        changes.iter().for_each(|change| self.enter_again(change));
        // The report shows quotas.
        self.capacity.quotas_changed();
        self.listed(listed.as_deref());
    }

    fn limit_ranges(&mut self, change: Change<LimitRange>) {
        self.each(change, |this, key, object| {
            let namespace = key.namespace.as_deref().unwrap_or_default();
            let object = object.as_deref();
            this.reenter(|index| index.limit_range(namespace, &key.name, object));
        });
    }

    fn runtime_classes(&mut self, change: Change<RuntimeClass>) {
        self.each(change, |this, key, object| {
            this.reenter(|index| index.runtime_class(&key.name, object.as_deref()));
        });
    }

    /// Enters clones again after a change of how the requests of pods are read.
    fn reenter(&mut self, read: impl FnOnce(&mut Index) -> AffectedWorkloads) {
        let affected = self.core.scheduler.update_defaults(read);
        let changes = self.core.workloads.reenter_all_affected(&affected);
        changes.iter().for_each(|change| self.enter_again(change));
    }

    /// Enters a clone again that the scheduler knows. One that is refused, or held back, is entered when it may start.
    fn enter_again(&mut self, change: &WorkloadChange) {
        let refused =
            change.after.as_ref().is_some_and(|clone| self.refusal(&change.key, clone).is_some());
        if !refused && !self.held.contains(&change.key) {
            self.enter(change);
        }
    }

    /// The internal queue takes clones from every namespace, whatever its labels. Queues of the cluster select namespaces.
    fn open_namespace(&mut self, key: &Key) {
        if self.queues.are_used() {
            return;
        }
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let labels = Default::default();
        self.core.scheduler.update(&mut self.core.ctx.agenda, |index, names| {
            index.namespace(names, namespace, Some(&labels))
        });
    }

    /// Routes a change of a clone. One that the policy refuses never reaches the scheduler.
    fn route(&mut self, change: &WorkloadChange) {
        if change.after.as_ref().is_some_and(|clone| self.refusal(&change.key, clone).is_some()) {
            return self.core.ctx.agenda.now(Reevaluation::Workload(change.key.clone()));
        }
        // One that waits for a grant does not reach it either. It is entered when it may start.
        let held = |clone: &Arc<Workload>| self.holds_back(change, clone);
        if change.after.as_ref().is_some_and(held) {
            self.held.insert(change.key.clone());
            return self.core.ctx.agenda.now(Reevaluation::Workload(change.key.clone()));
        }
        self.held.remove(&change.key);
        self.enter(change);
    }

    /// Passes a change of a clone on to every machine.
    fn enter(&mut self, change: &WorkloadChange) {
        self.elastic_pods.workload_changed(change, &mut self.core.ctx);
        self.queues.workload_changed(change, &mut self.core.ctx);
        self.capacity.clone_changed(change);
        self.provisioning.workload_changed(change);
        if let Some(id) = change.id.filter(|_| change.voids_reservation) {
            self.fleet.unplace(id);
        }
        if let Some(id) = self.core.workload_changed(change) {
            self.fleet.workload_removed(id);
        }
    }

    /// Whether a clone waits for a grant, and the scheduler does not know it yet: what it has counted it also releases.
    fn holds_back(&self, change: &WorkloadChange, clone: &Workload) -> bool {
        let is_new = change.before.is_none() || self.held.contains(&change.key);
        is_new && self.grants.holds_back(&change.key, clone, &self.core.ctx)
    }

    /// Enters a clone that was held back and may start now.
    fn enter_granted(&mut self, key: &Key) {
        let clone = self.core.workloads.get(key).filter(|_| self.held.contains(key));
        let may_start = clone
            .is_some_and(|record| !self.grants.holds_back(key, record.object(), &self.core.ctx));
        if may_start && let Some(change) = self.core.workloads.reenter_one(key) {
            self.route(&change);
            self.core.ctx.agenda.withdraw_workload(key);
        }
    }

    /// Why a clone does not run here.
    fn refusal(&self, key: &Key, clone: &Workload) -> Option<(&'static str, String)> {
        self.policy.refusal(key, clone, &self.kinds)
    }

    /// Records that pods of an object were refused: a job of a clone, or a child of one. The Event of an earlier object of the
    /// name has another uid.
    fn pods_refused(&mut self, object: ObjectName, search: OwnerSearch) {
        let is_of = |kind: &&Kind| kind.is_kind_of(&object.api_version, &object.kind);
        let kind = self.kinds.iter().find(is_of);
        let Core { jobs, ctx, .. } = &mut self.core;
        let key = kind.map(|kind| JobKey::new(kind, &object.key));
        // A child may carry every label of its job.
        let job = key.and_then(|key| jobs.get(&key));
        let job = job.filter(|(_, job)| controller(job.metadata()).is_none());
        match job {
            Some((key, job)) if job.metadata().uid.as_deref() == Some(&*search.uid) => {
                let name = prebuilt_name(&**job, jobs.gates()).name;
                self.capacity.pods_refused(key.in_namespace(name), &search.message, ctx);
            }
            Some(_) => {}
            None => self.owners.read(object, search, ctx),
        }
    }

    fn refresh_capacity(&mut self) {
        let Core { ctx, scheduler, workloads, jobs, .. } = &mut self.core;
        let fleet = &mut self.fleet;
        self.capacity.refresh(&mut CapacityInputs { workloads, jobs, scheduler, fleet }, ctx);
    }

    fn evaluate_jobs(&mut self) -> usize {
        // A clone without a grant starts nothing before its eviction is written; then its jobs are stopped.
        let fenced = self.grants.fenced(&self.core.workloads, &self.core.ctx);
        let environment = JobEnvironment {
            flavors: self.queues.flavors(),
            priority: &|source| self.configuration.priority(source),
            managed: &|key, job, _| {
                let clone = || key.in_namespace(prebuilt_name(job, JobGates::default()).name);
                fenced.is_empty() || !fenced.contains(&clone())
            },
        };
        self.core.evaluate_jobs(&environment)
    }

    fn evaluate_workloads(&mut self) -> usize {
        let keys = self.core.take_workloads();
        for key in &keys {
            if let Some(change) = self.core.ended_backoff(key) {
                self.route(&change);
                // The change has put the Workload on the agenda, and it is evaluated right here.
                self.core.ctx.agenda.withdraw_workload(key);
            }
            self.enter_granted(key);
            if let Some(record) = self.core.workloads.get(key) {
                let clone = Arc::clone(record.object());
                self.grants.evaluate(key, &clone, &mut self.core.ctx);
            }
            if !self.core.prepare_workload(key, &mut self.fleet) {
                continue;
            }
            let refusal = self.core.workloads.get(key);
            let refusal = refusal.and_then(|record| self.refusal(key, record.object()));
            let (check_updates, refusal) = match self.ask_for_nodes(key) {
                Ok(updates) => (updates, refusal),
                Err(message) => (Vec::new(), refusal.or(Some((PROVISIONING_FAILED, message)))),
            };
            if let Some((reason, message)) = refusal {
                let Core { workloads, ctx, .. } = &mut self.core;
                if workloads.refuse(key, (reason, &message), ctx) {
                    continue;
                }
            }
            let record = self.core.workloads.get(key);
            let fence = record.and_then(|one| self.grants.fence(key, one.object(), &self.core.ctx));
            let refused =
                record.and_then(|one| AgentProvisioning::eviction(one.object(), self.core.ctx.now));
            let pod_failure = fence.or(refused).or_else(|| self.capacity.pod_failure(key));
            let pod_starts = self.capacity.pod_starts(key, &self.fleet, &mut self.core.ctx);
            let inputs =
                StatusInputs { pod_failure, pod_starts, check_updates, ..StatusInputs::default() };
            self.evaluate_workload(key, inputs);
        }
        keys.len()
    }

    /// Takes the next step of a clone towards new nodes. One without a grant waits for that first.
    fn ask_for_nodes(&mut self, key: &Key) -> Result<Vec<CheckUpdate>, String> {
        let Core { ctx, workloads, .. } = &mut self.core;
        let Some(clone) = workloads.get(key).map(|record| record.object()) else {
            return Ok(Vec::new());
        };
        let evicted = is_true(&clone.status.conditions, EVICTED);
        if !evicted && self.grants.holds_back(key, clone, ctx) {
            return Ok(Vec::new());
        }
        self.provisioning.evaluate(key, clone, self.queues.flavors(), ctx)
    }

    fn evaluate_workload(&mut self, key: &Key, inputs: StatusInputs) {
        let Some(clone) = self.core.workloads.get(key).map(|one| Arc::clone(one.object())) else {
            return;
        };
        let inputs = self.queues.add_to(inputs, key, &clone, &self.core.scheduler);
        let required_checks = self.provisioning.add_to(inputs.required_checks, &clone);
        let inputs = StatusInputs { required_checks, ..inputs };
        // The end of its job releases the quota of a clone. In a race there is no job before the admission.
        let Core { ctx, workloads, jobs, .. } = &mut self.core;
        if AgentProvisioning::holds_after_eviction(&clone, ctx.now)
            && jobs.of(key, &clone).is_none()
        {
            workloads.propose_quietly(key, Transition::Release);
        }
        if self.core.evaluate_workload(key, inputs, &mut self.fleet) {
            self.queues.reservation_withdrawn(key, &clone, &mut self.core.ctx);
        }
    }

    /// Runs scheduling cycles. Returns whether a clone got something.
    fn run_cycles(&mut self) -> bool {
        let Core { ctx, scheduler, workloads, .. } = &mut self.core;
        let work_of = self.capacity.work_of();
        // The nodes of a clone are in no topology of the agent's engine.
        let changes_nodes: ChangesNodes<'_> = &|_, _| false;
        let rules = (work_of, changes_nodes);
        let run = scheduler.run_cycles(&mut self.fleet, workloads, rules, ctx);
        // The only cluster of this fleet is no MultiKueueCluster: the reservation names none.
        for key in &run.reserved {
            workloads.clear_nomination(key);
            let id = workloads.id_of(key);
            let nodes = id.map(|id| assigned_nodes(&self.fleet, id)).unwrap_or_default();
            workloads.assign_nodes(key, &nodes);
            // It fits only with new nodes.
            let needed = id.is_some_and(|id| self.fleet.awaited_new_nodes(id).is_some());
            let clone = workloads.get(key).filter(|_| needed).map(|one| Arc::clone(one.object()));
            // The pods of a slice that grows run; a request would ask for their room once more.
            let clone = clone.filter(|clone| replaced(clone, workloads).is_none());
            if let Some(check) = clone.and_then(|clone| self.provisioning.check_for(&clone)) {
                workloads.require_check(key, check);
            }
        }
        run.progress
    }

    fn write_report(&mut self) {
        let Core { ctx, scheduler, workloads, jobs, .. } = &mut self.core;
        if !self.capacity.is_report_due(ctx.now) {
            return;
        }
        let available = self.kinds.iter().filter(|kind| jobs.is_available(kind));
        let (kinds, origin) = (available.map(job_kind).collect(), &*self.origin);
        let mut inputs = ReportInputs { workloads, scheduler, fleet: &self.fleet, kinds, origin };
        self.capacity.write_report(&mut inputs, ctx);
    }
}

/// What a watch has kept of an object.
fn content<T>(object: Option<&Arc<Observed<T>>>) -> Option<&T> {
    object.map(|object| object.content())
}
