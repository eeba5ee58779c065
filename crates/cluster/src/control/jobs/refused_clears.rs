//! Jobs whose status the API server does not let go, as where an admission webhook or a schema asks for it.
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

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct RefusedClears(BTreeSet<JobKey>);

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
    pub(crate) fn with_idle_status(&self, key: &JobKey, job: &JobObject) -> Option<JobObject> {
        match self.0.contains(key) {
            true => job.with_idle_counts(),
            false => job.with_idle_status(),
        }
    }
}
