//! Events about a job that follow from its Workload (docs/reference/kueue.md §6.3).

use std::{sync::Arc, time::Duration};

use ::jobs::{
    GenericJob, JobObject,
    ancestor_search::{AncestorError, MAX_ANCESTORS},
    construct_workload::PrioritySource,
    declared::StartObstacle,
    pods::pod::FRAMEWORK,
};
use crds::{
    meta::{find_true, is_true},
    names::{
        conditions::{ADMITTED, EVICTED, FINISHED, QUOTA_RESERVED},
        gates::ADMISSION,
        reasons::{
            CREATED_WORKLOAD, FAILED_TO_CREATE_WORKLOAD, OUT_OF_SYNC, OWNER_REFERENCES_ADDED,
            RAN_WITHOUT_WORKLOAD, WORKLOAD_NAME_CONFLICT, WORKLOAD_SLICE_REPLACED,
        },
        reporters,
    },
    v1beta2::Workload,
};
use jiff::Timestamp;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
};

use super::{Jobs, change::event, inputs::JobInputs, workload_jobs::WorkloadJobs};
use crate::control::{
    context::Context,
    job_key::JobKey,
    measurement::Measurement,
    outbox::Ticket,
    timers::Reevaluation,
    workload_measurements::gate_removed,
    workloads::{WorkloadCommand, Workloads},
};

/// The Event that follows a write of a Workload that its job asked for, if any: about the job, or about the Workload of a
/// group that has got further members.
pub(super) fn of_command(
    job: &JobObject,
    workload: &Key,
    command: &WorkloadCommand,
    inputs: &JobInputs<'_>,
) -> Option<EventRecord> {
    if let WorkloadCommand::AddOwners(added) = command {
        let record = inputs.workloads.get(workload)?;
        return Some(EventRecord {
            regarding: Regarding::of(&**record.object()),
            event_type: EventType::Normal,
            action: OWNER_REFERENCES_ADDED.to_owned(),
            reason: OWNER_REFERENCES_ADDED.to_owned(),
            note: format!("Added {} owner reference(s)", added.len()),
            controller: Some(reporters::of_framework(FRAMEWORK)),
        });
    }
    let (reason, note) = match command {
        WorkloadCommand::UpdateSpec(_) => {
            let note = format!("Updated not matching Workload for suspended job: {workload}");
            ("UpdatedWorkload", note)
        }
        WorkloadCommand::SetAdmissionGates(gates) => {
            let gates = gates.as_deref().unwrap_or_default();
            ("UpdatedWorkload", format!("Updated workload AdmissionGatedBy to {gates:?}"))
        }
        WorkloadCommand::SetPriorityClass(_) => {
            ("UpdatedWorkload", format!("Updated workload priority class: {workload}"))
        }
        WorkloadCommand::Delete => {
            ("DeletedWorkload", format!("Deleted not matching Workload: {workload}"))
        }
        _ => return None,
    };
    Some(event(job, EventType::Normal, reason, note))
}

/// Events about the jobs of a Workload that follow from a change of it.
pub(super) fn of_change(before: Option<&Workload>, jobs: WorkloadJobs<'_, '_>) -> Vec<EventRecord> {
    let message = waiting_checks(before, jobs.workload);
    let waiting = message.iter().flat_map(|message| {
        let waiting = jobs.all().filter(|(_, job)| job.is_suspended());
        waiting.map(|(_, job)| checks(job, message.clone()))
    });
    let over = before.is_some_and(|before| ends_job(before, jobs.workload));
    let ended = over.then(|| oldest(jobs)).flatten();
    waiting.chain(ended.map(|job| declared_finished(job, jobs.key))).collect()
}

/// Whether the job of a Workload has ended with this change. A slice that another one replaced and a Workload that does not match
/// are not the end of the job.
fn ends_job(before: &Workload, after: &Workload) -> bool {
    let others = [OUT_OF_SYNC, WORKLOAD_SLICE_REPLACED];
    let over = find_true(&after.status.conditions, FINISHED);
    over.is_some_and(|over| !others.contains(&over.reason.as_str()))
        && !is_true(&before.status.conditions, FINISHED)
}

/// The oldest job of a Workload: of a set, the oldest pod.
fn oldest<'s>(jobs: WorkloadJobs<'s, '_>) -> Option<&'s JobObject> {
    let all = jobs.all().map(|(_, job)| &**job);
    all.filter(|job| job.set_size().is_none()).min_by_key(|job| {
        let metadata = job.metadata();
        (metadata.creation_timestamp.clone(), metadata.name.clone())
    })
}

