//! What `execution: ExactlyOnce` means for the dispatch of one Workload (docs/reference/dispatch.md §7-8).
//!
//! A Workload gets the guarantee before its first copy is created, as an annotation that a change of the policy does not remove.
//! Copies that exist without it keep running under KeepRunning until the next nomination.

use crds::{
    meta::annotation,
    names::{EXACTLY_ONCE, KEEP_RUNNING, annotations::EXECUTION},
};
use dispatch::workload::{DispatchCheckState, LocalWorkload, RemoteCopy, SlicePredecessor};
use engine::ids::ClusterId;
use index::status;
use k8s_openapi::api::coordination::v1::Lease;
use runtime::{watch::Change, writer::WriteOutcome};

use super::{
    DispatchEffect, MultiKueueDispatch,
    evaluation::DispatchEvaluation,
    grants::LeaseSettings,
    lease_state::{WAITING_FOR_FENCE, awaited_fence},
    worker::Worker,
    worker_writes,
};
use crate::control::{
    context::Context,
    fleet::FleetRegistry,
    lease_objects::{hub_lease, session_and_term, stamp_of},
    outbox::{Subject, Ticket},
    time::engine_time,
    timers::Reevaluation,
    workloads::{Transition, Workloads},
};

impl MultiKueueDispatch {
    /// Records a change of the Leases of a worker.
    pub(crate) fn leases_changed(&mut self, name: &str, change: Change<Lease>, ctx: &mut Context) {
        let own = hub_lease(&self.config.namespace, &self.config.origin);
        self.grants.observe(name, change, &own, ctx);
    }

    /// Takes the answer to a write of a worker's Lease.
    pub(crate) fn lease_answered(&mut self, ticket: &Ticket, answer: WriteOutcome) {
        if let Some(name) = ticket.target.to.worker() {
            self.grants.answered(name, ticket.purpose, answer);
        }
    }

    /// Decides about the leases of workers. Returns the workers of which they have changed.
    pub(crate) fn keep_leases(
        &mut self,
        (registry, workloads): (&mut FleetRegistry, &Workloads),
        ctx: &mut Context,
    ) -> Vec<Box<str>> {
        let Self { config, workers, incarnation, grants, .. } = self;
        // Before the term is written this process does nothing on a worker.
        let Some(term) = incarnation.present().map(|present| present.term) else {
            return Vec::new();
        };
        let settings = LeaseSettings {
            origin: &config.origin,
            namespace: &config.namespace,
            lost_after: config.timeouts(None).worker_lost_timeout,
            term,
        };
        let now = ctx.now;
        let lost_since = |name: &str, lost_after: i64| workers.lost_since(name, lost_after, now);
        grants.evaluate((lost_since, registry), (settings, workloads), ctx)
    }
}

