//! The control loop of an agent: the machines of the core, and the capacity of its cluster in place of queues.
//!
//! Clones queue in one queue that is not in the API, whose quota is the capacity of the cluster. Nothing is decided before
//! everything was listed.

use ::jobs::pod_sets_info::FlavorsByName;
use crds::v1beta2::Workload;
use jiff::Timestamp;
use k8s_openapi::{Metadata, Resource, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

use super::{
    agent_policy::AgentPolicy,
    agent_settings::AgentSettings,
    capacity::{CapacityInputs, LocalCapacity, ReportInputs, work_of},
    change::{for_each_object, is_list},
    control_loop::{Control, Decisions},
    core::{Core, JobEnvironment, MAX_ROUNDS},
    input::AgentInput,
    listing::Listing,
    namespaces_and_priorities::NamespacesAndPriorities,
    outbox::{Subject, Ticket},
    timers::Reevaluation,
    workloads::{StatusInputs, WorkloadChange},
};

/// Kinds that an agent lists.
const KINDS: &[&str] = &["Workload", "Job", "Node", "Pod", "ClusterCapacity"];

/// See the module.
#[derive(Debug)]
pub struct AgentControl {
    core: Core,
    policy: AgentPolicy,
    origin: String,
    listing: Listing,
    capacity: LocalCapacity,
    /// Empty: clones carry what their flavors give.
    flavors: FlavorsByName,
    /// Empty: a worker has no priority classes of Kueue.
    configuration: NamespacesAndPriorities,
}

impl AgentControl {
    /// An agent that has observed nothing.
    #[must_use]
    pub fn new(settings: AgentSettings) -> Self {
        Self {
            core: Core::new(settings.core),
            policy: settings.policy,
            origin: settings.origin,
            listing: Listing::new(KINDS.iter().copied()),
            capacity: LocalCapacity::new(),
            flavors: FlavorsByName::default(),
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
            AgentInput::Job(change) => self.each(change, |this, key, object| {
                this.core.jobs.observe(key, object, &mut this.core.ctx);
            }),
            AgentInput::Node(change) => self.each(change, |this, key, object| {
                this.capacity.observe_node(&key.name, object.as_ref(), &mut this.core.ctx);
            }),
            AgentInput::Pod(change) => self.each(change, |this, key, object| {
                this.capacity.observe_pod(key.clone(), object.as_ref(), &mut this.core.ctx);
            }),
            AgentInput::Capacity(change) => self.each(change, |this, key, object| {
                this.capacity.observe_report(key, object);
            }),
        }
    }

    fn answered(&mut self, ticket: &Ticket, answer: WriteOutcome, now: Timestamp) {
        self.core.ctx.now = now;
        let settled = self.core.ctx.settle(ticket, &answer);
        let Core { ctx, workloads, jobs, .. } = &mut self.core;
        match ticket.target.subject {
            Subject::Workload => {
                let key = &ticket.target.key;
                let change = workloads.answered(ticket, answer, &settled, ctx);
                change.iter().for_each(|change| self.route(change));
                let Core { ctx, workloads, jobs, .. } = &mut self.core;
                if let Some(record) = workloads.get(key) {
                    jobs.evaluate_jobs_of(key, record.object(), ctx);
                }
            }
            Subject::Job => jobs.answered(ticket, answer, (&settled, workloads), ctx),
            Subject::Capacity => self.capacity.report_answered(answer),
            // Kinds that an agent never writes.
            Subject::ClusterQueue
            | Subject::ResourceFlavor
            | Subject::LocalQueue
            | Subject::MultiKueueCluster
            | Subject::AdmissionCheck => {}
        }
    }

    fn decide(&mut self, now: Timestamp) -> Decisions {
        self.core.ctx.now = now;
        if !self.listing.is_complete() {
            return Decisions::default();
        }
        self.core.advance();
        for _ in 0..MAX_ROUNDS {
            self.refresh_capacity();
            let n_evaluated = self.evaluate_jobs() + self.evaluate_workloads();
            if !self.run_cycles() && n_evaluated == 0 {
                break;
            }
        }
        // No status of a queue is in the API.
        self.core.ctx.agenda.take_queues();
        self.write_report();
        self.core.complete(Decisions::default())
    }
}

impl AgentControl {
    fn each<K>(&mut self, change: Change<K>, mut apply: impl FnMut(&mut Self, &Key, Option<K>))
    where
        K: Metadata<Ty = ObjectMeta> + Resource,
    {
        let listed = is_list(&change);
        for_each_object(change, |key, object| apply(self, &key, object));
        if listed && self.listing.listed(K::KIND) {
            // A cluster without any nodes reports that, too.
            self.core.ctx.agenda.now(Reevaluation::Capacity);
        }
    }

    fn observe_workload(&mut self, key: &Key, object: Option<Workload>) {
        let Some(object) = object else {
            let removed = self.core.workloads.remove(key);
            return removed.iter().for_each(|change| self.route(change));
        };
        if self.core.workloads.is_replaced_by(key, &object) {
            self.observe_workload(key, None);
        }
        if self.core.workloads.get(key).is_none() {
            self.open_namespace(key);
        }
        let scheduler = &mut self.core.scheduler;
        let change = self.core.workloads.observe(key, object, || scheduler.intern(key));
        change.iter().for_each(|change| self.route(change));
    }

    /// The agent's queue takes clones from every namespace, whatever its labels.
    fn open_namespace(&mut self, key: &Key) {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let labels = Default::default();
        self.core.scheduler.update(&mut self.core.ctx.agenda, |index, names| {
            index.namespace(names, namespace, Some(&labels))
        });
    }

    /// Routes a change of a clone. One that the policy refuses never reaches the scheduler.
    fn route(&mut self, change: &WorkloadChange) {
        if change.after.is_some() && self.policy.refusal(&change.key).is_some() {
            return self.core.ctx.agenda.now(Reevaluation::Workload(change.key.clone()));
        }
        if change.voids_reservation {
            self.capacity.fleet_mut().unplace(change.id);
        }
        if self.core.workload_changed(change) {
            self.capacity.fleet_mut().workload_removed(change.id);
        }
    }

    fn refresh_capacity(&mut self) {
        let Core { ctx, scheduler, workloads, jobs, .. } = &mut self.core;
        self.capacity.refresh(&mut CapacityInputs { workloads, jobs, scheduler }, ctx);
    }

    fn evaluate_jobs(&mut self) -> usize {
        let environment = JobEnvironment {
            flavors: &self.flavors,
            priority: &|source| self.configuration.priority(source),
            managed: &|_, _| true,
        };
        self.core.evaluate_jobs(&environment)
    }

    fn evaluate_workloads(&mut self) -> usize {
        let keys = self.core.ctx.agenda.take_workloads();
        for key in &keys {
            if let Some(change) = self.core.ended_backoff(key) {
                self.route(&change);
                self.core.ctx.agenda.withdraw_workload(key);
            }
            if !self.core.prepare_workload(key, self.capacity.fleet_mut()) {
                continue;
            }
            if let Some((reason, message)) = self.policy.refusal(key) {
                let Core { workloads, ctx, .. } = &mut self.core;
                if workloads.refuse(key, (reason, &message), ctx) {
                    continue;
                }
            }
            let unschedulable = self.capacity.unschedulable(key);
            let inputs = StatusInputs { unschedulable, ..StatusInputs::default() };
            self.core.evaluate_workload(key, inputs, self.capacity.fleet_mut());
        }
        keys.len()
    }

    /// Runs scheduling cycles. Returns whether a clone got something.
    fn run_cycles(&mut self) -> bool {
        let Core { ctx, scheduler, workloads, .. } = &mut self.core;
        let run = scheduler.run_cycles(self.capacity.fleet_mut(), workloads, work_of, ctx);
        // The only cluster of this fleet is no MultiKueueCluster: the reservation names none.
        run.reserved.iter().for_each(|key| workloads.clear_nomination(key));
        run.progress
    }

    fn write_report(&mut self) {
        let Core { ctx, scheduler, workloads, .. } = &mut self.core;
        let (kinds, origin) = (self.policy.kinds(), &*self.origin);
        let mut inputs = ReportInputs { workloads, scheduler, kinds, origin };
        self.capacity.write_report(&mut inputs, ctx);
    }
}
