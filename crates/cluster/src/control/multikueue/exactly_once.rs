//! What `execution: ExactlyOnce` means for the dispatch of one Workload (docs/reference/dispatch.md §7-8).
//!
//! A Workload gets the guarantee before its first copy is created, as an annotation that a change of the policy does not remove.
//! Copies that exist without it keep running under KeepRunning until the next nomination.

use crds::names::{EXACTLY_ONCE, annotations::EXECUTION};
use dispatch::workload::{DispatchCheckState, LocalWorkload, RemoteCopy};
use engine::ids::ClusterId;
use k8s_openapi::api::coordination::v1::Lease;
use runtime::{watch::Change, writer::WriteOutcome};

use super::{
    MultiKueueDispatch, evaluation::DispatchEvaluation, grants::LeaseSettings, worker::Worker,
    worker_writes,
};
use crate::control::{
    context::Context,
    fleet::FleetRegistry,
    lease_objects::{annotation, session_and_term, stamp_of},
    outbox::{Destination, Subject, Ticket},
    timers::Reevaluation,
};

impl MultiKueueDispatch {
    /// Records a change of the Leases of a worker.
    pub(crate) fn leases_changed(&mut self, name: &str, change: Change<Lease>, ctx: &mut Context) {
        self.grants.observe(name, change, ctx);
    }

    /// Takes the answer to a write of a worker's Lease.
    pub(crate) fn lease_answered(&mut self, ticket: &Ticket, answer: WriteOutcome) {
        if let Destination::Worker(name) = &ticket.target.to {
            self.grants.answered(name, answer);
        }
    }

    /// Decides about the leases of workers. Returns whether those of any have changed.
    pub(crate) fn keep_leases(&mut self, registry: &mut FleetRegistry, ctx: &mut Context) -> bool {
        let Self { config, workers, incarnation, grants, began, .. } = self;
        // Before the term is written this process does nothing on a worker.
        let Some(term) = incarnation.present().map(|present| present.term) else {
            return false;
        };
        let settings = LeaseSettings {
            origin: &config.origin,
            namespace: &config.namespace,
            lost_after: config.timeouts(None).worker_lost_timeout,
            term,
        };
        let began = began.unwrap_or(ctx.now);
        let lost_since = |name: &str| match workers.by_name(name) {
            Some(worker) => worker.lost_since(),
            None => Some(workers.loss_before(name).unwrap_or(began)),
        };
        grants.evaluate((lost_since, registry), settings, ctx)
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
        let record = self.inputs.workloads.get(self.key);
        let execution = record.and_then(|one| annotation(&one.object().metadata, EXECUTION));
        execution == Some(EXACTLY_ONCE)
    }

    /// Whether the policy asks for the guarantee, and no copy of this epoch exists without it.
    fn gets_mark(&self, hub: &LocalWorkload) -> bool {
        let fleet = self.inputs.registry.fleet();
        let policy = self.multikueue_config().and_then(|config| fleet.exactly_once(config));
        let is_open = hub.exists && hub.quota_reserved && !hub.evicted && !hub.finished;
        let undecided = is_open && hub.check == DispatchCheckState::Pending;
        let mut workers = self.workers.iter().map(|(_, worker)| worker);
        policy.is_some() && undecided && !workers.any(|worker| self.runs_unstamped(worker, hub))
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
            let jobs = hub_jobs.iter().map(|(job, _)| worker.job_target(job));
            let clone = worker.target(Subject::Workload, self.key);
            for target in jobs.chain([clone]) {
                let waiter = Reevaluation::Workload(self.key.clone());
                self.ctx.outbox.writes_mut().doubt(target, waiter);
            }
            // Reads are found at each decision.
            self.ctx.agenda.at(self.ctx.now, Reevaluation::Report);
            copy.creates_answered = false;
        }
        copy.creates_answered &= writes;
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
