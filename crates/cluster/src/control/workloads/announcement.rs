//! Events about a Workload, published when the write that they are about is done: at most two in an undisturbed life.

use crds::{
    meta::Condition,
    names::{
        conditions::{ADMITTED, DEACTIVATION_TARGET, EVICTED, FINISHED, QUOTA_RESERVED},
        reasons,
    },
};
use runtime::events::{EventRecord, EventType, Regarding};

use super::tracked_workload::TrackedWorkload;
use crate::control::outbox::Purpose;

/// The Event that follows a write of this purpose, if any.
pub(super) fn announcement(record: &TrackedWorkload, purpose: Purpose) -> Option<EventRecord> {
    let condition = announced_condition(record, purpose)?;
    let (event_type, reason) = match purpose {
        Purpose::Evict => (EventType::Normal, format!("EvictedDueTo{}", condition.reason)),
        Purpose::Pending | Purpose::DeactivationTarget => {
            (EventType::Warning, condition.reason.clone())
        }
        _ => (EventType::Normal, condition.reason.clone()),
    };
    let workload = record.object();
    let limit = workload.spec.maximum_execution_time_seconds.unwrap_or_default();
    let note = match &workload.status.cluster_name {
        _ if purpose == Purpose::DeactivationTarget => {
            format!("The maximum execution time ({limit}s) exceeded")
        }
        Some(cluster) if purpose == Purpose::Dispatched => {
            format!("The workload was admitted on \"{cluster}\"")
        }
        _ => condition.message.clone(),
    };
    let regarding = Regarding::of(&**workload);
    Some(EventRecord { regarding, event_type, action: reason.clone(), reason, note })
}

fn announced_condition(record: &TrackedWorkload, purpose: Purpose) -> Option<&Condition> {
    let conditions = &record.object().status.conditions;
    let find = |condition| index::status::find(conditions, condition);
    match purpose {
        Purpose::Reserve | Purpose::Admit | Purpose::Dispatched if record.is(ADMITTED) => {
            find(ADMITTED)
        }
        Purpose::Evict => find(EVICTED),
        Purpose::Pending => find(QUOTA_RESERVED),
        Purpose::Finish => {
            find(FINISHED).filter(|one| one.reason == reasons::WORKLOAD_SLICE_REPLACED)
        }
        Purpose::DeactivationTarget => find(DEACTIVATION_TARGET)
            .filter(|one| one.reason == reasons::MAXIMUM_EXECUTION_TIME_EXCEEDED),
        _ => None,
    }
}
