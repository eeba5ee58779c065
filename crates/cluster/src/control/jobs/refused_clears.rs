//! Jobs with a status that the API server does not let go, as where an admission webhook or a schema asks for it.
//!
//! The status of a copy that is gone is removed as a whole. Where that is refused, the counts of active pods become 0, and the rest
//! stays: otherwise the withdrawal would never end, and the quota would be held.

use std::collections::BTreeSet;

use ::jobs::{GenericJob, JobObject};
use runtime::writer::WriteOutcome;

use crate::control::{
    job_key::JobKey,
    outbox::{Purpose, Ticket},
};

/// The jobs with a status that cannot be cleared.
#[derive(Debug, Default)]
pub(super) struct RefusedClears(BTreeSet<JobKey>);

impl RefusedClears {
    /// Takes the answer to a write of a job.
    pub(super) fn answered(&mut self, job: &JobKey, ticket: &Ticket, answer: &WriteOutcome) {
        let refused = matches!(answer, WriteOutcome::Refused { .. });
        if refused && ticket.purpose == Purpose::Idle {
            self.0.insert(job.clone());
        }
    }

    /// Forgets a job that is gone.
    pub(super) fn remove(&mut self, job: &JobKey) {
        self.0.remove(job);
    }

    /// The job with a status without active pods; `None` if it has that already.
    pub(super) fn with_idle_status(&self, key: &JobKey, job: &JobObject) -> Option<JobObject> {
        if self.0.contains(key) { job.with_idle_counts() } else { job.with_idle_status() }
    }

    /// Whether the status of a job that has not ended shows something of a copy, also without active pods: a condition would show a job
    /// that waits as running. Of a job that its own cluster runs, or that has a status which may not be removed, only the counts matter.
    pub(super) fn shows_copy(&self, key: &JobKey, job: &JobObject) -> bool {
        let is_declared = matches!(job, JobObject::Declared(_)) && job.is_managed_elsewhere();
        let clears = is_declared && job.finished().is_none() && !self.0.contains(key);
        (clears || job.stays_gated_when_dispatched()) && job.with_idle_status().is_some()
    }
}
