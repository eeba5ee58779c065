//! Statuses of copies that the API server does not store as they are written (docs/reference/multikueue.md §2.3 step 3).
//!
//! The CRD of a kind may be older on the manager's cluster than on a worker, as during an upgrade of its operator. Then the API server
//! prunes fields of a copy's status, sets defaults of its own, or refuses the status, and the job never shows the status of its copy.
//! What the job shows after the write stands for that status until either of them changes: otherwise the same status would be written
//! for ever, and the Workload would never finish. A restart costs one write.

use ::jobs::{GenericJob, JobObject};
use crds::names::reasons::STATUS_REFUSED;
use jiff::SignedDuration;
use runtime::{events::EventType, writer::WriteOutcome};
use serde_json::Value;

use super::{
    change::{JobChange, event},
    refusals::Refusals,
};
use crate::control::{context::Context, job_key::JobKey, key_map::KeyMap, outbox::Purpose};

/// A status that was written to a job.
#[derive(Debug)]
struct WrittenStatus {
    written: Value,
    /// What the job shows instead; `None` as long as the write has no answer.
    shown: Option<Value>,
}

/// Statuses that are being written, and those that were stored otherwise or refused.
#[derive(Debug, Default)]
pub(super) struct StoredStatuses {
    by_job: KeyMap<JobKey, WrittenStatus>,
    refusals: Refusals<JobKey>,
}

impl StoredStatuses {
    /// Records the status of a copy that a change writes.
    pub(super) fn submitted(&mut self, job: &JobKey, change: &JobChange) {
        if change.purpose() == Purpose::SyncStatus {
            let written = change.after().status();
            self.by_job.insert(job.clone(), WrittenStatus { written, shown: None });
        }
    }

    /// Takes the answer to a write of a job, except the stored object.
    pub(super) fn answered(
        &mut self,
        key: &JobKey,
        job: &JobObject,
        answer: &WriteOutcome,
        ctx: &mut Context,
    ) {
        match answer {
            WriteOutcome::Done(_) => {}
            // Other refusals may end without a change of the status, as one for missing rights.
            WriteOutcome::Refused { code: 400 | 422, message, .. } => {
                self.report_refusal(key, job, message, ctx);
                self.shown(key, job);
            }
            _ => {
                self.by_job.remove(key);
            }
        }
    }

    /// Records what a job shows after its status was written.
    pub(super) fn shown(&mut self, key: &JobKey, job: &JobObject) {
        let shown = job.status();
        match self.by_job.get_mut(key) {
            Some(known) if known.written != shown => known.shown = Some(shown),
            _ => {
                self.by_job.remove(key);
            }
        }
    }

    /// Whether the API server has stored this status of a job for that of its copy, or refuses the latter.
    pub(super) fn stands_for(&self, key: &JobKey, job: &JobObject, copy: &JobObject) -> bool {
        self.by_job.get(key).is_some_and(|known| {
            known.shown.as_ref().is_some_and(|shown| *shown == job.status())
                && job.with_remote_status(copy).status() == known.written
        })
    }

    /// Forgets a job that is gone.
    pub(super) fn remove(&mut self, job: &JobKey) {
        self.by_job.remove(job);
        self.refusals.remove(job);
    }

    /// The clock jumped: a report is as old as before.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        self.refusals.clock_jumped(by);
    }

    fn report_refusal(&mut self, key: &JobKey, job: &JobObject, message: &str, ctx: &mut Context) {
        if self.refusals.record_due_report(key, message, ctx.now) {
            tracing::warn!(job = %key, message, "the status of a copy is refused");
            let note = format!("The status of the copy is refused: {message}");
            ctx.outbox.publish(event(job, EventType::Warning, STATUS_REFUSED, note));
        }
    }
}
