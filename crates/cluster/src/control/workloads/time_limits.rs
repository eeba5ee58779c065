//! When an admitted Workload reaches its time limits: PodsReady timeout, recovery timeout, maximum execution time
//! (docs/reference/kueue.md §2.4, §7.6).

use std::time::Duration;

use crds::{
    meta::Condition,
    names::{
        annotations::{IS_GROUP_WORKLOAD, JOB_OWNER_NAME},
        conditions::{ADMITTED, PODS_READY},
        reasons,
    },
    v1beta2::{Workload, WorkloadStatus},
};
use index::status;
use jiff::Timestamp;

use super::pods_ready_policy::PodsReadyPolicy;
use crate::control::outbox::after;

/// A limit of an admitted Workload, and when it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeLimit {
    pub(crate) at: Timestamp,
    pub(crate) kind: TimeLimitKind,
}

/// Which limit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeLimitKind {
    /// The PodsReady timeout, with the underlying cause of the eviction.
    PodsReadyTimeout(&'static str),
    /// The maximum execution time.
    ExecutionTime,
}

/// The limits of an admitted Workload that holds its quota, the earliest first.
pub(crate) fn time_limits(
    workload: &Workload,
    status: &WorkloadStatus,
    policy: Option<&PodsReadyPolicy>,
) -> Vec<TimeLimit> {
    let admitted = status::find_true(&status.conditions, ADMITTED);
    let Some(since) = admitted.and_then(Condition::transitioned_at) else {
        return Vec::new();
    };
    let policy = policy.filter(|_| !is_set_elsewhere(workload, status));
    let pods = policy.and_then(|policy| pods_ready_limit(status, since, policy));
    let seconds = workload.spec.maximum_execution_time_seconds;
    let execution = seconds.map(|seconds| {
        // A requeue does not begin the maximum execution time again (docs/reference/kueue.md §2.4).
        let past = status.accumulated_past_execution_time_seconds.unwrap_or(0);
        let rest = u64::try_from(seconds.saturating_sub(past)).unwrap_or(0);
        let at = after(since, Duration::from_secs(rest));
        TimeLimit { at, kind: TimeLimitKind::ExecutionTime }
    });
    let mut limits: Vec<TimeLimit> = pods.into_iter().chain(execution).collect();
    limits.sort_by_key(|limit| limit.at);
    limits
}

/// Whether the pods are those of a set on a worker: no status of them comes back (docs/reference/multikueue.md §2.7), so that
/// the gated pods here would look as if they never became ready.
pub(crate) fn is_set_elsewhere(workload: &Workload, status: &WorkloadStatus) -> bool {
    let annotations = workload.metadata.annotations.as_ref();
    let of_set = annotations
        .is_some_and(|all| all.contains_key(IS_GROUP_WORKLOAD) && all.contains_key(JOB_OWNER_NAME));
    of_set && status.cluster_name.is_some()
}

/// Pods that were never ready count from the admission; pods that failed count from their failure.
fn pods_ready_limit(
    status: &WorkloadStatus,
    admitted: Timestamp,
    policy: &PodsReadyPolicy,
) -> Option<TimeLimit> {
    let condition = status::find(&status.conditions, PODS_READY);
    if condition.is_some_and(|one| one.status == "True") {
        return None;
    }
    let (since, timeout, cause) =
        match condition.filter(|one| one.reason == reasons::WAIT_FOR_RECOVERY) {
            Some(failed) => {
                (failed.transitioned_at()?, policy.recovery_timeout?, reasons::WAIT_FOR_RECOVERY)
            }
            None => (admitted, policy.timeout?, reasons::WAIT_FOR_START),
        };
    Some(TimeLimit { at: after(since, timeout), kind: TimeLimitKind::PodsReadyTimeout(cause) })
}

#[cfg(test)]
mod tests {
    use config::WaitForPodsReady;
    use serde_json::{Value, json};

    use super::*;

    fn policy(text: &str) -> PodsReadyPolicy {
        let file: WaitForPodsReady = serde_saphyr::from_str(text).expect("a block");
        PodsReadyPolicy::from(&file)
    }

