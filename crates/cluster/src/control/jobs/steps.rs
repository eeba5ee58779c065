//! The steps of one unit of work, a job or a group of pods, as writes and Events.

use ::jobs::{
    GenericJob, JobGates, JobObject, StopWrite,
    construct_workload::{
        PrioritySource, ReplacedSlice, WorkloadPriority, owner_reference, uid_label,
    },
    pods,
    reconcile::{JobStep, ReconcileStep, StopReason, WorkloadStep, stop_message},
};
use crds::{names::reasons, v1beta2::Workload};
use runtime::{events::EventType, watch::Key, write::Write};

use super::{
    announcements,
    change::{JobChange, event, submit, submit_deletion},
    inputs::{JobInputs, WorkloadEffect},
};
use crate::control::{
    context::Context,
    job_key::JobKey,
    key_map::KeyMap,
    outbox::{Announcements, Intent, Purpose, Stamp, Subject, Target, Tracked},
    timers::Reevaluation,
    workloads::{Transition, WorkloadCommand},
};

/// What is evaluated together, and how its Workload is made.
pub(super) struct Unit<'a> {
    /// Evaluates the unit again.
    pub(super) waiter: Reevaluation,
    /// The job, or the oldest member of a group: Events about the unit are about it.
    pub(super) first: &'a JobObject,
    /// The key of the first.
    pub(super) key: &'a JobKey,
    /// The Workload that it had before the evaluation, if any.
    pub(super) had: Option<&'a Workload>,
    /// No Workload that is known started it: if it runs, it runs past its queue.
    pub(super) is_unaccounted: bool,
    /// Where the priority of the Workload comes from; read by the steps that need it.
    pub(super) priority: &'a dyn Fn() -> PrioritySource,
    /// The Workload with this priority; `None` if it cannot be made any more.
    pub(super) workload: &'a dyn Fn(&NewWorkload, WorkloadPriority) -> Option<Workload>,
}

/// Which Workload of a unit is new.
pub(super) enum NewWorkload {
    /// The only one.
    Whole,
    /// That of a replica of a set.
    OfReplica(u32),
    /// The slice of an elastic job in place of this one.
    Replacement(ReplacedSlice),
}

/// Takes the steps of a unit.
pub(super) struct StepTaker<'a> {
    pub(super) unit: Unit<'a>,
    pub(super) jobs: &'a KeyMap<JobKey, Tracked<JobObject>>,
    pub(super) inputs: &'a JobInputs<'a>,
    pub(super) gates: JobGates,
    /// See [`JobsConfig`](super::inputs::JobsConfig).
    pub(super) creates_workloads: bool,
}

/// What a step means for the Workload of a group without members.
pub(super) fn release(
    group: &Key,
    step: &ReconcileStep<JobObject>,
) -> Option<(Key, WorkloadEffect)> {
    let effect = match step {
        ReconcileStep::Workload { write: WorkloadStep::RemoveFinalizer, .. } => {
            WorkloadEffect::Perform(WorkloadCommand::RemoveFinalizer, None)
        }
        ReconcileStep::Workload { write: WorkloadStep::ReleaseQuota, .. } => {
            WorkloadEffect::Propose(Transition::Release)
        }
        _ => return None,
    };
    Some((group.clone(), effect))
}

