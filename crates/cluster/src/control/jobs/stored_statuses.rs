//! Statuses of copies that the API server does not store as they are written (docs/reference/multikueue.md §2.3 step 3).
//!
//! The CRD of a kind may be older on the manager's cluster than on a worker, as during an upgrade of its operator. Then the API server
//! prunes fields of a copy's status, sets defaults of its own, or refuses the status, and the job never shows the status of its copy.
//! What the job shows after the write stands for that status until either of them changes: otherwise the same status would be written
//! for ever, and the Workload would never finish. A restart costs one write.
//!
//! The end of a job is tried for [`END_LOST_AFTER`]: a policy, or the upgrade, may let it pass by then, and what stands for it loses it.

use std::time::Duration;

use ::jobs::{GenericJob, JobObject};
use crds::names::reasons::STATUS_REFUSED;
use jiff::{SignedDuration, Timestamp};
use runtime::{events::EventType, writer::WriteOutcome};
use serde_json::Value;

use super::{change::event, refusals::Refusals};
use crate::control::{
    context::Context,
    job_key::JobKey,
    key_map::KeyMap,
    outbox::{TicketId, after},
    time::moved,
};

/// How long the end of a job is written again before it counts as lost.
const END_LOST_AFTER: Duration = Duration::from_secs(300);

/// A status that was written to a job.
#[derive(Debug)]
struct WrittenStatus {
    /// The last write. Answers to earlier ones say nothing about it.
    ticket: TicketId,
    /// The status of the job before the write.
    base: Value,
    written: Value,
    shown: Option<ShownStatus>,
}

/// What a job shows after a status was written that it does not show.
#[derive(Debug, Clone)]
struct ShownStatus {
    status: Value,
    /// The time of the first answer.
    since: Timestamp,
    /// It was shown for [`END_LOST_AFTER`], over several writes.
    lasts: bool,
}

/// Statuses that are being written, and those that were stored otherwise or refused.
#[derive(Debug, Default)]
pub(super) struct StoredStatuses {
    by_job: KeyMap<JobKey, WrittenStatus>,
    refusals: Refusals<JobKey>,
}

impl StoredStatuses {
    /// Records that the status of a copy is written: the status of the job before that, and the new one.
    pub(super) fn submitted(
        &mut self,
        job: &JobKey,
        base: Value,
        written: Value,
        ticket: TicketId,
    ) {
        // What an earlier write of the same status has shown counts on.
        let former = self.by_job.get(job).filter(|known| known.written == written);
        let shown = former.and_then(|known| known.shown.clone());
        self.by_job.insert(job.clone(), WrittenStatus { ticket, base, written, shown });
    }

    /// Takes the answer to a write of a job, except the stored object.
    pub(super) fn answered(
        &mut self,
        key: &JobKey,
        job: &JobObject,
        ticket: TicketId,
        answer: &WriteOutcome,
        ctx: &mut Context,
    ) {
        match answer {
            WriteOutcome::Done(_) => {}
            // Other refusals may end without a change of the status, as one for missing rights.
            WriteOutcome::Refused { code: 400 | 422, message, .. } => {
                self.report_refusal(key, job, message, ctx);
                if let Some(known) = self.by_job.get(key) {
                    self.stored(key, known.base.clone(), ticket, ctx.now);
                }
            }
            _ => {
                if self.by_job.get(key).is_some_and(|known| known.ticket == ticket) {
                    self.by_job.remove(key);
                }
            }
        }
    }

    /// Records the status that a job shows after the write of this ticket.
    pub(super) fn stored(&mut self, key: &JobKey, status: Value, ticket: TicketId, now: Timestamp) {
        let Some(known) = self.by_job.get_mut(key).filter(|known| known.ticket == ticket) else {
            return;
        };
        if known.written == status {
            self.by_job.remove(key);
            return;
        }
        let since = known.shown.as_ref().map_or(now, |shown| shown.since);
        let lasts = after(since, END_LOST_AFTER) <= now;
        known.shown = Some(ShownStatus { status, since, lasts });
    }

    /// Whether the API server has stored this status of a job for that of its copy, or refuses the latter.
    pub(super) fn stands_for(&self, key: &JobKey, job: &JobObject, copy: &JobObject) -> bool {
        let Some(known) = self.by_job.get(key) else { return false };
        let Some(shown) = &known.shown else { return false };
        let loses_end = copy.finished().is_some() && job.finished().is_none();
        shown.status == job.status()
            && job.with_remote_status(copy).status() == known.written
            && (shown.lasts || !loses_end)
    }

    /// Forgets a job that is gone.
    pub(super) fn remove(&mut self, job: &JobKey) {
        self.by_job.remove(job);
        self.refusals.remove(job);
    }

    /// The clock jumped: a report is as old as before, and an end is written for as long.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { by_job, refusals } = self;
        refusals.clock_jumped(by);
        by_job.for_each_mut(|_, known| {
            if let Some(shown) = &mut known.shown {
                shown.since = moved(shown.since, by);
            }
        });
    }

    fn report_refusal(&mut self, key: &JobKey, job: &JobObject, message: &str, ctx: &mut Context) {
        if self.refusals.record_due_report(key, message, ctx.now) {
            tracing::warn!(job = %key, message, "the status of a copy is refused");
            let note = format!("The status of the copy is refused: {message}");
            ctx.outbox.publish(event(job, EventType::Warning, STATUS_REFUSED, note));
        }
    }
}

#[cfg(test)]
mod tests {
    use runtime::watch::Key;
    use serde_json::json;

    use super::*;

    fn job(status: &Value) -> JobObject {
        let metadata = json!({"namespace": "ns", "name": "a", "uid": "u"});
        let spec = json!({"template": {"spec": {"containers": []}}});
        let object = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec, "status": status});
        ::jobs::job::kind().decode(object).expect("a Job")
    }

    #[test]
    fn the_answer_to_an_earlier_write_says_nothing_about_the_last_one() {
        let key = JobKey::new(::jobs::job::kind(), &Key { namespace: None, name: "a".into() });
        let (running, later) = (job(&json!({"active": 1})), job(&json!({"active": 2})));
        let (first, last) = (TicketId::new(1), TicketId::new(2));
        let mut statuses = StoredStatuses::default();
        let now = Timestamp::UNIX_EPOCH;
        statuses.submitted(&key, json!({}), running.status(), first);
        statuses.submitted(&key, running.status(), later.status(), last);
        statuses.stored(&key, running.status(), first, now);
        assert!(!statuses.stands_for(&key, &running, &later), "the last write has no answer");
        statuses.stored(&key, running.status(), last, now);
        assert!(statuses.stands_for(&key, &running, &later));
    }
}
