//! `objectRetentionPolicies.workloads.afterDeactivatedByKueue`: a job is deleted so long after its Workload was deactivated
//! for a reason, such as a limit of requeues or a Rejected check. A user that deactivates gives no reason, and the job stays
//! (docs/reference/kueue.md §6.4, §7.3 row 6).

use std::time::Duration;

use ::jobs::{GenericJob, JobObject};
use crds::{names::reasons, v1beta2::Workload};
use jiff::Timestamp;
use runtime::events::EventType;

use super::change::{event, submit_deletion};
use crate::control::{
    context::Context,
    job_key::JobKey,
    outbox::{Purpose, Tracked, after},
};

/// When the job of a Workload is deleted; `None` while it stays.
pub(super) fn expires_at(
    job: &JobObject,
    workload: &Workload,
    retention: Duration,
) -> Option<Timestamp> {
    let over = job.finished().is_some() || job.metadata().deletion_timestamp.is_some();
    if over || job.is_active() {
        return None;
    }
    ends_at(workload, retention)
}

/// When the retention of a deactivated Workload is over; `None` if there is nothing to wait for.
pub(super) fn ends_at(workload: &Workload, retention: Duration) -> Option<Timestamp> {
    if workload.is_active() {
        return None;
    }
    Some(after(workload.status.deactivation_with_cause()?.transitioned_at()?, retention))
}

/// Deletes a job after its retention, with an Event once the deletion is sent.
pub(super) fn delete(key: &JobKey, tracked: &Tracked<JobObject>, ctx: &mut Context) {
    if submit_deletion(key, tracked, Purpose::Stop, ctx) {
        let note = "Deleted job: deactivation retention period expired".to_owned();
        let deleted = event(tracked.object(), EventType::Normal, reasons::DELETED, note);
        ctx.outbox.publish(deleted);
    }
}
