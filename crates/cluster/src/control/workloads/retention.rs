//! `objectRetentionPolicies.workloads.afterFinished`: a finished Workload is deleted after that time
//! (docs/reference/kueue.md §2.5 row 4, §6.4).

use std::time::Duration;

use crds::{
    meta::Condition,
    names::{conditions::FINISHED, reasons, reporters},
    v1beta2::Workload,
};
use index::status::find_true;
use jiff::Timestamp;
use runtime::events::{EventRecord, EventType, Regarding};

use crate::control::outbox::after;

/// When a Workload is deleted; `None` while it is not finished, or for ever without a retention.
pub(super) fn expires_at(workload: &Workload, retention: Option<Duration>) -> Option<Timestamp> {
    let finished = find_true(&workload.status.conditions, FINISHED);
    let since = finished.and_then(Condition::transitioned_at)?;
    Some(after(since, retention?))
}

/// The Event about the deletion.
pub(super) fn deleted(workload: &Workload) -> EventRecord {
    EventRecord {
        regarding: Regarding::of(workload),
        event_type: EventType::Normal,
        action: reasons::DELETED.to_owned(),
        reason: reasons::DELETED.to_owned(),
        note: "Deleted finished workload due to elapsed retention".to_owned(),
        controller: Some(reporters::WORKLOAD_CONTROLLER.to_owned()),
    }
}
