//! The one place where a cluster's Workloads are decided about (design: decide, then do).
//!
//! [`Control`] hears [`Input`]s, keeps the engine, the index, the fleet of workers and the objects, and answers with
//! [`Order`]s: writes, each of one object, of which at most one is under way. It neither waits nor reads a clock.
//! [`task`] is its loop. What is decided where:
//!
//! | question | answered by |
//! |---|---|
//! | who gets quota, and with which cluster | `engine` with `dispatch::Placing` (`schedule`) |
//! | what a job needs next | `jobs::reconcile` (`jobs`) |
//! | where copies are made and removed | `dispatch::life` (`remote`) |
//! | what a Workload's status becomes | `lifecycle`, in one write |
//!
//! After a restart nothing is known but what the API servers hold, and nothing is decided before everything was listed.

mod allowed;
mod capacity;
mod clusters;
mod configuration;
mod deadlines;
mod due;
mod held;
mod input;
mod jobs;
mod label_keys;
mod lifecycle;
mod order;
mod orphans;
mod pods;
mod pods_gate;
mod protection;
mod purpose;
mod queues;
mod record;
mod remote;
mod schedule;
mod settings;
mod slices;
pub mod sources;
mod tallies;
pub mod task;
#[cfg(test)]
mod tests;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};

use ::dispatch::Fleet;
use ::index::Index;
use engine::{Engine, Time, ids::WorkloadId};
use jiff::Timestamp;
use runtime::{events::EventRecord, watch::Key};

pub use self::{
    allowed::Allowed,
    input::{Input, Link, RemoteInput},
    order::{Destination, Order, Subject, Ticket},
    pods::Patience,
    purpose::Purpose,
    settings::{Role, Settings},
};

use self::{
    clusters::Clusters,
    configuration::Configuration,
    deadlines::Deadlines,
    due::{Due, What},
    jobs::Jobs,
    orphans::Orphans,
    queues::Queues,
    record::Record,
    remote::Remote,
};

/// See the module.
#[derive(Debug)]
pub struct Control {
    settings: Settings,
    engine: Engine,
    index: Index,
    fleet: Fleet,
    /// Kinds whose first list has not come yet. Until then nothing is decided.
    awaited: BTreeSet<&'static str>,
    configuration: Configuration,
    queues: Queues,
    workloads: BTreeMap<Key, Record>,
    by_id: BTreeMap<WorkloadId, Key>,
    jobs: Jobs,
    orphans: Orphans,
    clusters: Clusters,
    remotes: BTreeMap<Box<str>, Remote>,
    capacity: capacity::Capacity,
    due: Due,
    deadlines: Deadlines,
    /// Whose pods are waited for, where that keeps others out.
    pods_gate: pods_gate::PodsGate,
    /// When workers are compared with the hub next.
    garbage_at: Option<Timestamp>,
    /// Something changed that scheduling looks at.
    schedule: bool,
    began: Option<Timestamp>,
    orders: Vec<Order>,
    notices: Vec<EventRecord>,
}

/// What is to be done now.
#[derive(Debug, Default)]
pub struct Step {
    /// Writes.
    pub orders: Vec<Order>,
    /// What people may want to know.
    pub notices: Vec<EventRecord>,
    /// Workers that are not registered any more and have nothing of ours: nobody needs to be connected to them.
    pub clean: task::Names,
    /// When to ask again, if nothing happens before.
    pub wake: Option<Timestamp>,
}

/// More rounds than a change can need before it comes to rest.
const MOST_ROUNDS: usize = 64;

