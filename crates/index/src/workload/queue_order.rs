//! Queue order of a Workload: priority and queue-order timestamp.
//!
//! Source: docs/reference/kueue.md §2.1 (last line), §2.8, §3.2.

use crds::meta::Condition;
use crds::names::{annotations, conditions, reasons};
use crds::v1beta2::Workload;
use engine::Time;

use crate::config::IndexConfig;
use crate::status::{find, find_true};
use crate::time::time;

const MILLISECOND: i64 = 1_000_000;

/// Whether the priority comes from a WorkloadPriorityClass.
pub(super) fn has_class(workload: &Workload) -> bool {
    let class = workload.spec.priority_class_ref.as_ref();
    class.is_some_and(|class| class.kind == "WorkloadPriorityClass")
}

/// `spec.priority` plus the boost, if the gate is on.
pub(super) fn priority(config: &IndexConfig, workload: &Workload) -> i64 {
    let own = i64::from(workload.spec.priority.unwrap_or(0));
    let annotations = workload.metadata.annotations.as_ref();
    let boost = annotations.and_then(|all| all.get(annotations::PRIORITY_BOOST));
    // A boost that is no int32 counts as none.
    let boost = boost.filter(|_| config.priority_boost).and_then(|text| text.parse().ok());
    own + i64::from(boost.unwrap_or(0_i32))
}

/// Queue-order timestamp: creation, or the last eviction that reorders.
pub(super) fn queued_at(config: &IndexConfig, workload: &Workload) -> Time {
    let evicted = find_true(&workload.status.conditions, conditions::EVICTED);
    // Only these evictions set a Workload back in its queue (§3.2).
    let reorders = |one: &&Condition| match one.reason.as_str() {
        reasons::PODS_READY_TIMEOUT => config.eviction_timestamp,
        reasons::ADMISSION_CHECK => true,
        _ => false,
    };
    let evicted = evicted.filter(reorders).and_then(|one| one.last_transition_time.as_ref());
    let created = || workload.metadata.creation_timestamp.as_ref().map(time);
    let behind = || behind_preemptor(workload).filter(|_| !config.priority_sorting);
    evicted.map(time).or_else(behind).or_else(created).unwrap_or_default()
}

/// Just after the preemption by a borrower: the two may be in different queues, and the target must not come first
/// again.
fn behind_preemptor(workload: &Workload) -> Option<Time> {
    let preempted = find(&workload.status.conditions, conditions::PREEMPTED)?;
    let by_borrower = preempted.status == "True"
        && preempted.reason == reasons::IN_COHORT_RECLAIM_WHILE_BORROWING;
    let at = preempted.last_transition_time.as_ref().filter(|_| by_borrower)?;
    Some(Time(time(at).0 + MILLISECOND))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOON: i64 = 1_767_268_800_000_000_000;
    const SECOND: i64 = 1_000_000_000;

    fn workload(value: Value) -> Workload {
        serde_json::from_value(value).expect("a Workload")
    }

    #[test]
    fn only_reordering_evictions_change_the_queue_order_timestamp() {
        let evicted = |reason: &str, status: &str| {
            workload(json!({
                "metadata": {"creationTimestamp": "2026-01-01T12:00:00Z"},
                "status": {"conditions": [{"type": "Evicted", "status": status, "reason": reason,
                    "lastTransitionTime": "2026-01-01T12:00:05Z"}]},
            }))
        };
        let creation = IndexConfig { eviction_timestamp: false, ..IndexConfig::default() };
        for (config, reason, status, seconds) in [
            (IndexConfig::default(), "PodsReadyTimeout", "True", 5),
            (IndexConfig::default(), "PodsReadyTimeout", "False", 0),
            (creation.clone(), "PodsReadyTimeout", "True", 0),
            (creation, "AdmissionCheck", "True", 5),
            (IndexConfig::default(), "Preempted", "True", 0),
        ] {
            let at = queued_at(&config, &evicted(reason, status));
            assert_eq!(at, Time(NOON + seconds * SECOND), "{reason} {status}");
        }
    }

    #[test]
    fn without_priority_sorting_a_preempted_workload_is_ordered_behind_the_borrower() {
        let preempted = |reason: &str, status: &str| {
            workload(json!({
                "metadata": {"creationTimestamp": "2026-01-01T12:00:00Z"},
                "status": {"conditions": [{"type": "Preempted", "status": status, "reason": reason,
                    "lastTransitionTime": "2026-01-01T12:00:05Z"}]},
            }))
        };
        let unsorted = IndexConfig { priority_sorting: false, ..IndexConfig::default() };
        let later = 5 * SECOND + MILLISECOND;
        for (config, reason, status, after) in [
            (&unsorted, "InCohortReclaimWhileBorrowing", "True", later),
            (&unsorted, "InCohortReclaimWhileBorrowing", "False", 0),
            (&unsorted, "InCohortReclamation", "True", 0),
            (&IndexConfig::default(), "InCohortReclaimWhileBorrowing", "True", 0),
        ] {
            let at = queued_at(config, &preempted(reason, status));
            assert_eq!(at, Time(NOON + after), "{reason} {status}");
        }
    }

    #[test]
    fn a_priority_boost_counts_only_with_its_gate() {
        let boosted = |boost: &str| {
            workload(json!({
                "metadata": {"annotations": {"kueue.x-k8s.io/priority-boost": boost}},
                "spec": {"priority": i32::MAX},
            }))
        };
        let on = IndexConfig { priority_boost: true, ..IndexConfig::default() };
        assert_eq!(priority(&IndexConfig::default(), &boosted("1")), i64::from(i32::MAX));
        assert_eq!(priority(&on, &boosted("1")), i64::from(i32::MAX) + 1);
        assert_eq!(priority(&on, &boosted("x")), i64::from(i32::MAX));
    }
}
