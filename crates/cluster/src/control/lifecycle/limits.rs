//! Pods that are noted and waited for, and work that takes longer than it may (docs/reference/kueue.md §2.4, §7.6).
//!
//! That pods are not ready yet is no news of its own: it is written with whatever else is written.

use std::time::Duration;

use crds::{
    meta::is_true,
    names::{
        conditions::{ADMITTED, DEACTIVATION_TARGET, EVICTED, FINISHED, PODS_READY},
        reasons,
    },
    v1beta2::{Workload, WorkloadStatus},
};
use index::status::{self, Eviction};
use jiff::Timestamp;

use super::{Draft, Surroundings, at};
use crate::control::{
    Purpose,
    held::after,
    pods::{Late, Patience, limits},
    record::{has_quota, is},
};

/// How long a clone whose pods found no node is not admitted again.
const AWAY: Duration = Duration::from_secs(60);

/// When it reaches the first of its limits.
pub(crate) fn deadline(workload: &Workload, around: &Surroundings) -> Option<Timestamp> {
    let holds = has_quota(workload)
        && workload.spec.active != Some(false)
        && ![FINISHED, EVICTED, DEACTIVATION_TARGET].into_iter().any(|one| is(workload, one));
    let limits = limits(workload, &workload.status, around.patience.as_ref());
    let late = limits.first().filter(|_| around.limited).map(|limit| limit.at);
    let stranded = around.stranded.as_ref().map(|stranded| stranded.at);
    late.into_iter().chain(stranded).min().filter(|_| holds && is(workload, ADMITTED))
}

/// The status with the pods that are not ready yet, where that is told.
pub(super) fn note_not_ready(
    status: WorkloadStatus,
    workload: &Workload,
    around: &Surroundings,
    now: Timestamp,
) -> WorkloadStatus {
    if around.pods_ready.is_none() {
        return status;
    }
    let ready = is_true(&status.conditions, PODS_READY);
    status::pods_ready(status, ready, at(workload, now))
}

