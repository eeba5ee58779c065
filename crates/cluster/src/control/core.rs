//! What manager and agent share: jobs, Workloads and scheduling in one cluster.

use ::jobs::{
    GenericJob, JobObject, Kind,
    admitted_infos::AssignedFlavors,
    construct_workload::{PrioritySource, WorkloadPriority},
    lookups::LookupKind,
    pods,
};
use crds::{
    meta::{find, is_deleting, is_rebuilding},
    names::{conditions::QUOTA_RESERVED, reasons},
    v1beta2::Workload,
};
use dispatch::Fleet;
use engine::ids::WorkloadId;
use index::Index;
use jiff::SignedDuration;
use kube::core::DynamicObject;
use runtime::watch::{Change, Key};
use std::{collections::BTreeSet, time::Duration};

use super::{
    change::for_each_object,
    context::Context,
    decisions::Decisions,
    job_key::JobKey,
    job_selection::Ancestor,
    jobs::{Ancestry, FoundAncestry, JobInputs, Jobs, JobsConfig, WorkloadEffect, nesting},
    listing::{looked_up_name, members_name},
    outbox::after,
    scheduling::{Scheduler, SchedulerConfig},
    timers::Reevaluation,
    workloads::{
        Evaluation, PendingMessage, PodsReadyPolicy, StatusInputs, TrackedWorkload, WorkloadChange,
        WorkloadCommand, Workloads, gates_cleared, is_of_single_pod, not_evaluated,
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
    /// Jobs of which an Event says that they have too many ancestors.
    nested_too_deep: BTreeSet<JobKey>,
    config: CoreConfig,
}

/// What the core is configured with.
#[derive(Clone, Debug)]
pub(crate) struct CoreConfig {
    pub(crate) scheduler: SchedulerConfig,
    pub(crate) jobs: JobsConfig,
    /// The PodsReady policy, if any.
    pub(crate) pods_ready: Option<PodsReadyPolicy>,
    /// Reasons of conditions are those of before the gate UnadmittedWorkloadsObservability.
    pub(crate) legacy_reasons: bool,
    /// A new Workload has conditions before its first cycle (gate UnadmittedWorkloadsExplicitStatus).
    pub(crate) explicit_status: bool,
    /// A Workload without its owner is finished (gate FinishOrphanedWorkloads).
    pub(crate) finishes_orphans: bool,
    /// An evicted Workload of a single pod is requeued like any other (without the gate SkipReassignmentForPodOwnedWorkloads).
    pub(crate) requeues_pods: bool,
    /// How long a finished Workload stays; for ever if unset.
    pub(crate) keeps_finished_for: Option<Duration>,
    /// Time limits of Workloads are enforced, finished ones are deleted, and `reclaimablePods` written, by this process. A
    /// clone's manager does all of it.
    pub(crate) owns_workloads: bool,
}

/// What jobs read of the configuration.
pub(super) struct JobEnvironment<'a> {
    pub(super) flavors: AssignedFlavors<'a>,
    pub(super) priority: &'a dyn Fn(&PrioritySource) -> Option<WorkloadPriority>,
    /// Whether a job is this process's to suspend and start.
    pub(super) managed: &'a dyn Fn(&JobKey, &JobObject, Ancestor) -> bool,
}

impl<'a> JobEnvironment<'a> {
    fn inputs(&self, workloads: &'a Workloads, index: &'a Index) -> JobInputs<'a> {
        let Self { flavors, priority, .. } = *self;
        JobInputs { workloads, flavors, index, priority, without_creation: false }
    }

    fn inputs_of_child(&self, workloads: &'a Workloads, index: &'a Index) -> JobInputs<'a> {
        JobInputs { without_creation: true, ..self.inputs(workloads, index) }
    }
}

impl Core {
    pub(super) fn new(config: CoreConfig) -> Self {
        Self {
            ctx: Context::default(),
            scheduler: Scheduler::new(&config.scheduler),
            workloads: Workloads::default(),
            jobs: Jobs::new(config.jobs.clone()),
            nested_too_deep: BTreeSet::new(),
            config,
        }
    }

