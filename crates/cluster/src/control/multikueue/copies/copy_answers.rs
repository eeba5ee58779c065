//! Answers to writes of copies, and what they say about the copy and its worker.

use ::jobs::{Kind, remote_objects};
use crds::{
    meta::annotation,
    names::{annotations::LEASE_STAMP, gates::MULTI_KUEUE, reasons::NAME_TAKEN},
    v1beta2::Workload,
};
use std::sync::Arc;

use jiff::Timestamp;
use kube::Resource;
use runtime::{api_object::ApiObject, watch::Key, writer::WriteOutcome};
use serde_json::Value;
use variants::preemption_gate::PREEMPTION_TIMEOUT;

use super::{
    copy_sizes::{CopySizes, refused_event},
    sent_copies::{CreatedObject, SentCopies},
    worker_writes::priority_fields,
};
use crate::control::{
    context::Context,
    job_key::JobKey,
    jobs::Jobs,
    measurement::{Measurement, WorkerLabels, WorkerMeasurement},
    multikueue::{
        dispatch_inputs::DispatchInputs,
        view::{expected_spec, same_spec, slice_heirs::SliceHeirs},
        workers::{
            refused_writes::{CopyRefusal, RefusedScope},
            worker::Worker,
        },
    },
    outbox::{
        Purpose, REMOVAL_SHOWN_WITHIN, Subject, Ticket, after, decode, decode_job, listed_object,
    },
    timers::Reevaluation,
    workloads::{TrackedWorkload, Workloads},
};

/// Creates that met an existing object, with a consistent read after each that found none of ours, until it counts as foreign:
/// seven seconds.
const CONFLICTS_UNTIL_TAKEN: u32 = 4;

/// Why a change counts as refused that was answered without an error.
const KEPT: &str = "it was accepted, and the former value is kept";

/// Why a worker does not take a clone that it was given and has stored as another one.
const CHANGED: &str = "the worker changes the spec of the clone that it is given";

/// The write of a copy on `worker` that is answered.
pub(crate) struct CopyAnswer<'a> {
    /// The name of the worker.
    pub(crate) cluster: &'a str,
    pub(crate) worker: &'a mut Worker,
    pub(crate) ticket: &'a Ticket,
    /// What is remembered of the Workload that waits for it.
    pub(crate) sent: Option<&'a SentCopies>,
}

impl<'a> CopyAnswer<'a> {
    /// Records the answer. Does nothing if no Workload waits for it.
    pub(crate) fn record(
        mut self,
        answer: WriteOutcome,
        inputs: &mut DispatchInputs<'_>,
        ctx: &mut Context,
    ) {
        let ticket = self.ticket;
        let Some(workload) = waiting_workload(ticket) else {
            return;
        };
        match answer {
            WriteOutcome::Done(list) if ticket.purpose == Purpose::Settle => {
                let concerned = self.copy_read(&list, inputs.jobs);
                ctx.agenda.workloads(concerned);
            }
            // The copy is gone, and only the watch may report it; until then it is not deleted again.
            WriteOutcome::Done(value) if value.is_status() && self.is_observed() => {
                let until = after(ctx.now, REMOVAL_SHOWN_WITHIN);
                ctx.outbox.await_removal(ticket.target.clone(), until);
                ctx.agenda.at(until, ticket.waiter.clone());
            }
            WriteOutcome::Done(value) => {
                self.count_dispatch(workload, inputs.workloads, ctx);
                let object = Some(&value).filter(|object| !object.is_status());
                if let Subject::Job(kind) = &ticket.target.subject {
                    // The clone of an earlier slice goes once no job names it.
                    ctx.agenda.workloads(self.job_written(kind, object, inputs.jobs));
                } else if let Some(clone) = object.and_then(decode) {
                    self.clone_written(workload, clone, inputs, ctx);
                }
                if ticket.purpose == Purpose::ResizeCopy {
                    self.size_kept(workload, inputs, ctx);
                }
            }
            WriteOutcome::Gone if !ticket.purpose.is_create() => {
                ctx.agenda.workloads(self.copy_gone(inputs.jobs));
            }
            WriteOutcome::Refused { message, .. } if ticket.purpose == Purpose::Priority => {
                self.priority_refused(workload, &message, ctx);
            }
            WriteOutcome::Refused { message, .. } if ticket.purpose == Purpose::ResizeCopy => {
                self.size_refused(workload, &message, inputs, ctx);
            }
            WriteOutcome::Refused { message, .. } if ticket.purpose == Purpose::OpenCloneGate => {
                self.opening_refused(workload, &message, ctx);
            }
            WriteOutcome::Unknown(message) if ticket.purpose == Purpose::OpenCloneGate => {
                self.opening_unanswered(workload, &message, ctx);
            }
            answer => {
                let n_conflicts = ctx.outbox.writes().conflicts(&ticket.target);
                let refusal = create_refusal(ticket, answer, n_conflicts);
                if let Some((message, scope)) = refusal {
                    self.refuse(workload, message, scope, ctx.now);
                }
            }
        }
        self.count_clone(workload, inputs);
    }

