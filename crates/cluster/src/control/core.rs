//! What manager and agent share: jobs, Workloads and scheduling in one cluster.

use ::jobs::{
    construct_workload::{PrioritySource, WorkloadPriority},
    pod_sets_info::FlavorsByName,
};
use dispatch::Fleet;
use runtime::watch::Key;

use super::{
    context::Context,
    control_loop::Decisions,
    jobs::{JobInputs, Jobs, JobsConfig, WorkloadEffect},
    outbox::after,
    scheduling::{Scheduler, SchedulerConfig},
    timers::Reevaluation,
    workloads::{
        Evaluation, PendingMessage, PodsReadyPolicy, StatusInputs, WorkloadChange, WorkloadCommand,
        Workloads,
    },
};

/// Rounds of one decision: more than a change needs before nothing is left to evaluate.
pub(super) const MAX_ROUNDS: usize = 64;

/// The machines of one cluster, and the context that they share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) ctx: Context,
    pub(super) scheduler: Scheduler,
    pub(super) workloads: Workloads,
    pub(super) jobs: Jobs,
    config: CoreConfig,
}

/// What the core is configured with.
#[derive(Clone, Debug)]
pub(crate) struct CoreConfig {
    pub(crate) scheduler: SchedulerConfig,
    pub(crate) jobs: JobsConfig,
    /// The PodsReady policy, if any.
    pub(crate) pods_ready: Option<PodsReadyPolicy>,
    /// Time limits of Workloads are enforced, and `reclaimablePods` written, by this process. A clone's manager does both.
    pub(crate) owns_workloads: bool,
}

/// What jobs read of the configuration.
pub(super) struct JobEnvironment<'a> {
    pub(super) flavors: &'a FlavorsByName,
    pub(super) priority: &'a dyn Fn(&PrioritySource) -> Option<WorkloadPriority>,
    /// Whether a job is this process's to suspend and start.
    pub(super) managed: &'a dyn Fn(&Key, &::jobs::Job) -> bool,
}

impl Core {
    pub(super) fn new(config: CoreConfig) -> Self {
        Self {
            ctx: Context::default(),
            scheduler: Scheduler::new(&config.scheduler),
            workloads: Workloads::default(),
            jobs: Jobs::new(config.jobs.clone()),
            config,
        }
    }

    /// Moves what has become due to this decision.
    pub(super) fn advance(&mut self) {
        let now = self.ctx.now;
        self.ctx.agenda.advance(now);
        self.ctx.agenda.workloads(self.workloads.take_due(now));
    }

    /// Completes a decision with everything that was submitted, and the time of the next one.
    pub(super) fn complete(&mut self, mut decisions: Decisions) -> Decisions {
        (decisions.orders, decisions.events) = self.ctx.outbox.take();
        let times = self.ctx.agenda.next().into_iter().chain(self.workloads.next_deadline());
        decisions.wake = times.min();
        decisions
    }

    /// Routes a change of a Workload. Returns whether its number may be given to another one.
    pub(super) fn workload_changed(&mut self, change: &WorkloadChange) -> bool {
        let key = &change.key;
        let over = self.scheduler.workload_changed(change, &mut self.ctx);
        self.scheduler.watch_pods_ready(key, self.workloads.get(key));
        self.evaluate_replaced_slice(change);
        self.jobs.workload_changed(change, &mut self.ctx);
        self.ctx.agenda.now(Reevaluation::Workload(key.clone()));
        over && self.workloads.release_id(key, change.id)
    }

    /// Evaluates every job of the agenda. Returns their number.
    pub(super) fn evaluate_jobs(&mut self, environment: &JobEnvironment<'_>) -> usize {
        let keys = self.ctx.agenda.take_jobs();
        for key in &keys {
            let job = self.jobs.get(key).map(|(_, job)| job.clone());
            let managed = job.is_some_and(|job| (environment.managed)(key, &job));
            let inputs = JobInputs {
                workloads: &self.workloads,
                flavors: environment.flavors,
                priority: environment.priority,
            };
            let effects = self.jobs.evaluate(key, managed, &inputs, &mut self.ctx);
            effects.into_iter().for_each(|(key, effect)| self.take_effect(&key, effect));
        }
        keys.len()
    }

