//! Waiting for pods: what is noted about them, and how long they may take (docs/reference/kueue.md §2.4, §7.6).
//!
//! The condition `PodsReady` of a Workload follows the status of its job; of a dispatched one, the status that was copied
//! from the worker. That it is not ready is no news of its own and goes out with whatever else is written. A thin worker
//! notes nothing: its manager sees the pods of the clone in the copied status, and counts the time.

use std::time::Duration;

use crds::{
    meta::Condition,
    names::{
        conditions::{ADMITTED, PODS_READY},
        reasons,
    },
    v1beta2::{Workload, WorkloadStatus},
};
use index::status;
use jiff::Timestamp;

use super::held::after;
use crate::config::{GoDuration, WaitForPodsReady};

/// How long pods are waited for, and what follows when they are late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From admission until all are ready.
    pub start: Option<Duration>,
    /// From a failure until all are ready again.
    pub recovery: Option<Duration>,
    /// The first pause before the Workload queues again; it doubles with each further one.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// So many evictions are followed by another attempt; all of them where nothing is said.
    pub attempts: Option<i32>,
    /// Nobody is admitted while somebody's pods are waited for.
    pub blocks: bool,
}

impl From<&WaitForPodsReady> for Patience {
    /// Zero is no limit.
    fn from(file: &WaitForPodsReady) -> Self {
        let limit = |one: GoDuration| one.positive().filter(|one| !one.is_zero());
        let seconds = |one: i32| Duration::from_secs(u64::try_from(one).unwrap_or(0));
        let strategy = &file.requeuing_strategy;
        Self {
            start: limit(file.timeout),
            recovery: file.recovery_timeout.and_then(limit),
            first_pause: seconds(strategy.backoff_base_seconds),
            longest_pause: seconds(strategy.backoff_max_seconds),
            attempts: strategy.backoff_limit_count,
            blocks: file.block_admission,
        }
    }
}

impl Patience {
    /// The pause after this eviction, counted from one.
    pub(crate) fn pause(&self, eviction: i32) -> Duration {
        let doublings = u32::try_from(eviction.saturating_sub(1)).unwrap_or(0);
        let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
        self.first_pause.saturating_mul(factor).min(self.longest_pause)
    }

    /// Whether this eviction, counted from one, is followed by another attempt.
    pub(crate) fn allows(&self, eviction: i32) -> bool {
        self.attempts.is_none_or(|attempts| eviction <= attempts)
    }
}

/// A limit of an admitted Workload, and when it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) at: Timestamp,
    pub(crate) what: Late,
}

/// What takes too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// Its pods; with the cause as upstream names it.
    Pods(&'static str),
    /// All of it.
    Work,
}

/// The limits of an admitted Workload that holds its quota, the most urgent first.
pub(crate) fn limits(
    workload: &Workload,
    status: &WorkloadStatus,
    patience: Option<&Patience>,
) -> Vec<Limit> {
    let admitted = status::find(&status.conditions, ADMITTED).filter(|one| one.status == "True");
    let Some(since) = admitted.and_then(began) else {
        return Vec::new();
    };
    let pods = patience.and_then(|patience| pods_limit(status, since, patience));
    let seconds = workload.spec.maximum_execution_time_seconds;
    let work = seconds.map(|seconds| {
        let past = status.accumulated_past_execution_time_seconds.unwrap_or(0);
        let rest = u64::try_from(seconds.saturating_sub(past)).unwrap_or(0);
        Limit { at: after(since, Duration::from_secs(rest)), what: Late::Work }
    });
    let mut limits: Vec<Limit> = pods.into_iter().chain(work).collect();
    limits.sort_by_key(|limit| limit.at);
    limits
}