    /// Records a change of jobs of a kind. Returns whether the kind can be observed now and could not be before, or the
    /// reverse.
    pub(super) fn observe_jobs(&mut self, kind: &Kind, change: Change<JobObject>) -> bool {
        let differs = self.jobs.observe_availability(kind, &change, &mut self.ctx);
        for_each_object(change, |key, object| {
            self.jobs.observe(&JobKey::new(kind, &key), object, &mut self.ctx);
        });
        differs
    }

    /// Records a change of pods of the sets of a kind. Returns their name in the listing if all were listed.
    pub(super) fn observe_members(
        &mut self,
        kind: &Kind,
        change: Change<JobObject>,
    ) -> Option<Box<str>> {
        let listed = change.is_list();
        for_each_object(change, |key, object| {
            let key = JobKey::new(pods::kind(), &key);
            // A label may be that of pods which no set holds.
            if object.as_ref().is_none_or(|pod| self.jobs.is_of_set(&key, pod)) {
                self.jobs.observe(&key, object, &mut self.ctx);
            }
        });
        listed.then(|| members_name(kind))
    }

    /// Records a change of objects that pod sets of jobs need. Returns their name in the listing if all were listed.
    pub(super) fn observe_looked_up(
        &mut self,
        kind: &LookupKind,
        change: Change<DynamicObject>,
    ) -> Option<Box<str>> {
        let listed = change.is_list();
        self.jobs.observe_looked_up(kind, change, &mut self.ctx);
        listed.then(|| looked_up_name(kind))
    }

