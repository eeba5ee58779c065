//! What follows when an admitted Workload reaches a time limit, and from pods that cannot run
//! (docs/reference/kueue.md §2.4, §7.6).
//!
//! `PodsReady=False` goes out with the admission. It is written alone only if another client wrote the admission.

use std::time::Duration;

use crds::{
    meta::is_true,
    names::{
        conditions::{ADMITTED, DEACTIVATION_TARGET, PODS_READY},
        reasons,
    },
    v1beta2::{Workload, WorkloadStatus},
};
use index::status::{self, Eviction};
use jiff::Timestamp;

use super::{
    pods_ready_policy::PodsReadyPolicy,
    status::{StatusInputs, at},
    status_draft::StatusDraft,
    time_limits::{TimeLimitKind, time_limits},
    tracked_workload::TrackedWorkload,
};
use crate::control::{
    outbox::{Purpose, after},
    pod_failure::PodFailure,
};

/// Backoff of a clone with pods that no node takes or the API server refuses, before the agent admits it again.
const POD_FAILURE_BACKOFF: Duration = Duration::from_secs(60);

/// Ten years, which no clone lives.
const FINAL_BACKOFF: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// When an admitted Workload reaches the first of its limits.
pub(crate) fn deadline(record: &TrackedWorkload, inputs: &StatusInputs) -> Option<Timestamp> {
    let workload = record.object();
    let runs = record.phase().keeps_quota()
        && workload.is_active()
        && !record.is(DEACTIVATION_TARGET)
        && record.is(ADMITTED);
    let limits = time_limits(workload, &workload.status, inputs.policy.as_ref());
    let limit = limits.first().filter(|_| inputs.enforces_time_limits).map(|limit| limit.at);
    // An agent evicts for pods that cannot run although the manager enforces the time limits.
    let pod_failure = inputs.pod_failure.as_ref().map(|failure| failure.at);
    limit.into_iter().chain(pod_failure).min().filter(|_| runs)
}

/// Applies what follows from pods and from the time.
pub(super) fn apply(draft: &mut StatusDraft<'_>, inputs: &StatusInputs) {
    // Readiness comes first: pods that became ready at the last moment are not evicted.
    update_pods_ready(draft, inputs.pods_ready);
    enforce(draft, inputs);
    evict_for_pods(draft, inputs);
    show_pods_ready(draft, inputs.pods_ready);
}

/// The status with `PodsReady=False`, where a PodsReady policy is set and the pods are not ready.
pub(super) fn with_pods_ready(
    status: WorkloadStatus,
    workload: &Workload,
    inputs: &StatusInputs,
    now: Timestamp,
) -> WorkloadStatus {
    if inputs.pods_ready.is_none() {
        return status;
    }
    let ready = is_true(&status.conditions, PODS_READY);
    status::pods_ready(status, ready, at(workload, now))
}

/// The reasons of the condition PodsReady.
const PODS_READY_REASONS: [&str; 4] =
    [reasons::STARTED, reasons::RECOVERED, reasons::WAIT_FOR_START, reasons::WAIT_FOR_RECOVERY];

fn update_pods_ready(draft: &mut StatusDraft<'_>, pods_ready: Option<bool>) {
    let Some(ready) = pods_ready.filter(|_| draft.runs()) else {
        return;
    };
    // An old Kueue gave other reasons, which do not say which timeout applies.
    let known = status::find(&draft.status().conditions, PODS_READY);
    let is_old = known.is_some_and(|one| !PODS_READY_REASONS.contains(&one.reason.as_str()));
    if ready != draft.is(PODS_READY) || is_old {
        let status = status::pods_ready(draft.status().clone(), ready, draft.at());
        draft.apply(status, Purpose::PodsReady);
    }
}

/// Adds the condition where it is missing: another client wrote the admission.
fn show_pods_ready(draft: &mut StatusDraft<'_>, pods_ready: Option<bool>) {
    let known = status::find(&draft.status().conditions, PODS_READY).is_some();
    let Some(ready) = pods_ready.filter(|_| draft.runs() && !known) else {
        return;
    };
    let status = status::pods_ready(draft.status().clone(), ready, draft.at());
    draft.apply(status, Purpose::PodsReady);
}

fn enforce(draft: &mut StatusDraft<'_>, inputs: &StatusInputs) {
    // After DeactivationTarget another write sets `spec.active`, and that evicts
    // (docs/reference/kueue.md §2.2).
    if !inputs.enforces_time_limits || !draft.runs() || draft.is(DEACTIVATION_TARGET) {
        return;
    }
    let limits = time_limits(draft.workload(), draft.status(), inputs.policy.as_ref());
    let Some(limit) = limits.first().filter(|limit| limit.at <= draft.now()) else {
        return;
    };
    match (limit.kind, &inputs.policy) {
        (TimeLimitKind::PodsReadyTimeout(cause), Some(policy)) => {
            evict_for_pods_ready(draft, cause, policy);
        }
        // Only the maximum execution time is left: without a policy no PodsReady limit is computed.
        _ => {
            let message = "exceeding the maximum execution time";
            deactivate(draft, reasons::MAXIMUM_EXECUTION_TIME_EXCEEDED, message);
        }
    }
}