    /// Counts a clone that was created.
    fn count_dispatch(&self, workload: &Key, workloads: &Workloads, ctx: &mut Context) {
        if self.ticket.purpose != Purpose::CloneCreate {
            return;
        }
        let admission =
            workloads.get(workload).and_then(|one| one.object().status.admission.as_ref());
        let cluster_queue = admission.map(|one| one.cluster_queue.clone()).unwrap_or_default();
        let labels = WorkerLabels { cluster_queue, cluster: self.cluster.to_owned() };
        ctx.measurements.push(Measurement::Worker(WorkerMeasurement::Dispatched(labels)));
    }

    /// Whether the copy is still observed.
    fn is_observed(&self) -> bool {
        let key = &self.ticket.target.key;
        match &self.ticket.target.subject {
            Subject::Job(kind) => self.worker.jobs.get(&JobKey::new(kind, key)).is_some(),
            _ => self.worker.clones.get(key).is_some(),
        }
    }

    /// Records the job that a write was answered with. Returns the Workloads that its change concerns.
    fn job_written(&mut self, kind: &Kind, object: Option<&ApiObject>, jobs: &Jobs) -> Vec<Key> {
        let job = JobKey::new(kind, &self.ticket.target.key);
        let answer = object.and_then(|object| decode_job(kind, object));
        self.worker.jobs.observe_answer(&job, answer);
        self.worker.job_observed(&job, jobs)
    }

    /// Records the clone that a write was answered with, and whether its worker has kept a former value.
    fn clone_written(
        &mut self,
        workload: &Key,
        clone: Workload,
        inputs: &DispatchInputs<'_>,
        ctx: &mut Context,
    ) {
        match self.ticket.purpose {
            Purpose::OpenCloneGate => self.gate_kept(workload, &clone, ctx),
            Purpose::Priority => self.priority_kept(workload, &clone, ctx),
            Purpose::Stamp => self.stamp_kept(workload, &clone, ctx),
            Purpose::CloneCreate => self.clone_changed(workload, &clone, inputs, ctx.now),
            _ => {}
        }
        self.worker.clones.observe_answer(&self.ticket.target.key, Some(clone));
    }

    /// Records what a read of one name found. Without an object the copy is gone, unless a newer version of it was observed.
    fn copy_read(&mut self, list: &ApiObject, jobs: &Jobs) -> Vec<Key> {
        let version = list.meta().resource_version.as_deref();
        let read_at = version.and_then(|text| text.parse().ok());
        let (worker, key) = (&*self.worker, &self.ticket.target.key);
        let known = match &self.ticket.target.subject {
            Subject::Job(kind) => worker.jobs.get(&JobKey::new(kind, key)).map(|one| one.version()),
            _ => worker.clones.get(key).map(|one| one.version()),
        };
        match (listed_object(list), &self.ticket.target.subject) {
            (Some(object), Subject::Job(kind)) => self.job_written(kind, Some(&object), jobs),
            (Some(object), _) => {
                self.worker.clones.observe_answer(key, decode(&object));
                Vec::new()
            }
            (None, _) if known.is_none_or(|known| Some(known) <= read_at) => self.copy_gone(jobs),
            (None, _) => Vec::new(),
        }
    }

    /// Records that the copy is gone. Returns the Workloads that a job concerned.
    fn copy_gone(&mut self, jobs: &Jobs) -> Vec<Key> {
        let (worker, key) = (&mut *self.worker, &self.ticket.target.key);
        match &self.ticket.target.subject {
            Subject::Job(kind) => {
                let job = JobKey::new(kind, key);
                worker.jobs.remove(&job);
                worker.job_observed(&job, jobs)
            }
            _ => {
                worker.clones.remove(key);
                Vec::new()
            }
        }
    }