impl Draft<'_> {
    /// Whether pods are ready, as far as that is news of an admitted Workload.
    pub(super) fn note_pods(&mut self, around: &Surroundings) {
        let Some(ready) = around.pods_ready.filter(|_| self.runs()) else {
            return;
        };
        if ready != is_true(&self.status.conditions, PODS_READY) {
            let status = status::pods_ready(self.status.clone(), ready, self.at());
            self.become_(status, Purpose::PodsReady);
        }
    }

    /// Pods that are late, and work that takes longer than it may.
    pub(super) fn time_out(&mut self, around: &Surroundings) {
        let going = is_true(&self.status.conditions, DEACTIVATION_TARGET);
        if !around.limited || !self.runs() || going {
            return;
        }
        let limits = limits(self.workload, &self.status, around.patience.as_ref());
        let Some(late) = limits.first().filter(|limit| limit.at <= self.now) else {
            return;
        };
        match (late.what, &around.patience) {
            (Late::Pods(cause), Some(patience)) => self.pods_are_late(cause, patience),
            _ => self.work_takes_too_long(),
        }
    }

    /// A clone whose pods find no node goes back. It stays away for as long as its manager leaves this worker out.
    pub(super) fn strand(&mut self, around: &Surroundings) {
        let Some(stranded) = around.stranded.as_ref().filter(|one| one.at <= self.now) else {
            return;
        };
        if self.runs() {
            let (reason, message) = (reasons::UNSCHEDULABLE, stranded.why.as_str());
            let status = status::back_off(self.status.clone(), after(self.now, AWAY), false);
            let eviction = Eviction { reason, cause: "", message };
            self.become_(status::evicted(status, eviction, self.at()), Purpose::Evict);
        }
    }

    /// It is admitted, and nobody wants it to go.
    fn runs(&self) -> bool {
        is_true(&self.status.conditions, ADMITTED)
            && self.holds()
            && !self.is_evicted()
            && self.workload.spec.active != Some(false)
    }

    fn pods_are_late(&mut self, cause: &'static str, patience: &Patience) {
        let known = self.status.requeue_state.as_ref().and_then(|state| state.count);
        let eviction = known.unwrap_or(0).saturating_add(1);
        if !patience.allows(eviction) {
            let why = "exceeding the maximum number of re-queuing retries";
            return self.deactivate(reasons::REQUEUING_LIMIT_EXCEEDED, why);
        }
        let metadata = &self.workload.metadata;
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        let (namespace, name) = (part(&metadata.namespace), part(&metadata.name));
        let message = format!("Exceeded the PodsReady timeout {namespace}/{name}");
        let reason = reasons::PODS_READY_TIMEOUT;
        let until = after(self.now, patience.pause(eviction));
        let status = status::back_off(self.status.clone(), until, true);
        let eviction = Eviction { reason, cause, message: &message };
        self.become_(status::evicted(status, eviction, self.at()), Purpose::Evict);
    }

    fn work_takes_too_long(&mut self) {
        let why = "exceeding the maximum execution time";
        self.deactivate(reasons::MAXIMUM_EXECUTION_TIME_EXCEEDED, why);
    }

    fn deactivate(&mut self, reason: &str, why: &str) {
        let status = status::deactivation_target(self.status.clone(), reason, why, self.at());
        self.become_(status, Purpose::DeactivationTarget);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::control::{
        lifecycle::{Next, Stop, next},
        record::Record,
    };

    /// Admitted a minute after midnight.
    fn workload(more: &Value, status: &Value) -> Workload {
        let since = |kind: &str| {
            json!({
                "type": kind, "status": "True", "reason": kind, "message": "",
                "lastTransitionTime": "2026-01-01T00:01:00Z",
            })
        };
        let mut conditions = vec![since("QuotaReserved"), since("Admitted")];
        conditions.extend(more.as_array().cloned().unwrap_or_default());
        let mut all = status.clone();
        all["conditions"] = json!(conditions);
        all["admission"] = json!({"clusterQueue": "cq", "podSetAssignments": []});
        serde_json::from_value(json!({
            "metadata": {"namespace": "ns", "name": "train", "uid": "u", "resourceVersion": "1"},
            "spec": {"maximumExecutionTimeSeconds": 600},
            "status": all,
        }))
        .expect("a Workload")
    }

    fn around(pods_ready: Option<bool>) -> Surroundings {
        let strategy = "{backoffBaseSeconds: 10, backoffLimitCount: 1}";
        let file = format!("{{timeout: 2m, recoveryTimeout: 1m, requeuingStrategy: {strategy}}}");
        let file: crate::config::WaitForPodsReady = serde_saphyr::from_str(&file).expect("a block");
        Surroundings {
            stop: Stop::No,
            dispatched: None,
            requests: vec![],
            pods_ready,
            patience: Some(Patience::from(&file)),
            limited: true,
            stranded: None,
        }
    }

    /// What is written so many minutes after midnight: its purpose, and the conditions that are news.
    fn written(workload: &Workload, around: &Surroundings, minute: i64) -> String {
        let midnight: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let now = Timestamp::from_second(midnight.as_second() + 60 * minute).expect("a time");
        let id = engine::ids::WorkloadId(1);
        let Next::Write { purpose, status } =
            next(&Record::new(workload.clone(), id, now), around, now)
        else {
            return "nothing".to_owned();
        };
        let words =
            |one: &crds::meta::Condition| format!(" {}={} {}", one.r#type, one.status, one.reason);
        let known: Vec<String> = workload.status.conditions.iter().map(words).collect();
        let news = status.conditions.iter().map(words).filter(|one| !known.contains(one));
        let count = status.requeue_state.as_ref().and_then(|state| state.count);
        let count = count.map_or(String::new(), |count| format!(" #{count}"));
        format!("{purpose}:{}{count}", news.collect::<String>())
    }

    fn pods(status: &str, reason: &str) -> Value {
        json!([{
            "type": "PodsReady", "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:05:00Z",
        }])
    }

    #[test]
    fn pods_are_noted_when_they_are_ready_and_when_they_are_not_any_more() {
        let (ready, not) = (around(Some(true)), around(Some(false)));
        let fresh = workload(&json!([]), &json!({}));
        assert_eq!(written(&fresh, &ready, 2), "pods-ready: PodsReady=True Started");
        assert_eq!(written(&fresh, &not, 2), "nothing", "no news of its own");
        let started = workload(&pods("True", "Started"), &json!({}));
        assert_eq!(written(&started, &ready, 6), "nothing");
        assert_eq!(written(&started, &not, 6), "pods-ready: PodsReady=False WaitForRecovery");
        let failed = workload(&pods("False", "WaitForRecovery"), &json!({}));
        assert_eq!(written(&failed, &ready, 5), "pods-ready: PodsReady=True Recovered");
    }

    #[test]
    fn late_pods_are_evicted_and_in_the_end_the_workload_is_switched_off() {
        let fresh = workload(&json!([]), &json!({}));
        let late = "evict: Evicted=True PodsReadyTimeout PodsReady=False WaitForStart #1";
        assert_eq!(written(&fresh, &around(Some(false)), 3), late);
        assert_eq!(
            written(&fresh, &around(Some(true)), 3),
            "pods-ready: PodsReady=True Started",
            "they came at the last moment"
        );
        let failed = workload(&pods("False", "WaitForRecovery"), &json!({}));
        let again = "evict: Evicted=True PodsReadyTimeout #1";
        assert_eq!(written(&failed, &around(Some(false)), 6), again);
        let twice = workload(&json!([]), &json!({"requeueState": {"count": 1}}));
        let off = "deactivation-target: DeactivationTarget=True RequeuingLimitExceeded \
                   PodsReady=False WaitForStart #1";
        assert_eq!(written(&twice, &around(Some(false)), 3), off);
    }

    #[test]
    fn work_that_takes_too_long_is_switched_off_where_its_time_is_counted() {
        let running = workload(&pods("True", "Started"), &json!({}));
        let ready = around(Some(true));
        let off = "deactivation-target: DeactivationTarget=True MaximumExecutionTimeExceeded";
        assert_eq!(written(&running, &ready, 10), "nothing");
        assert_eq!(written(&running, &ready, 11), off);
        let elsewhere = Surroundings { limited: false, ..ready.clone() };
        assert_eq!(written(&running, &elsewhere, 11), "nothing");
        let midnight: Timestamp = "2026-01-01T00:11:00Z".parse().expect("a time");
        assert_eq!(deadline(&running, &ready), Some(midnight));
        assert_eq!(deadline(&running, &elsewhere), None);
    }
}