impl Control {
    /// Knows nothing yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            engine: Engine::new(settings.engine.clone()),
            index: Index::new(settings.index.clone()),
            fleet: capacity::known_from_the_start(settings.role),
            awaited: settings.role.kinds().iter().copied().collect(),
            configuration: Configuration::default(),
            queues: Queues::default(),
            workloads: BTreeMap::new(),
            by_id: BTreeMap::new(),
            jobs: Jobs::default(),
            orphans: Orphans::default(),
            clusters: Clusters::default(),
            remotes: BTreeMap::new(),
            capacity: capacity::Capacity::default(),
            due: Due::default(),
            deadlines: Deadlines::default(),
            pods_gate: pods_gate::PodsGate::default(),
            garbage_at: None,
            schedule: true,
            began: None,
            orders: Vec::new(),
            notices: Vec::new(),
            settings,
        }
    }

    /// Takes note of something that happened. Decides nothing.
    pub fn hear(&mut self, input: Input, now: Timestamp) {
        self.began.get_or_insert(now);
        match input {
            Input::Namespace(change) => self.namespaces(change),
            Input::LimitRange(change) => self.limit_ranges(change, now),
            Input::RuntimeClass(change) => self.runtime_classes(change, now),
            Input::PriorityClass(change) => self.priority_classes(change),
            Input::WorkloadPriorityClass(change) => self.workload_priority_classes(change),
            Input::ResourceFlavor(change) => self.resource_flavors(change),
            Input::Cohort(change) => self.cohorts(change),
            Input::AdmissionCheck(change) => self.admission_checks(change),
            Input::ClusterQueue(change) => self.cluster_queues(change),
            Input::LocalQueue(change) => self.local_queues(change),
            Input::Workload(change) => self.workloads(change, now),
            Input::Job(change) => self.jobs(change),
            Input::MultiKueueConfig(change) => self.multi_kueue_configs(change),
            Input::MultiKueueCluster(change) => self.multi_kueue_clusters(change),
            Input::DispatchPolicy(change) => self.dispatch_policies(change),
            Input::Node(change) => self.nodes(change),
            Input::Pod(change) => self.pods(change),
            Input::Capacity(change) => self.capacities(change),
            Input::Remote(cluster, input) => self.remote(&cluster, input, now),
            Input::WriteOutcome(ticket, answer) => self.answer(&ticket, answer, now),
        }
    }

    /// Decides what follows from all that was heard.
    pub fn decide(&mut self, now: Timestamp) -> Step {
        if !self.awaited.is_empty() {
            return Step::default();
        }
        self.due.ring(now);
        self.due.workloads.extend(self.deadlines.ring(now));
        self.collect_garbage(now);
        for _ in 0..MOST_ROUNDS {
            self.refresh_capacity();
            let n_jobs = self.decide_jobs(now);
            let n_workloads = self.decide_workloads(now);
            let scheduled = self.run_cycles(now);
            if n_jobs + n_workloads == 0 && !scheduled {
                break;
            }
        }
        self.decide_clusters(now);
        self.decide_label_keys(now);
        self.decide_queues(now);
        self.report_capacity(now);
        self.show_fleet(now);
        Step {
            orders: std::mem::take(&mut self.orders),
            notices: std::mem::take(&mut self.notices),
            clean: self.clean_workers(now),
            wake: self.due.next().into_iter().chain(self.deadlines.next()).min(),
        }
    }

    /// Whether everything was listed, so that decisions are made.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.awaited.is_empty()
    }

    /// When this process began to hear of anything.
    fn began(&self, now: Timestamp) -> Timestamp {
        self.began.unwrap_or(now)
    }

    fn listed(&mut self, kind: &'static str) {
        if self.awaited.remove(kind) && self.awaited.is_empty() {
            // A worker without any nodes says so, too.
            self.due.now(What::Capacity);
            tracing::info!("everything was listed");
            self.sweep_all();
            self.tell_who_is_left_behind();
        }
    }
}

/// The engine's time.
pub(crate) fn time(now: Timestamp) -> Time {
    Time(i64::try_from(now.as_nanosecond()).unwrap_or(i64::MAX))
}

/// The time as API objects have it.
pub(crate) fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_nanosecond(time.0.into()).unwrap_or(Timestamp::MAX)
}