/// The Event about the end of a Workload.
fn declared_finished(job: &JobObject, workload: &Key) -> EventRecord {
    let note = format!("Workload '{workload}' is declared finished");
    event(job, EventType::Normal, "FinishedWorkload", note)
}

/// The Event about a job that is stopped because it runs and no Workload of it is known.
pub(super) fn ran_without_workload(job: &JobObject) -> EventRecord {
    let note = "The job ran past its queue and is stopped: for example no webhook suspended it, or its Workload was removed while the manager did not run";
    event(job, EventType::Warning, RAN_WITHOUT_WORKLOAD, note.to_owned())
}

/// The Event about a job that gets no Workload or does not start.
pub(super) fn refusal(job: &JobObject, reason: &'static str, message: String) -> EventRecord {
    let mut refusal = event(job, EventType::Warning, reason, message);
    // Of all reasons that jobs report this is the only one with an action of another name.
    if reason == WORKLOAD_NAME_CONFLICT {
        "Admission".clone_into(&mut refusal.action);
    }
    refusal
}

impl Jobs {
    /// Announces that the Workload of a job or of a group is created.
    pub(crate) fn announce_creation(&mut self, ticket: &Ticket, ctx: &mut Context) {
        if let Some((key, job)) = self.first_of(ticket) {
            ctx.outbox.publish(created(job, &ticket.target.key));
            ctx.measurements.extend(creation_latency(job, ctx.now));
            let key = key.clone();
            self.refused_creations.remove(&key);
        }
    }

    /// Announces why the API server refuses the Workload of a job or of a group. The create is repeated, the Event from time to time.
    pub(crate) fn announce_refused_creation(
        &mut self,
        ticket: &Ticket,
        message: &str,
        ctx: &mut Context,
    ) {
        let workload = &ticket.target.key;
        let Some((key, job)) = self.first_of(ticket) else { return };
        let note = format!("Failed to create Workload {workload}: {message}");
        let refused = event(job, EventType::Warning, FAILED_TO_CREATE_WORKLOAD, note);
        let key = key.clone();
        if self.refused_creations.record_due_report(&key, message, ctx.now) {
            ctx.outbox.publish(refused);
        }
    }

    /// Forgets what was reported about a job that an observation shows to be another one, to be started, or to wait for nothing.
    pub(super) fn end_reports(&mut self, key: &JobKey, now: &JobObject) {
        let known = self.jobs.get(key).map(|one| &one.object().metadata().uid);
        if known.is_some_and(|uid| *uid != now.metadata().uid) {
            self.forget_reports(key);
        }
        if now.as_pod().is_some_and(|pod| !pod.is_gated()) {
            self.held_members.remove(key);
        }
        // Without its queue label a job that is left alone waits for nothing; with it again that is news.
        if now.is_skipped() && now.never_admissible_reason().is_none() {
            self.refused_jobs.remove(key);
        }
    }

    /// Forgets what was reported about a job, what was stored of its start or its status, and what may not be removed.
    pub(super) fn forget_reports(&mut self, key: &JobKey) {
        self.refused_jobs.remove(key);
        self.held_members.remove(key);
        self.refused_creations.remove(key);
        self.prepared_starts.remove(key);
        self.statuses.remove(key);
    }

    /// The job that asked for a write of its Workload, or the oldest member of the group.
    fn first_of(&self, ticket: &Ticket) -> Option<(&JobKey, &Arc<JobObject>)> {
        match &ticket.waiter {
            Reevaluation::Job(job) => self.get(job),
            Reevaluation::PodGroup(group) => {
                let members = self.groups.members(group).filter_map(|key| self.get(key));
                members.min_by_key(|(_, job)| job.metadata().creation_timestamp.clone())
            }
            _ => None,
        }
    }

    /// Announces the start of a job, or why it has not started although its write is done.
    pub(super) fn start_answered(
        &mut self,
        key: &JobKey,
        workloads: &Workloads,
        ctx: &mut Context,
    ) {
        let Some(job) = self.get(key).map(|(_, job)| Arc::clone(job)) else {
            return;
        };
        if job.kind().prepares_starts() {
            let obstacle = self.prepared_starts.answered(key, &job, ctx.now);
            let news =
                obstacle.filter(|it| self.refused_jobs.record_report(key, &it.message, ctx.now));
            if let Some(StartObstacle { reason, message }) = news {
                ctx.outbox.publish(refusal(&job, reason, message));
            }
            // The first of two writes, or one that was not stored as it was written.
            if job.spec_suspended() {
                return;
            }
        }
        self.announce_start(key, &job, workloads, ctx);
    }