    /// Records a refused priority, which says nothing about the work.
    fn priority_refused(&mut self, workload: &Key, message: &str, ctx: &mut Context) {
        let Some(written) = self.sent_change() else {
            return;
        };
        tracing::warn!(cluster = self.cluster, %workload, message, "the priority was refused");
        let (key, fields) = (workload.clone(), written.clone());
        let until = self.worker.refused.priorities.refuse(key, fields, ctx.now);
        ctx.agenda.at(until, self.ticket.waiter.clone());
    }

    /// A clone that keeps its priority would get it again and again.
    fn priority_kept(&mut self, workload: &Key, clone: &Workload, ctx: &mut Context) {
        if self.sent_change() != Some(&priority_fields(&clone.spec)) {
            self.priority_refused(workload, KEPT, ctx);
        }
    }

    /// The agent admits no clone without the stamp of this leader, so the worker does not take the Workload.
    fn stamp_kept(&mut self, workload: &Key, clone: &Workload, ctx: &mut Context) {
        // Sent before the quota was given back, or for an earlier Workload of the name, it says nothing about this dispatch.
        let Some(written) = self.sent_change() else {
            return;
        };
        if written.as_str() == annotation(&clone.metadata, LEASE_STAMP) {
            return;
        }
        let message = format!("the lease stamp of the clone: {KEPT}");
        let (epoch, scope) = (remote_objects::epoch(&clone.metadata), RefusedScope::Shape);
        let refusal = CopyRefusal { epoch, message, scope };
        self.worker.refused.refuse_copy(workload.clone(), refusal, ctx.now);
    }

    /// Records a refused size, which is no reason to end the work. An Event about the Workload names it.
    fn size_refused(
        &mut self,
        workload: &Key,
        message: &str,
        inputs: &DispatchInputs<'_>,
        ctx: &mut Context,
    ) {
        let (Some(record), Some(fields)) = (inputs.workloads.get(workload), self.sent_change())
        else {
            return;
        };
        ctx.outbox.publish(refused_event(record.object(), self.cluster, message));
        let until = self.worker.refused.sizes.refuse(workload.clone(), fields.clone(), ctx.now);
        ctx.agenda.at(until, self.ticket.waiter.clone());
    }

    /// A worker may take a write and keep the former value, as a webhook or a schema there does. Written again it would be kept again.
    fn size_kept(&mut self, workload: &Key, inputs: &DispatchInputs<'_>, ctx: &mut Context) {
        let wanted = self.wanted_size(workload, inputs, ctx.now);
        if wanted.is_some() && wanted.as_ref() == self.sent_change() {
            self.size_refused(workload, KEPT, inputs, ctx);
        }
    }

    /// Records that a preemption gate was not opened: the next clone has its turn.
    fn opening_refused(&mut self, workload: &Key, message: &str, ctx: &mut Context) {
        tracing::warn!(cluster = self.cluster, %workload, message, "a preemption gate was not opened");
        let until = self.worker.refused.openings.refuse(workload.clone(), (), ctx.now);
        ctx.agenda.at(until, self.ticket.waiter.clone());
    }

    /// A worker that answers no opening would delay those of other clones for ever. What it has applied its watch shows.
    fn opening_unanswered(&mut self, workload: &Key, message: &str, ctx: &mut Context) {
        let target = &self.ticket.target;
        let since = ctx.outbox.writes().unanswered_since(target, Purpose::OpenCloneGate);
        if since.is_some_and(|since| after(since, PREEMPTION_TIMEOUT) <= ctx.now) {
            self.opening_refused(workload, message, ctx);
        }
    }

    /// A gate that was opened and is closed would be opened again and again.
    fn gate_kept(&mut self, workload: &Key, clone: &Workload, ctx: &mut Context) {
        if clone.status.open_gate(MULTI_KUEUE).is_none() {
            self.opening_refused(workload, KEPT, ctx);
        }
    }

    /// A webhook of the worker may change what it is given. Such a clone would be removed and created again and again.
    fn clone_changed(
        &mut self,
        workload: &Key,
        clone: &Workload,
        inputs: &DispatchInputs<'_>,
        now: Timestamp,
    ) {
        let record = inputs.workloads.get(workload).map(TrackedWorkload::object);
        // What the Workload asks for may have changed since the create was sent.
        let is_present = |hub: &&Arc<Workload>| {
            let generation = hub.metadata.generation;
            self.sent.is_some_and(|sent| sent.is_clone_of(self.worker.id, generation))
        };
        let expected = record.filter(is_present).and_then(|hub| expected_spec(hub));
        if expected.is_some_and(|expected| !same_spec(clone, &expected)) {
            self.refuse(workload, CHANGED.to_owned(), RefusedScope::Shape, now);
        }
    }