impl DispatchEvaluation<'_> {
    /// Sets the guarantee of the Workload, and what it asks of its copies.
    pub(super) fn apply_guarantee(&mut self, hub: &mut LocalWorkload, copies: &mut [RemoteCopy]) {
        let marked = self.is_marked();
        hub.exactly_once = marked || self.gets_mark(hub);
        self.leases.exactly_once = hub.exactly_once;
        if !hub.exactly_once {
            return;
        }
        // The mark is written before the first copy exists.
        hub.is_own_version &= marked;
        if self.state.of_former {
            copies.iter_mut().for_each(|copy| self.read_after_claim(copy));
        }
    }

    fn is_marked(&self) -> bool {
        self.execution() == Some(EXACTLY_ONCE)
    }

    /// What the Workload has from its job, or as the mark.
    fn execution(&self) -> Option<&str> {
        let record = self.inputs.workloads.get(self.key)?;
        annotation(&record.object().metadata, EXECUTION)
    }

    /// Whether the policy asks for the guarantee, the job does not decline it, and no copy of this epoch exists without it.
    fn gets_mark(&self, hub: &LocalWorkload) -> bool {
        let fleet = self.inputs.registry.fleet();
        let policy = self.multikueue_config().and_then(|config| fleet.exactly_once(config));
        let is_open = hub.exists && hub.quota_reserved && !hub.evicted && !hub.finished;
        // A slice takes over what runs without the guarantee.
        let takes_over = hub.predecessor != SlicePredecessor::Absent;
        let undecided = is_open && hub.check == DispatchCheckState::Pending && !takes_over;
        let holders = self.workers.concerned(self.key, self.ctx.outbox.writes());
        let mut workers = holders.map(|(_, worker)| worker);
        let asked = policy.is_some() && self.execution() != Some(KEEP_RUNNING);
        asked && undecided && !workers.any(|worker| self.runs_unstamped(worker, hub))
    }

    fn runs_unstamped(&self, worker: &Worker, hub: &LocalWorkload) -> bool {
        let clone = worker.clones.get(self.key).map(|tracked| &tracked.object().metadata);
        clone.is_some_and(|clone| {
            ::jobs::remote_objects::epoch(clone) == hub.epoch && stamp_of(clone).is_none()
        })
    }

    /// What was listed before the hub Lease had the term of this leader proves nothing: a create of a former leader may have
    /// followed. Clone and jobs are read once after that.
    fn read_after_claim(&mut self, copy: &mut RemoteCopy) {
        let Some(worker) = self.worker(copy.cluster) else {
            return;
        };
        let writes = self.leases.grants.state(worker.name()).writes;
        if writes && self.state.read_on.insert(copy.cluster) {
            let hub_jobs =
                super::view::observed_jobs(self.key, self.inputs.workloads, self.inputs.jobs);
            let jobs = hub_jobs.iter().map(|(job, _)| {
                (worker.job_target(job), worker.jobs.get(job).map(|one| one.version()))
            });
            let observed = worker.clones.get(self.key).map(|one| one.version());
            let clone = (worker.target(Subject::Workload, self.key), observed);
            for (target, observed) in jobs.chain([clone]) {
                let waiter = Reevaluation::Workload(self.key.clone());
                self.ctx.outbox.writes_mut().doubt(target, observed, waiter);
            }
            // Reads are found at each decision.
            self.ctx.agenda.at(self.ctx.now, Reevaluation::Report);
            copy.creates_answered = false;
        }
        copy.creates_answered &= writes;
    }

    /// The message of the check while the Workload waits for the fence of its worker, and the former one after that; `None` if
    /// the check shows it.
    pub(super) fn fence_message(
        &self,
        hub: &LocalWorkload,
        check: Option<&str>,
    ) -> Option<DispatchEffect> {
        let runs = hub.exactly_once && hub.check == DispatchCheckState::Ready && !hub.evicted;
        let cluster = hub.recorded_cluster.filter(|_| runs)?;
        let name = self.inputs.registry.fleet().name(cluster);
        let checks = &self.inputs.workloads.get(self.key)?.object().status.admission_checks;
        let shown = checks.iter().find(|one| Some(one.name.as_str()) == check)?.message.as_str();
        let leases = self.leases.grants.state(name);
        // When time has fenced it, the check goes back as soon as that is recorded.
        if leases.fenced_at.is_some_and(|at| at <= engine_time(self.ctx.now)) {
            return None;
        }
        let message = match awaited_fence(name, &leases) {
            Some(reason) => format!("Worker cluster \"{name}\" is lost; {reason}"),
            None if shown.contains(WAITING_FOR_FENCE) => status::admitted_on(name),
            None => return None,
        };
        let differs = shown != message;
        differs.then_some(DispatchEffect::Propose(Transition::CheckMessage(message)))
    }

    /// Session and term for copies that are created on a cluster now.
    pub(super) fn lease_stamp(&self, cluster: ClusterId) -> Option<String> {
        let name = self.inputs.registry.fleet().name(cluster);
        let stamp = self.leases.grants.state(name).stamp;
        self.leases.exactly_once.then(|| session_and_term(stamp.session, stamp.term))
    }

    /// Writes the stamp of this leader to the clone of a former one.
    pub(super) fn push_stamp(&mut self, cluster: ClusterId) {
        if let (Some(worker), Some(stamp)) = (self.worker(cluster), self.lease_stamp(cluster)) {
            worker_writes::push_stamp(worker, self.key, &stamp, self.ctx);
        }
    }
}