    fn workload(seconds: Option<i32>, conditions: &Value) -> Workload {
        serde_json::from_value(json!({
            "spec": { "maximumExecutionTimeSeconds": seconds },
            "status": { "conditions": conditions, "accumulatedPastExecutionTimeSeconds": 10 },
        }))
        .expect("a Workload")
    }

    fn since(kind: &str, status: &str, reason: &str, minute: u32) -> Value {
        json!({
            "type": kind, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": format!("2026-01-01T00:{minute:02}:00Z"),
        })
    }

    /// The limits, as minutes and seconds after midnight.
    fn limits_of(workload: &Workload, policy: Option<&PodsReadyPolicy>) -> Vec<String> {
        let midnight: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let all = time_limits(workload, &workload.status, policy);
        let one = |limit: &TimeLimit| {
            let seconds = limit.at.as_second() - midnight.as_second();
            format!("{}:{:02} {:?}", seconds / 60, seconds % 60, limit.kind)
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn the_pods_ready_timeout_counts_from_admission_and_recovery_from_the_failure() {
        let policy = policy("{timeout: 5m, recoveryTimeout: 2m}");
        let admitted = since("Admitted", "True", "Admitted", 1);
        let ready = |status: &str, reason: &str| since("PodsReady", status, reason, 10);
        for (conditions, limits) in [
            (json!([]), vec![]),
            (json!([since("Admitted", "False", "NoReservation", 1)]), vec![]),
            (json!([admitted]), vec!["6:00 PodsReadyTimeout(\"WaitForStart\")"]),
            (
                json!([admitted, ready("False", "WaitForStart")]),
                vec!["6:00 PodsReadyTimeout(\"WaitForStart\")"],
            ),
            (json!([admitted, ready("True", "Started")]), vec![]),
            (
                json!([admitted, ready("False", "WaitForRecovery")]),
                vec!["12:00 PodsReadyTimeout(\"WaitForRecovery\")"],
            ),
        ] {
            assert_eq!(
                limits_of(&workload(None, &conditions), Some(&policy)),
                limits,
                "{conditions}"
            );
        }
    }

    #[test]
    fn pods_of_a_set_on_a_worker_are_not_late() {
        let policy = policy("{timeout: 5m}");
        let mut set = workload(None, &json!([since("Admitted", "True", "Admitted", 1)]));
        let annotations =
            [IS_GROUP_WORKLOAD, JOB_OWNER_NAME].map(|key| (key.to_owned(), "d".to_owned()));
        set.metadata.annotations = Some(annotations.into());
        assert_eq!(limits_of(&set, Some(&policy)), ["6:00 PodsReadyTimeout(\"WaitForStart\")"]);
        set.status.cluster_name = Some("east".to_owned());
        assert_eq!(limits_of(&set, Some(&policy)), [""; 0]);
    }

    #[test]
    fn a_timeout_of_zero_is_no_limit_and_recovery_has_its_own() {
        let admitted = since("Admitted", "True", "Admitted", 1);
        let failed = since("PodsReady", "False", "WaitForRecovery", 10);
        let starts = workload(None, &json!([admitted]));
        let recovers = workload(None, &json!([admitted, failed]));
        let (none, only_start) = (policy("{timeout: 0s}"), policy("{recoveryTimeout: 0s}"));
        assert_eq!(limits_of(&starts, Some(&none)), [""; 0]);
        assert_eq!(limits_of(&recovers, Some(&only_start)), [""; 0]);
        assert_eq!(
            limits_of(&starts, Some(&only_start)),
            ["31:00 PodsReadyTimeout(\"WaitForStart\")"]
        );
    }

    #[test]
    fn earlier_runs_count_towards_the_maximum_execution_time() {
        let admitted = since("Admitted", "True", "Admitted", 1);
        let running = workload(Some(70), &json!([admitted]));
        assert_eq!(limits_of(&running, None), ["2:00 ExecutionTime"]);
        let used_up = workload(Some(5), &json!([admitted]));
        assert_eq!(limits_of(&used_up, None), ["1:00 ExecutionTime"]);
    }
}
