//! Jobs: every job as it was observed, and what it needs next.
//!
//! Inputs: observations, Workload changes, and answers. `jobs::reconcile` decides the next steps of a job; steps that write
//! the job go to the outbox, steps that concern its Workload are returned as [`WorkloadEffect`]s.
//!
//! | file | concept |
//! |---|---|
//! | `owners` | which Workloads belong to which job |
//! | `orphans` | dispatched jobs whose Workload was removed by force |
//! | `dispatchable` | whether a job can be dispatched to workers |
//! | `change` | writes of a job, and Events about it |

mod change;
mod dispatchable;
mod orphans;
mod owners;

use std::{collections::BTreeMap, sync::Arc};

use ::jobs::{
    GenericJob, Job, JobGates, StopWrite,
    construct_workload::{
        KeysToCopy, PrioritySource, WorkloadPriority, construct_workload, priority_source,
        workload_name_for,
    },
    equivalence,
    pod_sets_info::FlavorsByName,
    prebuilt::prebuilt_name,
    reconcile::{self, ReconcileContext, ReconcileStep, StopReason},
};
use crds::v1beta2::Workload;
use runtime::{events::EventType, watch::Key, write::Write, writer::WriteOutcome};

pub(crate) use self::{change::JobChange, orphans::OrphanedJob};

use self::{
    change::{event, submit},
    orphans::Orphans,
    owners::Owners,
};
use super::{
    context::Context,
    outbox::{Intent, Purpose, Settled, Stamp, Subject, Target, Ticket, Tracked},
    timers::Reevaluation,
    workloads::{Transition, WorkloadChange, WorkloadCommand, Workloads},
};

/// What jobs are configured with.
#[derive(Clone, Debug)]
pub(crate) struct JobsConfig {
    pub(crate) gates: JobGates,
    /// Labels and annotations that Workloads get from their jobs.
    pub(crate) keys_to_copy: KeysToCopy,
}

/// What decides about a job beside the job itself.
pub(crate) struct JobInputs<'a> {
    pub(crate) workloads: &'a Workloads,
    pub(crate) flavors: &'a FlavorsByName,
    /// The priority of a source; `None` if its class does not exist.
    pub(crate) priority: &'a dyn Fn(&PrioritySource) -> Option<WorkloadPriority>,
}

