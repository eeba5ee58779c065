//! The Event about the result of an earlier dispatch that is adopted (docs/reference/dispatch.md §6).

use crds::{names::reasons::RESULT_ADOPTED, v1beta2::Workload};
use runtime::events::{EventRecord, EventType, Regarding};

/// The Event about the Workload. `cluster` has the result.
pub(crate) fn adopted_event(workload: &Workload, cluster: &str) -> EventRecord {
    let note = format!(
        "The job has succeeded on worker cluster \"{cluster}\" in an earlier dispatch; its result is adopted and nothing runs again"
    );
    let (event_type, reason) = (EventType::Normal, RESULT_ADOPTED.to_owned());
    let regarding = Regarding::of(workload);
    EventRecord { regarding, event_type, action: reason.clone(), reason, note, controller: None }
}