    /// The size that the object of the write lacks.
    fn wanted_size(
        &self,
        workload: &Key,
        inputs: &DispatchInputs<'_>,
        now: Timestamp,
    ) -> Option<Value> {
        let record = inputs.workloads.get(workload)?;
        let expected = expected_spec(record.object());
        let (expected, gates) = (expected.as_ref(), inputs.jobs.gates());
        let heirs = SliceHeirs { workloads: inputs.workloads, jobs: inputs.jobs };
        let sizes = CopySizes { worker: self.worker, key: workload, expected, heirs, gates, now };
        match &self.ticket.target.subject {
            Subject::Job(kind) => {
                let job_key = JobKey::new(kind, &self.ticket.target.key);
                let (_, job) = inputs.jobs.get(&job_key)?;
                sizes.of_job(&job_key, job).map(|size| size.fields())
            }
            _ => sizes.of_clone(),
        }
    }

    /// Records a refusal. It counts for the epoch of the create; a later nomination may try the cluster again.
    fn refuse(&mut self, workload: &Key, message: String, scope: RefusedScope, now: Timestamp) {
        // Sent for an earlier Workload of the name, it says nothing about this one.
        let Some(epoch) = self.sent.and_then(|sent| sent.sent_epoch(&self.object())) else {
            return;
        };
        let refusal = CopyRefusal { epoch, message, scope };
        self.worker.refused.refuse_copy(workload.clone(), refusal, now);
    }

    /// The change that the write has sent.
    fn sent_change(&self) -> Option<&'a Value> {
        self.sent?.sent_change(&self.object())
    }

    /// What the write was about.
    fn object(&self) -> CreatedObject {
        let job = match &self.ticket.target.subject {
            Subject::Job(kind) => Some(JobKey::new(kind, &self.ticket.target.key)),
            _ => None,
        };
        (self.worker.id, job)
    }

    /// The answer may be the first observation of the clone: reports of this version and later ones include it
    /// (docs/reference/dispatch.md §2).
    fn count_clone(&self, workload: &Key, inputs: &mut DispatchInputs<'_>) {
        if self.ticket.target.subject != Subject::Workload {
            return;
        }
        let clone = self.worker.clones.get(workload);
        let id = inputs.workloads.id_of(workload);
        if let (Some(id), Some(clone)) = (id, clone) {
            inputs.fleet.clone_created(id, clone.version());
        }
    }
}

/// The Workload that waits for an answer.
pub(crate) fn waiting_workload(ticket: &Ticket) -> Option<&Key> {
    match &ticket.waiter {
        Reevaluation::Workload(key) => Some(key),
        _ => None,
    }
}

/// Why a worker does not take a copy, and for what else that holds; `None` if the answer says nothing about it.
fn create_refusal(
    ticket: &Ticket,
    answer: WriteOutcome,
    n_conflicts: u32,
) -> Option<(String, RefusedScope)> {
    // A refused delete says nothing about the work; it is tried again.
    if !ticket.purpose.is_create() {
        return None;
    }
    let name = subject_name(&ticket.target.subject);
    match answer {
        // The watch of the kind has shown that as well.
        WriteOutcome::Gone => {
            Some((format!("the worker does not serve {name}"), RefusedScope::Kind))
        }
        // The only 404 that is a refusal is about the namespace.
        WriteOutcome::Refused { code: 404, message, .. } => {
            Some((message, RefusedScope::Namespace))
        }
        WriteOutcome::Refused { message, .. } => Some((message, RefusedScope::Shape)),
        // An object of ours is found by the read. What is there all the same belongs to another.
        WriteOutcome::Exists if n_conflicts >= CONFLICTS_UNTIL_TAKEN => {
            let key = &ticket.target.key;
            let message = format!("{NAME_TAKEN}: {name} {key} of another owner");
            Some((message, RefusedScope::Shape))
        }
        // The watch reports an object that exists or has changed. The outbox keeps a write without an
        // answer as unconfirmed.
        WriteOutcome::Done(_)
        | WriteOutcome::Exists
        | WriteOutcome::Stale
        | WriteOutcome::Unknown(_)
        | WriteOutcome::UnnamedNotFound(_) => None,
    }
}

fn subject_name(subject: &Subject) -> String {
    match subject {
        Subject::Job(kind) => kind.to_string(),
        _ => "Workloads".to_owned(),
    }
}