/// What a step of a job means for a Workload.
#[derive(Debug)]
pub(crate) enum WorkloadEffect {
    /// Written at once, if the Workload may be written.
    Perform(WorkloadCommand),
    /// Part of the next status.
    Propose(Transition),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Jobs {
    config: JobsConfig,
    jobs: BTreeMap<Key, Tracked<Job>>,
    owners: Owners,
    orphans: Orphans,
    /// By running job, the Workload that was removed by force. It has what the job was before its start; after a restart only
    /// what names the Workload is restored.
    removed_by_force: BTreeMap<Key, Arc<Workload>>,
}

impl Jobs {
    pub(crate) fn new(config: JobsConfig) -> Self {
        Self {
            config,
            jobs: BTreeMap::new(),
            owners: Owners::default(),
            orphans: Orphans::default(),
            removed_by_force: BTreeMap::new(),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<(&Key, &Arc<Job>)> {
        self.jobs.get_key_value(key).map(|(key, tracked)| (key, tracked.object()))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.jobs.keys()
    }

    pub(crate) fn gates(&self) -> JobGates {
        self.config.gates
    }

    /// The job of a Workload: its controller, or a job that names it.
    pub(crate) fn of(&self, key: &Key, workload: &Workload) -> Option<(&Key, &Arc<Job>)> {
        let named = self.owners.naming(key).next();
        let controller = owners::controller(key, workload);
        let key = controller.as_ref().filter(|key| self.jobs.contains_key(key)).or(named)?;
        self.get(key)
    }

    /// The job that lost this Workload by force.
    pub(crate) fn orphan_of(&self, workload: &Key) -> Option<&OrphanedJob> {
        self.orphans.get(workload)
    }

    /// Workloads that orphaned jobs had.
    pub(crate) fn orphaned_workloads(&self) -> impl Iterator<Item = &Key> {
        self.orphans.workloads()
    }

    /// Whether anything is known of what jobs had before they started.
    #[cfg(test)]
    pub(crate) fn remembers_any(&self) -> bool {
        !self.removed_by_force.is_empty()
    }

    /// Whether the pods of the job of a Workload are ready.
    pub(crate) fn pods_ready(&self, key: &Key, workload: &Workload) -> Option<bool> {
        let (_, job) = self.of(key, workload)?;
        reconcile::pods_ready(&**job)
    }

    /// Why the job of a Workload cannot be dispatched to workers.
    pub(crate) fn undispatchable(&self, key: &Key, workload: &Workload) -> Option<String> {
        let job = self.of(key, workload).map(|(_, job)| &**job);
        dispatchable::refusal(job, workload)
    }

    /// Records an observation; `None` if the job is gone.
    pub(crate) fn observe(&mut self, key: &Key, object: Option<Job>, ctx: &mut Context) {
        let Some(job) = object else {
            return self.remove(key, ctx);
        };
        if let Some(workload) = self.named_workload(key, &job) {
            self.owners.add_name(workload.clone(), key);
            ctx.agenda.now(Reevaluation::Workload(workload));
        }
        let newer = match self.jobs.get_mut(key) {
            Some(tracked) => tracked.observe(job),
            None => {
                self.jobs.insert(key.clone(), Tracked::new(job));
                true
            }
        };
        if newer {
            self.evaluate_with_workloads(key, ctx);
        }
    }

    /// Takes a change of a Workload: its jobs are evaluated.
    pub(crate) fn workload_changed(&mut self, change: &WorkloadChange, ctx: &mut Context) {
        match (&change.before, &change.after) {
            (_, Some(after)) => self.owners.add_workload(&change.key, after),
            (Some(before), None) => self.workload_removed(&change.key, before),
            (None, None) => {}
        }
        if let Some(workload) = change.after.as_ref().or(change.before.as_ref()) {
            self.evaluate_jobs_of(&change.key, workload, ctx);
        }
    }

    /// Evaluates the jobs of a Workload.
    pub(crate) fn evaluate_jobs_of(&self, key: &Key, workload: &Workload, ctx: &mut Context) {
        ctx.agenda.jobs(self.owners.jobs_of(key, workload));
    }

    /// Decides about one job. `managed` says whether it is this process's to suspend and start
    /// (docs/reference/kueue.md §7.3, 0d to 0g).
    pub(crate) fn evaluate(
        &mut self,
        key: &Key,
        managed: bool,
        inputs: &JobInputs<'_>,
        ctx: &mut Context,
    ) -> Vec<(Key, WorkloadEffect)> {
        let Some(tracked) = self.jobs.get(key) else {
            return self.abandon(key);
        };
        let waiter = Reevaluation::Job(key.clone());
        if !ctx.is_free(&target(key), &tracked.stamp(), &waiter) || !managed {
            return Vec::new();
        }
        let job = Arc::clone(tracked.object());
        let prebuilt = self.named_workload(key, &job);
        self.track_orphan(key, &job, prebuilt.as_ref(), inputs.workloads, ctx);
        if job.is_suspended() {
            self.removed_by_force.remove(key);
        }
        let steps = self.steps(key, &job, prebuilt.as_ref(), inputs);
        tracing::trace!(job = %key, n_steps = steps.len(), outcome = ?job.finished(), "evaluated");
        let steps = steps.into_iter();
        steps.filter_map(|step| self.take_step(key, &job, step, inputs, ctx)).collect()
    }

    /// Writes what differs between a job and its next state.
    pub(crate) fn write(&self, key: &Key, change: &JobChange, ctx: &mut Context) {
        if let Some(tracked) = self.jobs.get(key) {
            submit(key, tracked, change, ctx);
        }
    }

    /// Whether a job may be written now.
    pub(crate) fn is_free(&self, key: &Key, ctx: &Context) -> bool {
        let tracked = self.jobs.get(key);
        tracked.is_some_and(|one| ctx.outbox.writes().is_free(&target(key), &one.stamp(), ctx.now))
    }

    /// Takes the answer to a write of a job.
    pub(crate) fn answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        (settled, workloads): (&Settled, &Workloads),
        ctx: &mut Context,
    ) {
        let key = &ticket.target.key;
        let Some(tracked) = self.jobs.get_mut(key) else {
            return;
        };
        // A 404 removes the job; the watch may never report it.
        if answer == WriteOutcome::Gone && settled.base.as_ref() == Some(&tracked.stamp()) {
            return self.remove(key, ctx);
        }
        if let WriteOutcome::Done(value) = answer {
            tracked.observe_answer(value);
            if ticket.purpose == Purpose::Start {
                self.announce_start(key, workloads, ctx);
            }
        }
        self.evaluate_with_workloads(key, ctx);
    }

    fn remove(&mut self, key: &Key, ctx: &mut Context) {
        if let Some(tracked) = self.jobs.remove(key)
            && let Some(workload) = self.named_workload(key, tracked.object())
        {
            self.owners.remove_name(&workload, key);
            ctx.agenda.now(Reevaluation::Workload(workload));
        }
        self.removed_by_force.remove(key);
        self.orphans.remove_job(key);
        self.evaluate_with_workloads(key, ctx);
    }

    fn evaluate_with_workloads(&self, key: &Key, ctx: &mut Context) {
        ctx.agenda.workloads(self.owners.owned_by(key).cloned());
        ctx.agenda.now(Reevaluation::Job(key.clone()));
    }

    fn workload_removed(&mut self, key: &Key, workload: &Arc<Workload>) {
        let Some(owner) = self.owners.remove_workload(key, workload) else {
            return;
        };
        let runs = |job: &Job| !job.is_suspended() && job.finished().is_none();
        if self.get(&owner).is_some_and(|(_, job)| runs(job)) {
            self.removed_by_force.insert(owner, Arc::clone(workload));
        }
    }

    /// The Workload that the job names itself.
    fn named_workload(&self, key: &Key, job: &Job) -> Option<Key> {
        let name = prebuilt_name(job, self.config.gates).name;
        let key = Key { namespace: key.namespace.clone(), name: name.into() };
        (!name.is_empty()).then_some(key)
    }

    /// Workloads of a job that is gone: the finalizer is removed, the garbage collector deletes them.
    fn abandon(&self, key: &Key) -> Vec<(Key, WorkloadEffect)> {
        let workloads = self.owners.owned_by(key).cloned();
        workloads
            .map(|key| (key, WorkloadEffect::Perform(WorkloadCommand::RemoveFinalizer)))
            .collect()
    }

    /// Records whether the Workload of a running copy was removed by force.
    fn track_orphan(
        &mut self,
        key: &Key,
        job: &Job,
        prebuilt: Option<&Key>,
        workloads: &Workloads,
        ctx: &mut Context,
    ) {
        let workload = prebuilt.cloned().unwrap_or_else(|| {
            let name = workload_name_for(job, self.config.gates);
            Key { namespace: key.namespace.clone(), name: name.into() }
        });
        let has_another = self.owners.owns_any(key) || workloads.get(&workload).is_some();
        let runs = job.is_managed_elsewhere() && job.is_active() && job.finished().is_none();
        if has_another || !runs {
            self.orphans.remove(&workload);
        } else {
            let had = self.removed_by_force.get(key);
            self.orphans.add(workload.clone(), key, had.map(Arc::as_ref));
            ctx.agenda.now(Reevaluation::Workload(workload));
        }
    }

    fn steps(
        &self,
        key: &Key,
        job: &Job,
        prebuilt: Option<&Key>,
        inputs: &JobInputs<'_>,
    ) -> Vec<ReconcileStep<Job>> {
        let of_job = match prebuilt {
            Some(named) => vec![named],
            None => self.owners.owned_by(key).collect(),
        };
        let records = of_job.into_iter().filter_map(|key| inputs.workloads.get(key));
        let workloads: Vec<&Workload> = records
            .map(|record| &**record.object())
            .filter(|workload| belongs_to(job, workload, prebuilt.is_some()))
            .collect();
        let removed = self.removed_by_force.get(key).map(Arc::as_ref);
        let context = ReconcileContext {
            workloads: &workloads,
            previous_workload: removed.filter(|workload| belongs_to(job, workload, false)),
            prebuilt: prebuilt.is_some(),
            flavors: inputs.flavors,
            gates: self.config.gates,
        };
        reconcile::reconcile(job, context)
    }

    /// Takes one step of a job. Returns what it means for a Workload.
    fn take_step(
        &mut self,
        key: &Key,
        job: &Arc<Job>,
        step: ReconcileStep<Job>,
        inputs: &JobInputs<'_>,
        ctx: &mut Context,
    ) -> Option<(Key, WorkloadEffect)> {
        let in_namespace = |name: &str| Key { namespace: key.namespace.clone(), name: name.into() };
        let perform =
            |name: &str, command| Some((in_namespace(name), WorkloadEffect::Perform(command)));
        let propose = |name: &str, transition| {
            Some((in_namespace(name), WorkloadEffect::Propose(transition)))
        };
        match step {
            ReconcileStep::CreateWorkload => self.create_workload(key, job, inputs, ctx),
            ReconcileStep::UpdateWorkload(after) => {
                let name = after.metadata.name.clone().unwrap_or_default();
                return perform(&name, WorkloadCommand::UpdateSpec(after));
            }
            ReconcileStep::DeleteWorkload(name) => return perform(&name, WorkloadCommand::Delete),
            ReconcileStep::RemoveFinalizer(name) => {
                return perform(&name, WorkloadCommand::RemoveFinalizer);
            }
            ReconcileStep::UpdateReclaimablePods(name, pods) => {
                return perform(&name, WorkloadCommand::Reclaim(pods));
            }
            ReconcileStep::UpdateQueueName(name) => {
                return perform(&name, WorkloadCommand::MoveToQueue(job.queue_name().to_owned()));
            }
            ReconcileStep::FinishWorkload { workload, reason, message } => {
                let reason = reason.to_owned();
                return propose(&workload, Transition::Finish { reason, message });
            }
            ReconcileStep::ReleaseQuota(name) => return propose(&name, Transition::Release),
            ReconcileStep::StartJob(after) => {
                self.write(key, &JobChange::spec(after, Purpose::Start), ctx);
            }
            ReconcileStep::StopJob(StopWrite::Object(after), reason) => {
                if !job.spec_suspended() {
                    let message = stop_message(reason).to_owned();
                    ctx.outbox.publish(event(job, EventType::Normal, "Stopped", message));
                }
                self.write(key, &JobChange::spec(after, Purpose::Stop), ctx);
            }
            ReconcileStep::StopJob(StopWrite::Status(after), _) => {
                self.write(key, &JobChange::status(after, Purpose::StopStatus), ctx);
            }
        }
        None
    }

    fn create_workload(&self, key: &Key, job: &Job, inputs: &JobInputs<'_>, ctx: &mut Context) {
        let source = priority_source(job, self.config.gates);
        let Some(priority) = (inputs.priority)(&source) else {
            let message = format!("the priority class of {source:?} is not there");
            let reason = "WorkloadPriorityClassNotFound";
            return ctx.outbox.publish(event(job, EventType::Warning, reason, message));
        };
        let workload =
            construct_workload(job, priority, &self.config.keys_to_copy, self.config.gates);
        let name = workload.metadata.name.clone().unwrap_or_default();
        let workload_key = Key { namespace: key.namespace.clone(), name: name.into() };
        // An existing Workload of this name differs from the job; it is being removed.
        if inputs.workloads.get(&workload_key).is_some() {
            return;
        }
        let target = Target::home(Subject::Workload, &workload_key);
        let waiter = Reevaluation::Job(key.clone());
        if !ctx.is_free(&target, &Stamp::default(), &waiter) {
            return;
        }
        let (purpose, base) = (Purpose::WorkloadCreate, Stamp::default());
        ctx.outbox.submit(Intent { target, purpose, base, waiter }, |purpose, _| {
            Write::create(purpose, &workload)
        });
    }

    fn announce_start(&self, key: &Key, workloads: &Workloads, ctx: &mut Context) {
        let Some((_, job)) = self.get(key) else {
            return;
        };
        let named = self.named_workload(key, job);
        let keys = named.iter().chain(self.owners.owned_by(key));
        let mut records = keys.filter_map(|key| workloads.get(key));
        let admission = records.find_map(|one| one.object().status.admission.as_ref());
        let queue = admission.map(|one| one.cluster_queue.clone()).unwrap_or_default();
        let message = format!("Admitted by clusterQueue {queue}");
        ctx.outbox.publish(event(job, EventType::Normal, "Started", message));
    }
}

fn target(key: &Key) -> Target {
    Target::home(Subject::Job, key)
}

/// Whether a Workload can be this job's. One that the job only names must be of the same epoch.
fn belongs_to(job: &Job, workload: &Workload, prebuilt: bool) -> bool {
    if prebuilt {
        let epoch = ::jobs::remote_objects::epoch;
        return epoch(&job.metadata) == epoch(&workload.metadata);
    }
    equivalence::owned_by(workload, job)
}

fn stop_message(reason: StopReason) -> &'static str {
    match reason {
        StopReason::NoMatchingWorkload => "No matching Workload; restoring pod templates",
        StopReason::WorkloadDeleted => "Workload is deleted",
        StopReason::WorkloadEvicted => "Workload is evicted",
        StopReason::NotAdmitted => "Not admitted by cluster queue",
    }
}