    /// The clock jumped: what lasts goes on.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { ctx, scheduler, workloads, jobs, nested_too_deep: _, config: _ } = self;
        jobs.clock_jumped(by);
        workloads.clock_jumped(by);
        scheduler.clock_jumped(by);
        let Context { now: _, agenda, outbox, measurements: _ } = ctx;
        outbox.clock_jumped(by);
        agenda.clock_jumped(by);
    }

    /// Moves what has become due to this decision.
    pub(super) fn advance(&mut self) {
        let now = self.ctx.now;
        self.ctx.agenda.advance(now);
        self.ctx.agenda.workloads(self.workloads.take_reached(now));
    }

    /// Whether something is due that a further round evaluates.
    pub(super) fn has_work(&self) -> bool {
        let Context { agenda, outbox, .. } = &self.ctx;
        agenda.is_due() || outbox.has_sendable_reasons() || self.scheduler.is_pending()
    }

    /// The Workloads to be evaluated in a round.
    pub(super) fn take_workloads(&mut self) -> BTreeSet<Key> {
        let mut keys = self.ctx.agenda.take_workloads();
        keys.extend(self.ctx.outbox.take_sendable_reasons());
        keys
    }

    /// Completes a decision with everything that was submitted, and the time of the next one.
    pub(super) fn complete(&mut self, mut decisions: Decisions) -> Decisions {
        (decisions.orders, decisions.events) = self.ctx.outbox.take();
        let (has_writes, now) = (!decisions.orders.is_empty(), self.ctx.now);
        decisions.events.extend(self.scheduler.explain_admission(&self.workloads, has_writes, now));
        decisions.explained = self.scheduler.take_explained();
        decisions.measurements = std::mem::take(&mut self.ctx.measurements);
        // What the rounds left over is continued at once; no input may ever come.
        let now = self.has_work().then_some(self.ctx.now);
        let times = self.ctx.agenda.next().into_iter().chain(self.workloads.next_deadline());
        let times = times.chain(self.scheduler.next_explanation());
        decisions.wake = times.chain(now).min();
        decisions
    }

    /// Evaluates every job at this decision.
    pub(super) fn evaluate_all_jobs(&mut self) {
        self.ctx.agenda.jobs(self.jobs.keys().cloned());
    }

    /// Evaluates every Workload at this decision, and those that orphaned jobs had.
    pub(super) fn evaluate_all_workloads(&mut self) {
        self.ctx.agenda.workloads(self.workloads.keys().cloned());
        self.ctx.agenda.workloads(self.jobs.orphaned_workloads().cloned());
    }

    /// Evaluates the Workloads with quota that have no recorded cluster.
    pub(super) fn evaluate_undecided_workloads(&mut self) {
        let undecided = self.workloads.iter().filter(|(_, record)| {
            record.phase().holds_quota() && record.object().status.cluster_name.is_none()
        });
        self.ctx.agenda.workloads(undecided.map(|(key, _)| key.clone()));
    }

    /// Routes a change of a Workload. Returns the number that it releases.
    pub(super) fn workload_changed(&mut self, change: &WorkloadChange) -> Option<WorkloadId> {
        let key = &change.key;
        let over = self.scheduler.workload_changed(change, &mut self.ctx);
        self.scheduler.watch_pods_ready(key, self.workloads.get(key));
        self.evaluate_replaced_slice(change);
        self.jobs.workload_changed(change, &mut self.ctx);
        self.ctx.agenda.now(Reevaluation::Workload(key.clone()));
        // Last: from here on the engine may give the number to another Workload.
        let released = change.id.filter(|_| over)?;
        self.workloads.release_id(key, released);
        Some(released)
    }

    /// Evaluates every job of the agenda. Returns their number.
    pub(super) fn evaluate_jobs(&mut self, environment: &JobEnvironment<'_>) -> usize {
        let keys = self.ctx.agenda.take_jobs();
        for key in &keys {
            if let Some(set) = self.jobs.set_of_new_member(key) {
                self.ctx.agenda.now(Reevaluation::Job(set));
                continue;
            }
            // Members of a group are evaluated together.
            if let Some(group) = self.jobs.group_of(key) {
                self.ctx.agenda.now(Reevaluation::PodGroup(group));
                continue;
            }
            self.evaluate_job(key, environment);
        }
        keys.len() + self.evaluate_pod_groups(environment)
    }

    fn evaluate_job(&mut self, key: &JobKey, environment: &JobEnvironment<'_>) {
        let job = self.jobs.get(key).map(|(_, job)| job.clone());
        let managed = |ancestor: Ancestor| {
            job.as_ref().is_some_and(|job| (environment.managed)(key, job, ancestor))
        };
        let found = self.ancestry_of(key);
        // What its ancestor is decides nothing about a job of another namespace.
        if found.reads_owners() && managed(Ancestor::Managed) {
            self.jobs.read_owners(key, &found, &mut self.ctx);
        }
        let effects = match &found.ancestry {
            Ancestry::Top => {
                let managed_pod =
                    |key: &JobKey, pod: &JobObject| (environment.managed)(key, pod, Ancestor::None);
                self.jobs.release_members_of_absent(key, &managed_pod, &mut self.ctx);
                let inputs = environment.inputs(&self.workloads, self.scheduler.index());
                self.jobs.evaluate(key, managed(Ancestor::None), &inputs, &mut self.ctx)
            }
            _ if !managed(Ancestor::Managed) => return,
            ancestry => {
                let inputs = environment.inputs_of_child(&self.workloads, self.scheduler.index());
                self.jobs.evaluate_child(key, ancestry, &inputs, &mut self.ctx)
            }
        };
        effects.into_iter().for_each(|(key, effect)| self.take_effect(&key, effect));
    }

    /// Whether a job is a child. One that is being deleted gives its Workload up before that is asked
    /// (docs/reference/kueue.md §7.3 row 0c).
    fn ancestry_of(&mut self, key: &JobKey) -> FoundAncestry {
        let Some((key, job)) = self.jobs.get(key).filter(|(_, job)| !is_deleting(job.metadata()))
        else {
            self.nested_too_deep.remove(key);
            return FoundAncestry::top();
        };
        match self.jobs.ancestry(key, job, self.ctx.now) {
            Ok(found) => found,
            // Without an ancestor the job is managed by its own queue name.
            Err(error) => {
                tracing::warn!(job = %key, %error, "the owners of a job are not followed");
                let event = nesting(job, error);
                if self.nested_too_deep.insert(key.clone()) {
                    self.ctx.outbox.publish(event);
                }
                FoundAncestry::top()
            }
        }
    }

    /// Evaluates every group of pods of the agenda. Returns their number.
    fn evaluate_pod_groups(&mut self, environment: &JobEnvironment<'_>) -> usize {
        let groups = self.ctx.agenda.take_pod_groups();
        for group in &groups {
            // Before its members are looked at: they may be thousands.
            if self.jobs.pause_large_group(group, &mut self.ctx) {
                continue;
            }
            let mut rebuilding = false;
            let members = self.jobs.members_of(group).filter(|key| {
                let Some((key, job)) = self.jobs.get(key) else { return false };
                let found = self.jobs.ancestry(key, job, self.ctx.now);
                let child = found.is_ok_and(|found| matches!(found.ancestry, Ancestry::ChildOf(_)));
                rebuilding |= is_rebuilding(job.metadata());
                (!child || is_deleting(job.metadata()))
                    && (environment.managed)(key, job, Ancestor::None)
            });
            let members: Vec<JobKey> = members.cloned().collect();
            // Without the members that are still to be made, the others would look like a group that has lost pods.
            if rebuilding {
                continue;
            }
            let inputs = environment.inputs(&self.workloads, self.scheduler.index());
            let effects = self.jobs.evaluate_group(group, &members, &inputs, &mut self.ctx);
            effects.into_iter().for_each(|(key, effect)| self.take_effect(&key, effect));
        }
        groups.len()
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
        if self.config.owns_workloads {
            self.workloads.finish_orphan(key, self.config.finishes_orphans, &mut self.ctx);
        }
        self.workloads.free_or_wait(key, &mut self.ctx)
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
            // An agent counts reclaimable pods itself, and a clone belongs to the manager alone: as the dependent of a
            // copy it would be deleted together with that.
            WorkloadEffect::Perform(
                WorkloadCommand::Reclaim(_)
                | WorkloadCommand::ReclaimDispatched(_)
                | WorkloadCommand::SetOwner(..),
                _,
            ) if !self.config.owns_workloads => {}
            WorkloadEffect::Perform(command, event) => {
                self.workloads.perform(key, &command, event, &mut self.ctx);
            }
            WorkloadEffect::Propose(transition) => {
                self.workloads.propose(key, transition, &mut self.ctx);
            }
        }
    }

    /// Explains why no cycle evaluates a Workload: it is in no active queue.
    fn explain_blocker(&mut self, key: &Key, fleet: &mut Fleet) {
        let record = self.workloads.get(key).filter(|one| !one.holds_or_reserves());
        // A finished Workload waits for nothing.
        let Some((record, id)) = record.and_then(|record| Some((record, record.id()?))) else {
            return;
        };
        let workload = record.object();
        let is_leaving = workload.metadata.deletion_timestamp.is_some();
        // Its waiting time begins again after a reactivation.
        if is_leaving || !workload.is_active() {
            fleet.reset_waiting(id);
        }
        if let Some((reason, message)) = self.scheduler.blocker(workload) {
            // No cycle reports that the Workload does not wait for room any more.
            fleet.pause_waiting(id);
            let delay = match reason {
                // Only a change of the Workload itself ends this.
                reasons::ADMISSION_GATED => Duration::ZERO,
                _ => self.config.scheduler.explain_after,
            };
            let (reason, not_before) = (reason.to_owned(), after(self.ctx.now, delay));
            let (gated, by_cycle) = (false, false);
            let pending = PendingMessage { reason, message, gated, by_cycle, not_before };
            self.workloads.explain(key, pending);
        } else if was_gated(record) {
            self.workloads.explain(key, gates_cleared(self.ctx.now));
        } else if names_ended_blocker(record)
            || shows_ended_reason(record, self.config.legacy_reasons)
        {
            // Behind others it is evaluated by no cycle for a while, which would leave the reason as it is.
            let not_before = after(self.ctx.now, self.config.scheduler.explain_after);
            self.workloads.explain(key, not_evaluated(not_before));
        }
    }

    fn evaluate_replaced_slice(&mut self, change: &WorkloadChange) {
        let id = change.id.filter(|_| change.after.is_some());
        let replaced = id.and_then(|id| self.scheduler.replaced_slice(id));
        if let Some((key, _)) = replaced.and_then(|id| self.workloads.by_id(id)) {
            self.ctx.agenda.now(Reevaluation::Workload(key.clone()));
        }
    }

    fn finish_replaced_slice(&mut self, key: &Key) {
        // The new slice of a clone may be withdrawn again: only its manager knows which of both its job runs with.
        if !self.config.owns_workloads {
            return;
        }
        let id = self.workloads.id_of(key);
        let message = id.and_then(|id| self.scheduler.replacement_message(id, &self.workloads));
        if let Some(message) = message {
            let reason = reasons::WORKLOAD_SLICE_REPLACED;
            self.workloads.finish_once(key, reason, message);
        }
    }

    /// Adds what the core knows to the inputs of a composition.
    fn complete_inputs(&self, key: &Key, inputs: StatusInputs) -> Option<StatusInputs> {
        let record = self.workloads.get(key)?;
        let workload = record.object();
        // Only the status of a pending Workload shows requests (docs/reference/kueue.md §1.2).
        let requests = match record.transitions().pending_message() {
            Some(pending) if pending.by_cycle => self.scheduler.resource_requests(workload),
            _ => Vec::new(),
        };
        let policy = self.config.pods_ready;
        let pods_ready = policy.and_then(|_| self.pods_ready(key, workload));
        let is_parent = self.is_parent(workload);
        // The timeout evicts the variant, and that its parent: another flavor may do better.
        let policy = policy.filter(|_| !is_parent);
        let replacement = self.jobs.replacement(key, workload, self.scheduler.index());
        // A pod that waits for its start waits for the next reservation as well.
        let is_gated = |job: &JobObject| job.as_pod().is_some_and(|one| one.is_gated());
        let job = self.jobs.of(key, workload).map(|(_, job)| job);
        let is_deleted = job.is_some_and(|job| is_deleting(job.metadata()));
        let waits_as_pod = !is_deleted && job.is_some_and(|job| is_gated(job));
        let CoreConfig { owns_workloads, legacy_reasons, explicit_status, .. } = self.config;
        let retention = self.config.keeps_finished_for.filter(|_| owns_workloads);
        Some(StatusInputs {
            gated: self.scheduler.gate_message(workload),
            is_parent,
            requeues_pods: self.config.requeues_pods || waits_as_pod,
            pod_leaves: is_deleted && !self.config.requeues_pods && is_of_single_pod(workload),
            retention,
            requests,
            pods_ready,
            replacement,
            policy,
            enforces_time_limits: owns_workloads,
            legacy_reasons,
            explicit_status,
            ..inputs
        })
    }

    /// Whether a Workload has variants that compete in its place.
    pub(super) fn is_parent(&self, workload: &Workload) -> bool {
        self.config.scheduler.index.is_parent(workload)
    }

    /// Whether the pods of a Workload are ready: those of its job, or of the job of its parent.
    fn pods_ready(&self, key: &Key, workload: &Workload) -> Option<bool> {
        let Some(owner) = workload.parent() else {
            return self.jobs.pods_ready(key, workload);
        };
        let parent = Key { namespace: key.namespace.clone(), name: owner.name.as_str().into() };
        let record = self.workloads.get(&parent)?;
        self.jobs.pods_ready(&parent, record.object())
    }
}