/// The clone goes back to its manager, which excludes this worker for about as long as the backoff.
fn evict_for_pods(draft: &mut StatusDraft<'_>, inputs: &StatusInputs) {
    let failure = inputs.pod_failure.as_ref().filter(|failure| failure.at <= draft.now());
    // Nodes that do not come end the wait for them, before any admission.
    let ends = |failure: &&PodFailure| {
        draft.runs() || failure.reason == reasons::PROVISIONING_FAILED && draft.keeps_quota()
    };
    let Some(failure) = failure.filter(ends) else {
        return;
    };
    // A clone never starts again after the end of its grant, or after a refusal: the manager may have started the work elsewhere.
    let is_final = [reasons::FENCED, reasons::PROVISIONING_FAILED].contains(&failure.reason);
    let backoff = if is_final { FINAL_BACKOFF } else { POD_FAILURE_BACKOFF };
    let until = after(draft.now(), backoff);
    // Not counted: the count limits requeues after PodsReadyTimeout (docs/reference/kueue.md §2.4).
    let status = status::back_off(draft.status().clone(), until, false);
    let eviction = Eviction { reason: failure.reason, cause: "", message: &failure.message };
    draft.apply(status::evicted(status, eviction, draft.at()), Purpose::Evict);
}

/// The PodsReady timeout: requeue with backoff, or deactivation after the last requeue.
fn evict_for_pods_ready(
    draft: &mut StatusDraft<'_>,
    cause: &'static str,
    policy: &PodsReadyPolicy,
) {
    let count = draft.status().requeue_state.as_ref().and_then(|state| state.count);
    let eviction = count.unwrap_or(0).saturating_add(1);
    // The count of this eviction would exceed backoffLimitCount (docs/reference/kueue.md §2.4).
    if !policy.requeues_after(eviction) {
        let message = "exceeding the maximum number of re-queuing retries";
        return deactivate(draft, reasons::REQUEUING_LIMIT_EXCEEDED, message);
    }
    let metadata = &draft.workload().metadata;
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    let (namespace, name) = (part(&metadata.namespace), part(&metadata.name));
    let message = format!("Exceeded the PodsReady timeout {namespace}/{name}");
    let until = after(draft.now(), policy.requeue_backoff(eviction));
    let status = status::back_off(draft.status().clone(), until, true);
    let eviction = Eviction { reason: reasons::PODS_READY_TIMEOUT, cause, message: &message };
    draft.apply(status::evicted(status, eviction, draft.at()), Purpose::Evict);
}

