//! Where a Workload stands: its priority, its place in time, and what keeps it out of its queue.
//!
//! Source: docs/reference/kueue.md §2.1 (last line), §2.4, §2.8, §3.2, §4.2.

use crds::meta::{Condition, is_true};
use crds::names::{annotations, conditions, reasons};
use crds::v1beta2::Workload;
use engine::Time;
use engine::spec::QueueEligibility;

use crate::config::IndexConfig;
use crate::time::time;

const MILLISECOND: i64 = 1_000_000;

/// The position of a preemption gate that lets a Workload preempt.
const OPEN: &str = "Open";

/// Whether the priority is that of a WorkloadPriorityClass.
pub(super) fn has_class(workload: &Workload) -> bool {
    let class = workload.spec.priority_class_ref.as_ref();
    class.is_some_and(|class| class.kind == "WorkloadPriorityClass")
}

/// `spec.priority`, and the boost if it is switched on.
pub(super) fn priority(settings: &IndexConfig, workload: &Workload) -> i64 {
    let own = i64::from(workload.spec.priority.unwrap_or(0));
    let boost =
        annotation(workload, annotations::PRIORITY_BOOST).and_then(|text| text.parse().ok());
    own + i64::from(boost.filter(|_| settings.priority_boost).unwrap_or(0_i32))
}

/// When it joined the queue: its creation, or the eviction that sent it to the back.
pub(super) fn queued_at(settings: &IndexConfig, workload: &Workload) -> Time {
    let evicted = condition(workload, conditions::EVICTED).filter(|one| one.status == "True");
    let to_the_back = |one: &&Condition| match one.reason.as_str() {
        reasons::PODS_READY_TIMEOUT => settings.eviction_timestamp,
        reasons::ADMISSION_CHECK => true,
        _ => false,
    };
    let evicted = evicted.filter(to_the_back).and_then(|one| one.last_transition_time.as_ref());
    let created = || workload.metadata.creation_timestamp.as_ref().map(time);
    let behind = || behind_its_preemptor(workload).filter(|_| !settings.priority_sorting);
    evicted.map(time).or_else(behind).or_else(created).unwrap_or_default()
}

/// Just after whoever borrows preempted it: they may stand in different queues, and it must not come first again.
fn behind_its_preemptor(workload: &Workload) -> Option<Time> {
    let preempted = condition(workload, conditions::PREEMPTED)?;
    let counts = preempted.status == "True"
        && preempted.reason == reasons::IN_COHORT_RECLAIM_WHILE_BORROWING;
    let at = preempted.last_transition_time.as_ref().filter(|_| counts)?;
    Some(Time(time(at).0 + MILLISECOND))
}

/// When its backoff ends.
pub(super) fn requeue_at(workload: &Workload) -> Option<Time> {
    let state = workload.status.requeue_state.as_ref()?;
    state.requeue_at.as_ref().map(time)
}

/// What keeps it out of its queue.
pub(super) fn queue_eligibility(
    settings: &IndexConfig,
    workload: &Workload,
    now: Time,
) -> QueueEligibility {
    if is_out(settings, workload) {
        QueueEligibility::Excluded
    } else if must_wait(workload, now) {
        QueueEligibility::AwaitsRequeue
    } else {
        QueueEligibility::Eligible
    }
}

fn is_out(settings: &IndexConfig, workload: &Workload) -> bool {
    let gated =
        annotation(workload, annotations::ADMISSION_GATED_BY).is_some_and(|all| !all.is_empty());
    let reserved = condition(workload, conditions::QUOTA_RESERVED);
    let on_hold =
        reserved.is_some_and(|one| one.status != "True" && one.reason == reasons::ON_HOLD);
    workload.spec.active == Some(false)
        || workload.metadata.deletion_timestamp.is_some()
        || (gated && settings.admission_gated_by)
        || on_hold
        || is_true(&workload.status.conditions, conditions::WAITING_FOR_REPLACEMENT_PODS)
}

/// Whether one of its preemption gates is closed. A gate of which the status says nothing is: so a Workload can be made
/// with its gate closed.
pub(super) fn is_preemption_gated(workload: &Workload) -> bool {
    let is_open = |name: &str| {
        let mut known = workload.status.preemption_gates.iter();
        known.any(|gate| gate.name == name && gate.position == OPEN)
    };
    workload.spec.preemption_gates.iter().any(|gate| !is_open(&gate.name))
}

/// The slice whose place it takes, as `namespace/name`.
pub(super) fn replaced_slice(workload: &Workload) -> Option<&str> {
    annotation(workload, annotations::WORKLOAD_SLICE_REPLACEMENT_FOR)
}

/// A running backoff, a queue that has to be restarted, or a check that asked to start over.
fn must_wait(workload: &Workload, now: Time) -> bool {
    let requeued = condition(workload, conditions::REQUEUED);
    let mut checks = workload.status.admission_checks.iter();
    requeue_at(workload).is_some_and(|at| at > now)
        || requeued.is_some_and(|one| one.status == "False")
        || checks.any(|one| matches!(one.state.as_str(), "Retry" | "Rejected"))
}

fn annotation<'a>(workload: &'a Workload, key: &str) -> Option<&'a str> {
    let all = workload.metadata.annotations.as_ref()?;
    all.get(key).map(String::as_str)
}