/// Whether a Workload waited for the end of its admission gates, by its last explanation.
fn was_gated(record: &TrackedWorkload) -> bool {
    names_blocker(record, &[reasons::ADMISSION_GATED])
}

/// Whether what a Workload waits for by its last explanation has ended: a queue exists again, or was restarted.
fn names_ended_blocker(record: &TrackedWorkload) -> bool {
    names_blocker(record, &[reasons::MISCONFIGURED, reasons::SUSPENDED])
}

/// Whether the condition of an active Workload without a blocker names one. The explanation may be that of an earlier process, and
/// deactivation leaves none.
fn shows_ended_reason(record: &TrackedWorkload, legacy_reasons: bool) -> bool {
    let workload = record.object();
    let is_explained = record.transitions().pending_message().is_some_and(|one| one.by_cycle);
    let known = find(&workload.status.conditions, QUOTA_RESERVED);
    let ended = known.is_some_and(|one| match one.reason.as_str() {
        reasons::DEACTIVATED
        | reasons::SUSPENDED
        | reasons::MISCONFIGURED
        | reasons::INADMISSIBLE => true,
        // The one of before the gate UnadmittedWorkloadsObservability for every Workload that a cycle has evaluated.
        reasons::PENDING => !legacy_reasons,
        _ => false,
    });
    ended && !is_explained && workload.is_active()
}

/// Whether the last explanation of a Workload, which no cycle has given, has one of these reasons.
fn names_blocker(record: &TrackedWorkload, blockers: &[&str]) -> bool {
    let known = record.transitions().pending_message().filter(|one| !one.by_cycle);
    known.is_some_and(|one| blockers.contains(&one.reason.as_str()))
}