fn deactivate(draft: &mut StatusDraft<'_>, reason: &str, message: &str) {
    let status = status::deactivation_target(draft.status().clone(), reason, message, draft.at());
    draft.apply(status, Purpose::DeactivationTarget);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::control::{
        start_failure::PodStarts,
        workloads::{
            status::{NextStatus, next_status},
            stop_policy::StopPolicy,
        },
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

    fn inputs(pods_ready: Option<bool>) -> StatusInputs {
        let strategy = "{backoffBaseSeconds: 10, backoffLimitCount: 1}";
        let file = format!("{{timeout: 2m, recoveryTimeout: 1m, requeuingStrategy: {strategy}}}");
        let file: config::WaitForPodsReady = serde_saphyr::from_str(&file).expect("a block");
        StatusInputs {
            gated: None,
            variant: None,
            is_parent: false,
            unhealthy_nodes: None,
            replacement: None,
            stop: StopPolicy::default(),
            multikueue_check: None,
            required_checks: None,
            check_updates: vec![],
            withdrawn: false,
            class_priority: None,
            requests: vec![],
            pods_ready,
            policy: Some(PodsReadyPolicy::from(&file)),
            requeues_pods: false,
            pod_leaves: false,
            retention: None,
            enforces_time_limits: true,
            legacy_reasons: false,
            explicit_status: false,
            pod_failure: None,
            pod_starts: PodStarts::Unknown,
        }
    }

    fn record(workload: &Workload) -> TrackedWorkload {
        TrackedWorkload::new(Arc::new(workload.clone()), engine::ids::WorkloadId(1))
    }

    /// The write so many minutes after midnight: its purpose and the conditions that it changes.
    fn written(workload: &Workload, inputs: &StatusInputs, minute: i64) -> String {
        let midnight: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let now = Timestamp::from_second(midnight.as_second() + 60 * minute).expect("a time");
        let record = record(workload);
        let (purpose, status) = match next_status(&record, inputs, now) {
            NextStatus::Write { purpose, status } => (purpose, status),
            NextStatus::Explain(status) => (Purpose::Pending, status),
            NextStatus::Wait(_) | NextStatus::Nothing => return "nothing".to_owned(),
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

    /// Such a Workload waits behind an equal one, so that no cycle has a reason for it.
    #[test]
    fn a_workload_without_any_condition_shows_its_pods_after_a_while() {
        let created: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let mut pending = workload(&json!([]), &json!({}));
        pending.status = Default::default();
        pending.metadata.creation_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(created));
        let next = |now| next_status(&record(&pending), &inputs(Some(false)), now);
        let due = after(created, Duration::from_secs(5));
        assert_eq!(next(created), NextStatus::Wait(due));
        assert!(matches!(next(due), NextStatus::Explain(_)));
        assert_eq!(
            written(&pending, &inputs(Some(false)), 1),
            "pending: PodsReady=False WaitForStart"
        );
        assert_eq!(written(&pending, &inputs(None), 1), "nothing");
    }

    #[test]
    fn pods_ready_follows_the_pods_of_a_running_workload() {
        let (ready, not) = (inputs(Some(true)), inputs(Some(false)));
        let fresh = workload(&json!([]), &json!({}));
        assert_eq!(written(&fresh, &ready, 2), "pods-ready: PodsReady=True Started");
        assert_eq!(written(&fresh, &not, 2), "pods-ready: PodsReady=False WaitForStart");
        let started = workload(&pods("True", "Started"), &json!({}));
        assert_eq!(written(&started, &ready, 6), "nothing");
        assert_eq!(written(&started, &not, 6), "pods-ready: PodsReady=False WaitForRecovery");
        let failed = workload(&pods("False", "WaitForRecovery"), &json!({}));
        assert_eq!(written(&failed, &ready, 5), "pods-ready: PodsReady=True Recovered");
    }

    #[test]
    fn reasons_of_an_old_version_become_those_of_today() {
        let old = |status: &str| workload(&pods(status, "PodsReady"), &json!({}));
        let [ready, not] = [Some(true), Some(false)].map(inputs);
        assert_eq!(written(&old("True"), &ready, 6), "pods-ready: PodsReady=True Started");
        assert_eq!(written(&old("False"), &not, 2), "pods-ready: PodsReady=False WaitForStart");
        assert_eq!(written(&old("True"), &not, 5), "pods-ready: PodsReady=False WaitForRecovery");
        for reason in ["Started", "Recovered"] {
            let current = workload(&pods("True", reason), &json!({}));
            assert_eq!(written(&current, &ready, 6), "nothing", "{reason}");
        }
    }

    #[test]
    fn the_pods_ready_timeout_evicts_and_in_the_end_deactivates() {
        let fresh = workload(&json!([]), &json!({}));
        let late = "evict: Evicted=True PodsReadyTimeout PodsReady=False WaitForStart #1";
        assert_eq!(written(&fresh, &inputs(Some(false)), 3), late);
        assert_eq!(
            written(&fresh, &inputs(Some(true)), 3),
            "pods-ready: PodsReady=True Started",
            "they came at the last moment"
        );
        let failed = workload(&pods("False", "WaitForRecovery"), &json!({}));
        let again = "evict: Evicted=True PodsReadyTimeout #1";
        assert_eq!(written(&failed, &inputs(Some(false)), 6), again);
        let twice = workload(&json!([]), &json!({"requeueState": {"count": 1}}));
        let off = "deactivation-target: DeactivationTarget=True RequeuingLimitExceeded \
                   PodsReady=False WaitForStart #1";
        assert_eq!(written(&twice, &inputs(Some(false)), 3), off);
    }

    #[test]
    fn the_maximum_execution_time_deactivates_where_it_is_enforced() {
        let running = workload(&pods("True", "Started"), &json!({}));
        let ready = inputs(Some(true));
        let off = "deactivation-target: DeactivationTarget=True MaximumExecutionTimeExceeded";
        assert_eq!(written(&running, &ready, 10), "nothing");
        assert_eq!(written(&running, &ready, 11), off);
        let elsewhere = StatusInputs { enforces_time_limits: false, ..ready.clone() };
        assert_eq!(written(&running, &elsewhere, 11), "nothing");
        let midnight: Timestamp = "2026-01-01T00:11:00Z".parse().expect("a time");
        assert_eq!(deadline(&record(&running), &ready), Some(midnight));
        assert_eq!(deadline(&record(&running), &elsewhere), None);
    }
}