fn condition<'a>(workload: &'a Workload, r#type: &str) -> Option<&'a Condition> {
    workload.status.conditions.iter().find(|one| one.r#type == r#type)
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
    fn what_keeps_a_workload_out() {
        let condition = |kind: &str, status: &str, reason: &str| json!({"status": {"conditions": [{"type": kind, "status": status, "reason": reason}]}});
        let check =
            |state: &str| json!({"status": {"admissionChecks": [{"name": "a", "state": state}]}});
        let backoff = |at: &str| json!({"status": {"requeueState": {"requeueAt": at}}});
        let gates = "kueue.x-k8s.io/admission-gated-by";
        for (value, expected) in [
            (json!({}), QueueEligibility::Eligible),
            (json!({"spec": {"active": true}}), QueueEligibility::Eligible),
            (json!({"spec": {"active": false}}), QueueEligibility::Excluded),
            (json!({"metadata": {"annotations": {gates: "a.b/c"}}}), QueueEligibility::Excluded),
            (json!({"metadata": {"annotations": {gates: ""}}}), QueueEligibility::Eligible),
            (
                json!({"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z"}}),
                QueueEligibility::Excluded,
            ),
            (
                condition("WaitingForReplacementPods", "True", "Preempted"),
                QueueEligibility::Excluded,
            ),
            (condition("QuotaReserved", "False", "OnHold"), QueueEligibility::Excluded),
            (condition("QuotaReserved", "False", "WaitingForQuota"), QueueEligibility::Eligible),
            (
                condition("Requeued", "False", "ClusterQueueStopped"),
                QueueEligibility::AwaitsRequeue,
            ),
            (condition("Requeued", "True", "Preempted"), QueueEligibility::Eligible),
            (backoff("2026-01-01T12:00:01Z"), QueueEligibility::AwaitsRequeue),
            (backoff("2026-01-01T12:00:00Z"), QueueEligibility::Eligible),
            (check("Retry"), QueueEligibility::AwaitsRequeue),
            (check("Rejected"), QueueEligibility::AwaitsRequeue),
            (check("Pending"), QueueEligibility::Eligible),
        ] {
            let got =
                queue_eligibility(&IndexConfig::default(), &workload(value.clone()), Time(NOON));
            assert_eq!(got, expected, "{value}");
        }
    }

    #[test]
    fn a_gate_is_closed_unless_the_status_says_that_it_is_open() {
        let gates = |named: Value, known: Value| {
            is_preemption_gated(&workload(json!({
                "spec": {"preemptionGates": named}, "status": {"preemptionGates": known},
            })))
        };
        let one = json!([{"name": "a"}]);
        let two = json!([{"name": "a"}, {"name": "b"}]);
        let state = |name: &str, position: &str| json!({"name": name, "position": position});
        for (named, known, gated) in [
            (json!([]), json!([]), false),
            (json!([]), json!([state("a", "Closed")]), false),
            (one.clone(), json!([]), true),
            (one.clone(), json!([state("a", "Closed")]), true),
            (one.clone(), json!([state("b", "Open")]), true),
            (one, json!([state("a", "Open")]), false),
            (two.clone(), json!([state("a", "Open")]), true),
            (two.clone(), json!([state("a", "Open"), state("b", "Closed")]), true),
            (two, json!([state("b", "Open"), state("a", "Open")]), false),
        ] {
            assert_eq!(gates(named.clone(), known.clone()), gated, "{named} {known}");
        }
    }

    #[test]
    fn only_evictions_that_count_send_a_workload_to_the_back() {
        let evicted = |reason: &str, status: &str| {
            workload(json!({
                "metadata": {"creationTimestamp": "2026-01-01T12:00:00Z"},
                "status": {"conditions": [{"type": "Evicted", "status": status, "reason": reason,
                    "lastTransitionTime": "2026-01-01T12:00:05Z"}]},
            }))
        };
        let creation = IndexConfig { eviction_timestamp: false, ..IndexConfig::default() };
        for (settings, reason, status, seconds) in [
            (IndexConfig::default(), "PodsReadyTimeout", "True", 5),
            (IndexConfig::default(), "PodsReadyTimeout", "False", 0),
            (creation.clone(), "PodsReadyTimeout", "True", 0),
            (creation, "AdmissionCheck", "True", 5),
            (IndexConfig::default(), "Preempted", "True", 0),
        ] {
            let at = queued_at(&settings, &evicted(reason, status));
            assert_eq!(at, Time(NOON + seconds * SECOND), "{reason} {status}");
        }
    }

    #[test]
    fn without_sorting_by_priority_the_preempted_queue_behind_who_borrows() {
        let preempted = |reason: &str, status: &str| {
            workload(json!({
                "metadata": {"creationTimestamp": "2026-01-01T12:00:00Z"},
                "status": {"conditions": [{"type": "Preempted", "status": status, "reason": reason,
                    "lastTransitionTime": "2026-01-01T12:00:05Z"}]},
            }))
        };
        let unsorted = IndexConfig { priority_sorting: false, ..IndexConfig::default() };
        let later = 5 * SECOND + MILLISECOND;
        for (settings, reason, status, after) in [
            (&unsorted, "InCohortReclaimWhileBorrowing", "True", later),
            (&unsorted, "InCohortReclaimWhileBorrowing", "False", 0),
            (&unsorted, "InCohortReclamation", "True", 0),
            (&IndexConfig::default(), "InCohortReclaimWhileBorrowing", "True", 0),
        ] {
            let at = queued_at(settings, &preempted(reason, status));
            assert_eq!(at, Time(NOON + after), "{reason} {status}");
        }
    }

    #[test]
    fn a_boost_counts_only_where_it_is_switched_on() {
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
