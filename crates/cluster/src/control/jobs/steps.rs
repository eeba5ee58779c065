//! The steps of one unit of work, a job or a group of pods, as writes and Events.

use ::jobs::{
    GenericJob, JobGates, JobObject, StopWrite,
    construct_workload::{PrioritySource, ReplacedSlice, WorkloadPriority},
    pods,
    reconcile::{ReconcileStep, StopReason, stop_message},
};
use crds::{names::reasons, v1beta2::Workload};
use runtime::{events::EventType, watch::Key, write::Write};

use super::{
    announcements,
    change::{JobChange, event, submit, submit_deletion},
    inputs::{JobInputs, WorkloadEffect},
    workload_command::workload_command,
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
        ReconcileStep::RemoveFinalizer(_) => {
            WorkloadEffect::Perform(WorkloadCommand::RemoveFinalizer, None)
        }
        ReconcileStep::ReleaseQuota(_) => WorkloadEffect::Propose(Transition::Release),
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
        if let Some((name, command)) = workload_command(self.unit.first, &step) {
            return Some(self.perform(&name, command));
        }
        match step {
            ReconcileStep::CreateWorkload => self.create_workload(&NewWorkload::Whole, ctx),
            ReconcileStep::CreateReplicaWorkload(replica) => {
                self.create_workload(&NewWorkload::OfReplica(replica), ctx);
            }
            ReconcileStep::CreateSlice(replaced) => {
                self.create_workload(&NewWorkload::Replacement(replaced), ctx);
            }
            ReconcileStep::AnnotateJob(after) => self.write(after, Purpose::JobAnnotate, ctx),
            ReconcileStep::AdoptMember(after) => self.write(after, Purpose::Adopt, ctx),
            ReconcileStep::UpdateWorkload(after) => return self.update_workload(after, ctx),
            ReconcileStep::UpdatePriority(name) => {
                let priority = self.priority(ctx)?;
                return Some(self.perform(&name, WorkloadCommand::SetPriorityClass(priority)));
            }
            ReconcileStep::FinishWorkload { workload, reason, message } => {
                let reason = reason.to_owned();
                return Some(self.propose(&workload, Transition::Finish { reason, message }));
            }
            ReconcileStep::ReleaseQuota(name) => {
                return Some(self.propose(&name, Transition::Release));
            }
            ReconcileStep::HoldWorkload { workload, message } => {
                return Some(self.propose(&workload, Transition::Hold(message)));
            }
            ReconcileStep::EndHold(name) => {
                return Some(self.propose(&name, Transition::EndHold));
            }
            ReconcileStep::StartJob(after) => self.write(after, Purpose::Start, ctx),
            ReconcileStep::FinalizeJob(after) => self.write(after, Purpose::JobUnfinalize, ctx),
            ReconcileStep::StopJob(write, reason) => self.stop(write, reason, ctx),
            ReconcileStep::DeleteExcess(job) => {
                let (reason, note) = (reasons::EXCESS_POD_DELETED, "Excess pod deleted".to_owned());
                ctx.outbox.publish(event(&job, EventType::Normal, reason, note));
                self.delete(&job, ctx);
            }
            ReconcileStep::ReportExcess { pod, message } => self.report(&pod, message, ctx),
            ReconcileStep::Refuse { reason, message } => {
                ctx.outbox.publish(announcements::refusal(self.unit.first, reason, message));
            }
            // Writes of the Workload, above.
            ReconcileStep::ResizeSlice(_)
            | ReconcileStep::DeleteWorkload(_)
            | ReconcileStep::RemoveFinalizer(_)
            | ReconcileStep::UpdateReclaimablePods(..)
            | ReconcileStep::UpdateQueueName { .. }
            | ReconcileStep::UpdateAdmissionGates(..)
            | ReconcileStep::AddOwners(..)
            | ReconcileStep::TakeOwnership(_) => {}
        }
        None
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
        if !ctx.is_free(&target, &Stamp::default(), &waiter) {
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
