//! Queue eligibility of a Workload: whether it may be in its queue, awaits a requeue, or is excluded.
//!
//! Source: docs/reference/kueue.md §2.4, §4.2.

use crds::meta::{is_deleting, is_rebuilding, is_true};
use crds::names::{annotations, conditions};
use crds::v1beta2::Workload;
use engine::Time;
use engine::spec::QueueEligibility;

use super::requeue_backoff::awaits_requeue;
use crate::config::IndexConfig;

/// Whether the Workload may be in its queue.
pub(super) fn queue_eligibility(
    config: &IndexConfig,
    workload: &Workload,
    now: Time,
) -> QueueEligibility {
    // Excluded first: such a Workload is in no queue, whatever its backoff.
    if is_excluded(config, workload) {
        QueueEligibility::Excluded
    } else if awaits_requeue(workload, now) {
        QueueEligibility::AwaitsRequeue
    } else {
        QueueEligibility::Eligible
    }
}

/// The admission gates of a Workload, comma separated, if there are any and the gate AdmissionGatedBy is on.
pub(crate) fn admission_gates<'a>(config: &IndexConfig, workload: &'a Workload) -> Option<&'a str> {
    let annotations = workload.metadata.annotations.as_ref()?;
    let gates = annotations.get(annotations::ADMISSION_GATED_BY)?;
    (config.admission_gated_by && !gates.is_empty()).then_some(gates)
}

/// Whether the Workload is in no queue, whatever its backoff.
pub(super) fn is_excluded(config: &IndexConfig, workload: &Workload) -> bool {
    !workload.is_active()
        || is_deleting(&workload.metadata)
        || admission_gates(config, workload).is_some()
        // Until its status is complete it would be admitted a second time (docs/reference/dispatch.md §11).
        || is_rebuilding(&workload.metadata)
        || workload.status.is_on_hold()
        || is_true(&workload.status.conditions, conditions::WAITING_FOR_REPLACEMENT_PODS)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOON: i64 = 1_767_268_800_000_000_000;

    fn workload(value: Value) -> Workload {
        serde_json::from_value(value).expect("a Workload")
    }

    #[test]
    fn backoff_checks_and_gates_keep_a_workload_out_of_its_queue() {
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
                json!({"metadata": {"annotations": {"sluice.dev/rebuild": "u"}}}),
                QueueEligibility::Excluded,
            ),
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
}
