//! What the API server makes of the statuses that are written for jobs of worker clusters.

use ::jobs::{GenericJob, JobObject};
use jiff::{SignedDuration, Timestamp};
use runtime::writer::WriteOutcome;

use super::{change::JobChange, refused_clears::RefusedClears, stored_statuses::StoredStatuses};
use crate::control::{
    context::Context,
    job_key::JobKey,
    outbox::{Purpose, Ticket, TicketId},
};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct WrittenStatuses {
    clears: RefusedClears,
    copied: StoredStatuses,
}

impl WrittenStatuses {
    /// A change of a job is written, by the write of this ticket.
    pub(super) fn submitted(
        &mut self,
        job: (&JobKey, &JobObject),
        change: &JobChange,
        ticket: TicketId,
    ) {
        if change.purpose() == Purpose::SyncStatus {
            let (key, job) = job;
            self.copied.submitted(key, job.status(), change.after().status(), ticket);
        }
    }

    /// Takes the answer to a write of a job, except the stored object.
    pub(super) fn answered(
        &mut self,
        job: (&JobKey, &JobObject),
        ticket: &Ticket,
        answer: &WriteOutcome,
        ctx: &mut Context,
    ) {
        let (key, job) = job;
        self.clears.answered(key, ticket, answer);
        if ticket.purpose == Purpose::SyncStatus {
            self.copied.answered(key, job, ticket.id, answer, ctx);
        }
    }

    /// Takes the object that the write of a job has stored.
    pub(super) fn stored(&mut self, job: (&JobKey, &JobObject), ticket: &Ticket, now: Timestamp) {
        if ticket.purpose == Purpose::SyncStatus {
            let (key, job) = job;
            self.copied.stored(key, job.status(), ticket.id, now);
        }
    }

    /// Forgets a job that is gone.
    pub(super) fn remove(&mut self, job: &JobKey) {
        self.clears.remove(job);
        self.copied.remove(job);
    }

    /// The clock jumped.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { clears: _, copied } = self;
        copied.clock_jumped(by);
    }

    /// The job with a status without active pods; `None` if it has that already.
    pub(crate) fn with_idle_status(&self, key: &JobKey, job: &JobObject) -> Option<JobObject> {
        self.clears.with_idle_status(key, job)
    }

    /// Whether the status of a job that has not ended shows something of a copy.
    pub(crate) fn shows_copy(&self, key: &JobKey, job: &JobObject) -> bool {
        self.clears.shows_copy(key, job)
    }

    /// Whether a job shows the status of its copy, or what the API server makes of that status.
    pub(crate) fn has_status_of(&self, key: &JobKey, job: &JobObject, copy: &JobObject) -> bool {
        job.has_status_of(copy) || self.copied.stands_for(key, job, copy)
    }

    /// Whether a copy is over, and the API server does not store that end for the job, however often it is written.
    pub(crate) fn loses_end_of(&self, key: &JobKey, job: &JobObject, copy: &JobObject) -> bool {
        let lacks_end = copy.finished().is_some() && job.finished().is_none();
        lacks_end && self.copied.stands_for(key, job, copy)
    }
}