impl StepTaker<'_> {
    /// Takes one step. Returns what it means for a Workload.
    pub(super) fn take(
        &self,
        step: ReconcileStep<JobObject>,
        ctx: &mut Context,
    ) -> Option<(Key, WorkloadEffect)> {
        match step {
            ReconcileStep::CreateWorkload => self.create_workload(&NewWorkload::Whole, ctx),
            ReconcileStep::CreateReplicaWorkload(replica) => {
                self.create_workload(&NewWorkload::OfReplica(replica), ctx);
            }
            ReconcileStep::CreateSlice(replaced) => {
                self.create_workload(&NewWorkload::Replacement(replaced), ctx);
            }
            ReconcileStep::UpdateWorkload(after) => return self.update_workload(after, ctx),
            ReconcileStep::ResizeSlice(after) => {
                let name = after.metadata.name.clone().unwrap_or_default();
                return Some(self.perform(&name, WorkloadCommand::Resize(after)));
            }
            ReconcileStep::Workload { name, write } => return self.take_of(&name, write, ctx),
            ReconcileStep::Job(step) => self.take_of_job(step, ctx),
            ReconcileStep::ReportExcess { pod, message } => self.report(&pod, message, ctx),
            ReconcileStep::Refuse { reason, message } => {
                ctx.outbox.publish(announcements::refusal(self.unit.first, reason, message));
            }
        }
        None
    }

    fn take_of_job(&self, step: JobStep<JobObject>, ctx: &mut Context) {
        match step {
            JobStep::Annotate(after) => self.write(after, Purpose::JobAnnotate, ctx),
            JobStep::Adopt(after) => self.write(after, Purpose::Adopt, ctx),
            JobStep::Start(after) => self.write(after, Purpose::Start, ctx),
            JobStep::Finalize(after) => self.write(after, Purpose::JobUnfinalize, ctx),
            JobStep::Stop(write, reason) => self.stop(write, reason, ctx),
            JobStep::DeleteExcess(job) => {
                let (reason, note) = (reasons::EXCESS_POD_DELETED, "Excess pod deleted".to_owned());
                ctx.outbox.publish(event(&job, EventType::Normal, reason, note));
                self.delete(&job, ctx);
            }
        }
    }

    /// What a step means for the Workload of this name.
    fn take_of(
        &self,
        name: &str,
        write: WorkloadStep,
        ctx: &mut Context,
    ) -> Option<(Key, WorkloadEffect)> {
        let job = self.unit.first;
        let command = match write {
            WorkloadStep::Finish { reason, message } => {
                let reason = reason.to_owned();
                return Some(self.propose(name, Transition::Finish { reason, message }));
            }
            WorkloadStep::ReleaseQuota => return Some(self.propose(name, Transition::Release)),
            WorkloadStep::Hold(message) => {
                return Some(self.propose(name, Transition::Hold(message)));
            }
            WorkloadStep::EndHold => return Some(self.propose(name, Transition::EndHold)),
            WorkloadStep::Delete => WorkloadCommand::Delete,
            WorkloadStep::RemoveFinalizer => WorkloadCommand::RemoveFinalizer,
            WorkloadStep::UpdateReclaimablePods(pods) if job.is_managed_elsewhere() => {
                WorkloadCommand::ReclaimDispatched(pods)
            }
            WorkloadStep::UpdateReclaimablePods(pods) => WorkloadCommand::Reclaim(pods),
            WorkloadStep::UpdateQueueName(queue_name) => WorkloadCommand::MoveToQueue(queue_name),
            WorkloadStep::UpdateAdmissionGates(gates) => WorkloadCommand::SetAdmissionGates(gates),
            WorkloadStep::UpdatePriority => WorkloadCommand::SetPriorityClass(self.priority(ctx)?),
            WorkloadStep::TakeOwnership => {
                let uid = uid_label(job).map(str::to_owned);
                WorkloadCommand::SetOwner(Box::new(owner_reference(job)), uid)
            }
            WorkloadStep::AddOwners(owners) => WorkloadCommand::AddOwners(owners),
        };
        Some(self.perform(name, command))
    }

    /// The priority follows from the job like the rest of the spec. That of a set stays as it was at the creation.
    fn update_workload(
        &self,
        mut after: Box<Workload>,
        ctx: &mut Context,
    ) -> Option<(Key, WorkloadEffect)> {
        if self.unit.first.set_size().is_none() {
            let WorkloadPriority { value, class } = self.priority(ctx)?;
            (after.spec.priority, after.spec.priority_class_ref) = (Some(value), class);
        }
        let name = after.metadata.name.clone().unwrap_or_default();
        Some(self.perform(&name, WorkloadCommand::UpdateSpec(after)))
    }

    fn perform(&self, name: &str, command: WorkloadCommand) -> (Key, WorkloadEffect) {
        let key = self.unit.key.in_namespace(name);
        let event = announcements::of_command(self.unit.first, &key, &command, self.inputs);
        (key, WorkloadEffect::Perform(command, event))
    }

    fn propose(&self, name: &str, transition: Transition) -> (Key, WorkloadEffect) {
        (self.unit.key.in_namespace(name), WorkloadEffect::Propose(transition))
    }

    fn stop(&self, write: StopWrite<JobObject>, reason: StopReason, ctx: &mut Context) {
        let change = match write {
            StopWrite::Object(after) => JobChange::spec(after, Purpose::Stop),
            StopWrite::Status(after) => JobChange::status(after, Purpose::StopStatus),
            StopWrite::Delete(job) => return self.delete(&job, ctx),
        };
        let after = change.after();
        let Some((key, tracked)) = self.tracked(after) else {
            return;
        };
        // A stop has several writes; the first one is announced. That of a pod is the mark of its termination.
        let is_first = match after.as_pod() {
            Some(_) => change.is_of_status(),
            None => !change.is_of_status() && !tracked.object().spec_suspended(),
        };
        if submit(&key, tracked, &change, ctx) && is_first {
            let note = stop_message(after, self.unit.had, reason, self.gates);
            let stopped = event(after, EventType::Normal, "Stopped", note);
            let past_queue = reason == StopReason::NoMatchingWorkload && self.unit.is_unaccounted;
            // Kueue's Event is Normal, and the same as after the end of a Workload.
            let warning = past_queue.then(|| announcements::ran_without_workload(after));
            let events = std::iter::once(stopped).chain(warning).collect();
            ctx.outbox.announce(Announcements { events, measurements: Vec::new() });
        }
    }

    fn write(&self, after: Box<JobObject>, purpose: Purpose, ctx: &mut Context) {
        if let Some((key, tracked)) = self.tracked(&after) {
            submit(&key, tracked, &JobChange::spec(after, purpose), ctx);
        }
    }

    fn delete(&self, job: &JobObject, ctx: &mut Context) {
        if let Some((key, tracked)) = self.tracked(job) {
            submit_deletion(&key, tracked, Purpose::Stop, ctx);
        }
    }

    /// Announces that a member of the group requests more than its role.
    fn report(&self, pod: &str, message: String, ctx: &mut Context) {
        let key = JobKey::new(pods::kind(), &self.unit.key.in_namespace(pod));
        if let Some(pod) = self.jobs.get(&key) {
            let reason = reasons::POD_EXCEEDS_ROLE_REQUESTS;
            ctx.outbox.publish(event(pod.object(), EventType::Warning, reason, message));
        }
    }

    /// The observed state of the job that a step names.
    fn tracked(&self, job: &JobObject) -> Option<(JobKey, &Tracked<JobObject>)> {
        let name = job.metadata().name.as_deref().unwrap_or_default();
        let key = JobKey::new(job.kind(), &self.unit.key.in_namespace(name));
        self.jobs.get(&key).map(|tracked| (key, tracked))
    }

    fn create_workload(&self, new: &NewWorkload, ctx: &mut Context) {
        if !self.creates_workloads || self.inputs.without_creation {
            return;
        }
        let priority = self.priority(ctx);
        let Some(workload) = priority.and_then(|one| (self.unit.workload)(new, one)) else {
            return;
        };
        let name = workload.metadata.name.as_deref().unwrap_or_default();
        let key = self.unit.key.in_namespace(name);
        // An existing Workload of this name differs from the job; it is being removed.
        if self.inputs.workloads.get(&key).is_some() {
            return;
        }
        let (target, waiter) = (Target::home(Subject::Workload, &key), self.unit.waiter.clone());
        if !ctx.free_or_wait(&target, &Stamp::default(), &waiter) {
            return;
        }
        let (purpose, base) = (Purpose::WorkloadCreate, Stamp::default());
        ctx.outbox.submit(Intent { target, purpose, base, waiter }, |purpose, _| {
            Write::create(purpose, &workload)
        });
    }

    /// The priority of the unit, or an Event that its class does not exist.
    fn priority(&self, ctx: &mut Context) -> Option<WorkloadPriority> {
        let source = (self.unit.priority)();
        let priority = (self.inputs.priority)(&source);
        if priority.is_none() {
            // No retry: a class that is created evaluates every job (docs/reference/kueue.md §7.5).
            ctx.outbox.publish(announcements::class_not_found(self.unit.first, &source));
        }
        priority
    }
}