    /// Announces the start of a job, in the queue of its Workload.
    fn announce_start(
        &self,
        key: &JobKey,
        job: &JobObject,
        workloads: &Workloads,
        ctx: &mut Context,
    ) {
        let named = self.named_workload(key, job);
        // A replacement in a group starts before it owns the Workload.
        let group = self.group_of(key);
        let keys = named.iter().chain(&group).chain(self.owners.owned_by(key));
        let mut records = keys.filter_map(|key| workloads.get(key));
        let admitted = records.find(|one| one.object().status.admission.is_some());
        announce_start(job, admitted.map(|one| &**one.object()), ctx);
    }
}

/// Announces the start of a job, and measures that of a pod. `workload` is the one with quota.
fn announce_start(job: &JobObject, workload: Option<&Workload>, ctx: &mut Context) {
    let admission = workload.and_then(|one| one.status.admission.as_ref());
    let queue = admission.map(|one| one.cluster_queue.as_str()).unwrap_or_default();
    let note = format!("Admitted by clusterQueue {queue}");
    ctx.outbox.publish(event(job, EventType::Normal, "Started", note));
    let of_pod = workload.filter(|_| job.as_pod().is_some());
    ctx.measurements.extend(of_pod.and_then(|one| gate_removed(ADMISSION, one, ctx.now)));
}

/// The Event about a new Workload.
fn created(job: &JobObject, workload: &Key) -> EventRecord {
    event(job, EventType::Normal, CREATED_WORKLOAD, format!("Created Workload: {workload}"))
}

/// How long after a job its Workload was created. A job that was changed since may have waited for that change.
fn creation_latency(job: &JobObject, now: Timestamp) -> Option<Measurement> {
    let metadata = job.metadata();
    let created = metadata.creation_timestamp.as_ref()?;
    // The clocks of API server and manager may differ by more than the latency.
    let took = Duration::try_from(now.duration_since(created.0)).unwrap_or_default();
    let job_kind = job.kind().gvk().kind;
    (metadata.generation == Some(1)).then_some(Measurement::WorkloadCreated { job_kind, took })
}

/// The Event about checks that a suspended job waits for.
fn checks(job: &JobObject, message: String) -> EventRecord {
    event(job, EventType::Normal, "UpdatedAdmissionCheck", message)
}

/// The Event about a class that does not exist.
pub(super) fn class_not_found(job: &JobObject, source: &PrioritySource) -> EventRecord {
    let (kind, name) = match source {
        PrioritySource::WorkloadPriorityClass(name) => ("WorkloadPriorityClass", name.as_str()),
        PrioritySource::PriorityClass(name) => ("PriorityClass", name.as_str()),
        PrioritySource::ClusterDefault => ("PriorityClass", ""),
    };
    let note = format!("{kind} {name:?} not found");
    event(job, EventType::Warning, "WorkloadPriorityClassNotFound", note)
}

/// The Event about a job without a managed ancestor, because the search met too many ancestors or the job itself.
pub(crate) fn nesting(job: &JobObject, error: AncestorError) -> EventRecord {
    let (reason, note) = match error {
        AncestorError::TooDeep => {
            let note = format!(
                "Terminated search for Kueue-managed Job because ancestor depth exceeded limit of {MAX_ANCESTORS}"
            );
            ("JobNestingTooDeep", note)
        }
        AncestorError::Cycle => ("JobOwnersCyclic", error.to_string()),
    };
    event(job, EventType::Warning, reason, note)
}

/// What the pending checks of a Workload say for which a job waits, if that is news: a reservation begins the wait.
fn waiting_checks(before: Option<&Workload>, after: &Workload) -> Option<String> {
    let message = awaited_checks(after)?;
    (before.and_then(awaited_checks).as_ref() != Some(&message)).then_some(message)
}

/// The messages of the pending checks that keep a job with quota from its start. A check that an eviction has reset keeps nothing.
fn awaited_checks(workload: &Workload) -> Option<String> {
    let is = |condition: &str| is_true(&workload.status.conditions, condition);
    if !is(QUOTA_RESERVED) || is(ADMITTED) || is(EVICTED) || is(FINISHED) {
        return None;
    }
    let checks = workload.status.admission_checks.iter();
    let waiting = checks.filter(|one| one.state == "Pending" && !one.message.is_empty());
    let named: Vec<String> = waiting.map(|one| format!("{}: {}", one.name, one.message)).collect();
    (!named.is_empty()).then(|| named.join("; "))
}