    /// The change by which a Workload is entered again when its backoff has ended, which only the time shows.
    pub(super) fn ended_backoff(&self, key: &Key) -> Option<WorkloadChange> {
        let ended = self.scheduler.backoff_has_ended(key, &self.ctx);
        ended.then(|| self.workloads.reenter_one(key)).flatten()
    }

    /// Prepares the evaluation of a Workload. Returns whether it may be written now.
    pub(super) fn prepare_workload(&mut self, key: &Key, fleet: &mut Fleet) -> bool {
        self.explain_blocker(key, fleet);
        self.finish_replaced_slice(key);
        self.workloads.is_free(key, &mut self.ctx)
    }

    /// Decides about a Workload that may be written. Returns whether its reservation was withdrawn.
    pub(super) fn evaluate_workload(
        &mut self,
        key: &Key,
        inputs: StatusInputs,
        fleet: &mut Fleet,
    ) -> bool {
        let Some(inputs) = self.complete_inputs(key, inputs) else {
            return false;
        };
        let evaluation = self.workloads.evaluate(key, &inputs, &mut self.ctx);
        let Evaluation::ReservationWithdrawn(id) = evaluation else {
            return false;
        };
        fleet.unplace(id);
        self.scheduler.withdraw(id, &mut self.ctx.agenda);
        self.scheduler.watch_pods_ready(key, self.workloads.get(key));
        true
    }

    fn take_effect(&mut self, key: &Key, effect: WorkloadEffect) {
        match effect {
            // An agent counts them itself; the manager reads them from the status of the job.
            WorkloadEffect::Perform(WorkloadCommand::Reclaim(_)) if !self.config.owns_workloads => {
            }
            WorkloadEffect::Perform(command) => {
                self.workloads.perform(key, &command, &mut self.ctx);
            }
            WorkloadEffect::Propose(transition) => {
                self.workloads.propose(key, transition, &mut self.ctx);
            }
        }
    }

    /// Explains why no cycle evaluates a Workload: it is in no active queue.
    fn explain_blocker(&mut self, key: &Key, fleet: &mut Fleet) {
        let Some(record) = self.workloads.get(key).filter(|one| !one.holds_or_reserves()) else {
            return;
        };
        let (id, workload) = (record.id(), record.object());
        let leaves = workload.metadata.deletion_timestamp.is_some();
        if leaves || workload.spec.active == Some(false) {
            fleet.reset_waiting(id);
        }
        if let Some((reason, message)) = self.scheduler.blocker(workload) {
            // No cycle reports that the Workload does not wait for room any more.
            fleet.pause_waiting(id);
            let not_before = after(self.ctx.now, self.config.scheduler.explain_after);
            let reason = reason.to_owned();
            let pending = PendingMessage { reason, message, gated: false, not_before };
            self.workloads.explain(key, pending);
        }
    }

    fn evaluate_replaced_slice(&mut self, change: &WorkloadChange) {
        let replaced = change.after.as_ref().and_then(|_| self.scheduler.replaced_slice(change.id));
        if let Some((key, _)) = replaced.and_then(|id| self.workloads.by_id(id)) {
            self.ctx.agenda.now(Reevaluation::Workload(key.clone()));
        }
    }

    fn finish_replaced_slice(&mut self, key: &Key) {
        let id = self.workloads.get(key).map(|record| record.id());
        let message = id.and_then(|id| self.scheduler.replacement_message(id, &self.workloads));
        if let Some(message) = message {
            let reason = crds::names::reasons::WORKLOAD_SLICE_REPLACED;
            self.workloads.finish_once(key, reason, message);
        }
    }

    /// Adds what the core knows to the inputs of a composition.
    fn complete_inputs(&self, key: &Key, inputs: StatusInputs) -> Option<StatusInputs> {
        let record = self.workloads.get(key)?;
        let workload = record.object();
        let requests = match record.transitions().pending_message() {
            Some(_) => self.scheduler.resource_requests(workload),
            None => Vec::new(),
        };
        let policy = self.config.pods_ready;
        let pods_ready = policy.and_then(|_| self.jobs.pods_ready(key, workload));
        let enforces_time_limits = self.config.owns_workloads;
        Some(StatusInputs { requests, pods_ready, policy, enforces_time_limits, ..inputs })
    }
}