/// Pods that never were ready count from the admission, others from when they were seen to fail.
fn pods_limit(status: &WorkloadStatus, admitted: Timestamp, patience: &Patience) -> Option<Limit> {
    let noted = status::find(&status.conditions, PODS_READY);
    if noted.is_some_and(|one| one.status == "True") {
        return None;
    }
    match noted.filter(|one| one.reason == reasons::WAIT_FOR_RECOVERY) {
        Some(failed) => {
            let at = after(began(failed)?, patience.recovery?);
            Some(Limit { at, what: Late::Pods(reasons::WAIT_FOR_RECOVERY) })
        }
        None => {
            let at = after(admitted, patience.start?);
            Some(Limit { at, what: Late::Pods(reasons::WAIT_FOR_START) })
        }
    }
}

fn began(condition: &Condition) -> Option<Timestamp> {
    condition.last_transition_time.as_ref().map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn patience(text: &str) -> Patience {
        let file: WaitForPodsReady = serde_saphyr::from_str(text).expect("a block");
        Patience::from(&file)
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
    fn told(workload: &Workload, patience: Option<&Patience>) -> Vec<String> {
        let midnight: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let all = limits(workload, &workload.status, patience);
        let one = |limit: &Limit| {
            let seconds = limit.at.as_second() - midnight.as_second();
            format!("{}:{:02} {:?}", seconds / 60, seconds % 60, limit.what)
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn pods_have_so_long_from_the_admission_or_from_their_failure() {
        let patience = patience("{timeout: 5m, recoveryTimeout: 2m}");
        let admitted = since("Admitted", "True", "Admitted", 1);
        let ready = |status: &str, reason: &str| since("PodsReady", status, reason, 10);
        for (conditions, limits) in [
            (json!([]), vec![]),
            (json!([since("Admitted", "False", "NoReservation", 1)]), vec![]),
            (json!([admitted]), vec!["6:00 Pods(\"WaitForStart\")"]),
            (
                json!([admitted, ready("False", "WaitForStart")]),
                vec!["6:00 Pods(\"WaitForStart\")"],
            ),
            (json!([admitted, ready("True", "Started")]), vec![]),
            (
                json!([admitted, ready("False", "WaitForRecovery")]),
                vec!["12:00 Pods(\"WaitForRecovery\")"],
            ),
        ] {
            assert_eq!(told(&workload(None, &conditions), Some(&patience)), limits, "{conditions}");
        }
    }

    #[test]
    fn zero_is_no_limit_and_recovery_has_one_of_its_own() {
        let admitted = since("Admitted", "True", "Admitted", 1);
        let failed = since("PodsReady", "False", "WaitForRecovery", 10);
        let waits = workload(None, &json!([admitted]));
        let recovers = workload(None, &json!([admitted, failed]));
        let (none, only_start) = (patience("{timeout: 0s}"), patience("{recoveryTimeout: 0s}"));
        assert_eq!(told(&waits, Some(&none)), [""; 0]);
        assert_eq!(told(&recovers, Some(&only_start)), [""; 0]);
        assert_eq!(told(&waits, Some(&only_start)), ["31:00 Pods(\"WaitForStart\")"]);
    }

    #[test]
    fn earlier_attempts_count_towards_the_longest_execution_time() {
        let admitted = since("Admitted", "True", "Admitted", 1);
        let waits = workload(Some(70), &json!([admitted]));
        assert_eq!(told(&waits, None), ["2:00 Work"]);
        let used_up = workload(Some(5), &json!([admitted]));
        assert_eq!(told(&used_up, None), ["1:00 Work"]);
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_attempts_end() {
        let strategy = "{backoffBaseSeconds: 10, backoffMaxSeconds: 60, backoffLimitCount: 3}";
        let patience = patience(&format!("{{requeuingStrategy: {strategy}}}"));
        let pauses = [1, 2, 3, 4, 99].map(|eviction| patience.pause(eviction).as_secs());
        assert_eq!(pauses, [10, 20, 40, 60, 60]);
        assert_eq!([1, 3, 4].map(|eviction| patience.allows(eviction)), [true, true, false]);
    }
}
