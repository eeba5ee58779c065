//! Statuses as text: a line per condition, then check states, then other fields.

use std::collections::BTreeMap;

use crds::names::reasons;
use crds::v1beta2::{
    Admission, AdmissionCheckState, PodSetAssignment, PodSetRequest, WorkloadStatus,
};
use engine::PreemptionReason;
use expect_test::{Expect, expect};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::field_ownership::owned_fields;
use super::*;

fn at(second: i64) -> StatusStamp {
    StatusStamp { now: Timestamp::from_second(second).expect("a time"), generation: 1 }
}

fn admission() -> Admission {
    let main = PodSetAssignment { name: "main".into(), count: Some(1), ..Default::default() };
    Admission { cluster_queue: "q".into(), pod_set_assignments: vec![main] }
}

fn reserve(
    status: WorkloadStatus,
    checks: &[&str],
    nominated: &[&str],
    second: i64,
) -> WorkloadStatus {
    let text = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
    let (checks, nominated) = (text(checks), text(nominated));
    let reservation =
        QuotaReservation { admission: admission(), checks: &checks, nominated: &nominated };
    quota_reserved(status, reservation, at(second))
}

fn evict(status: WorkloadStatus, reason: &str, second: i64) -> WorkloadStatus {
    evicted(status, Eviction { reason, cause: "", message: "why" }, at(second))
}

/// An admitted Workload without checks.
fn running() -> WorkloadStatus {
    reserve(WorkloadStatus::default(), &[], &[], 10)
}

fn text_of(status: &WorkloadStatus) -> String {
    let mut lines = Vec::new();
    for one in &status.conditions {
        let since = one.last_transition_time.as_ref().map_or(0, |time| time.0.as_second());
        lines
            .push(format!("{since} {}={} {}: {}", one.r#type, one.status, one.reason, one.message));
    }
    for one in &status.admission_checks {
        let since = one.last_transition_time.as_ref().map_or(0, |time| time.0.as_second());
        let retries = one.retry_count.map_or(String::new(), |count| format!(" retries={count}"));
        lines.push(format!("{since} check {}={}{retries}: {}", one.name, one.state, one.message));
    }
    let mut rest = status.clone();
    (rest.conditions, rest.admission_checks) = (vec![], vec![]);
    if rest != WorkloadStatus::default() {
        lines.push(json!(rest).to_string());
    }
    lines.join("\n") + "\n"
}

fn check(status: &WorkloadStatus, expect: Expect) {
    expect.assert_eq(&text_of(status));
}

#[test]
fn without_checks_a_reservation_admits_at_once() {
    check(
        &running(),
        expect![[r#"
        10 QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue q
        10 Admitted=True Admitted: The workload is admitted
        {"admission":{"clusterQueue":"q","podSetAssignments":[{"count":1,"name":"main"}]}}
    "#]],
    );
}

#[test]
fn with_pending_checks_a_reservation_does_not_admit() {
    let status = reserve(WorkloadStatus::default(), &["a", "mk"], &["east"], 10);
    check(
        &status,
        expect![[r#"
        10 QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue q
        10 Admitted=False UnsatisfiedAdmissionChecks: The workload has not all checks ready
        10 check a=Pending: 
        10 check mk=Pending: 
        {"admission":{"clusterQueue":"q","podSetAssignments":[{"count":1,"name":"main"}]},"nominatedClusterNames":["east"]}
    "#]],
    );
}

#[test]
fn ready_checks_admit_at_once() {
    let ready = |name: &str| AdmissionCheckState {
        name: name.into(),
        state: "Ready".into(),
        ..Default::default()
    };
    let status =
        WorkloadStatus { admission_checks: vec![ready("a"), ready("old")], ..Default::default() };
    let status = reserve(status, &["a"], &[], 10);
    check(
        &status,
        expect![[r#"
        10 QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue q
        10 Admitted=True Admitted: The workload is admitted
        0 check a=Ready: 
        {"admission":{"clusterQueue":"q","podSetAssignments":[{"count":1,"name":"main"}]}}
    "#]],
    );
}

#[test]
fn a_pending_workload_shows_reason_and_requests() {
    let requests = vec![PodSetRequest {
        name: "main".into(),
        resources: BTreeMap::from([("cpu".to_owned(), "2".parse().expect("a quantity"))]).into(),
    }];
    let first = pending(
        WorkloadStatus::default(),
        PendingCause { reason: "WaitingForQuota", message: "one", requests: requests.clone() },
        at(1),
    );
    let second =
        pending(first, PendingCause { reason: "ExceedsMaxQuota", message: "two", requests }, at(2));
    check(
        &second,
        expect![[r#"
            1 QuotaReserved=False ExceedsMaxQuota: two
            1 Admitted=False NoReservation: The workload has no reservation
            {"resourceRequests":[{"name":"main","resources":{"cpu":"2"}}]}
        "#]],
    );
    check(
        &reserve(second, &[], &[], 3),
        expect![[r#"
        3 QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue q
        3 Admitted=True Admitted: The workload is admitted
        {"admission":{"clusterQueue":"q","podSetAssignments":[{"count":1,"name":"main"}]}}
    "#]],
    );
}

#[test]
fn the_admitting_cluster_sets_its_check_to_ready() {
    let mut status = reserve(WorkloadStatus::default(), &["mk"], &["east", "west"], 10);
    for one in status.admission.iter_mut().flat_map(|one| &mut one.pod_set_assignments) {
        one.delayed_topology_request = Some("Pending".into());
    }
    check(
        &admitted_on_cluster(status, "west", "mk", at(20)),
        expect![[r#"
        10 QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue q
        20 Admitted=True Admitted: The workload is admitted
        20 check mk=Ready: The workload was admitted on "west"
        {"admission":{"clusterQueue":"q","podSetAssignments":[{"count":1,"delayedTopologyRequest":"Ready","name":"main"}]},"clusterName":"west"}
    "#]],
    );
}

#[test]
fn an_eviction_keeps_quota_and_cluster_until_the_release() {
    let status = reserve(WorkloadStatus::default(), &["mk"], &["west"], 10);
    let status = admitted_on_cluster(status, "west", "mk", at(20));
    let status = with_check_retry(status, "mk", "lost", at(25));
    let status = evict(status, "AdmissionCheck", 30);
    check(
        &status,
        expect![[r#"
        10 QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue q
        30 Admitted=False UnsatisfiedAdmissionChecks: The workload has not all checks ready
        30 Evicted=True AdmissionCheck: why
        30 check mk=Pending retries=1: Reset to Pending after eviction. Previously: Retry
        {"accumulatedPastExecutionTimeSeconds":10,"admission":{"clusterQueue":"q","podSetAssignments":[{"count":1,"name":"main"}]},"clusterName":"west","schedulingStats":{"evictions":[{"count":1,"reason":"AdmissionCheck","underlyingCause":""}]}}
    "#]],
    );
    check(
        &quota_released(status, at(40)),
        expect![[r#"
        40 QuotaReserved=False PendingEvaluation: why
        30 Admitted=False NoReservation: The workload has no reservation
        30 Evicted=True AdmissionCheck: why
        40 Requeued=False AdmissionCheck: why
        30 check mk=Pending retries=1: Reset to Pending after eviction. Previously: Retry
        {"accumulatedPastExecutionTimeSeconds":10,"schedulingStats":{"evictions":[{"count":1,"reason":"AdmissionCheck","underlyingCause":""}]}}
    "#]],
    );
}

#[test]
fn a_preemption_target_names_its_preemptor_and_is_requeued_at_once() {
    let reason = PreemptionReason::InCohortReclamation;
    let message = preemption_message(("u", ""), reason, ("/root/a", "/root/b"));
    let status = preempted(running(), reason, &message, at(20));
    check(
        &quota_released(status, at(30)),
        expect![[r#"
        30 QuotaReserved=False PendingEvaluation: Preempted to accommodate a workload (UID: u, JobUID: UNKNOWN) due to reclamation within the cohort; preemptor path: /root/a; preemptee path: /root/b
        30 Admitted=False NoReservation: The workload has no reservation
        20 Evicted=True Preempted: Preempted to accommodate a workload (UID: u, JobUID: UNKNOWN) due to reclamation within the cohort; preemptor path: /root/a; preemptee path: /root/b
        20 Preempted=True InCohortReclamation: Preempted to accommodate a workload (UID: u, JobUID: UNKNOWN) due to reclamation within the cohort; preemptor path: /root/a; preemptee path: /root/b
        30 Requeued=True Preempted: Preempted to accommodate a workload (UID: u, JobUID: UNKNOWN) due to reclamation within the cohort; preemptor path: /root/a; preemptee path: /root/b
        {"accumulatedPastExecutionTimeSeconds":20,"schedulingStats":{"evictions":[{"count":1,"reason":"Preempted","underlyingCause":""}]}}
    "#]],
    );
    let status = preempted(running(), reason, "m", at(20));
    check(
        &reserve(quota_released(status, at(30)), &[], &[], 40),
        expect![[r#"
        40 QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue q
        40 Admitted=True Admitted: The workload is admitted
        40 Evicted=False QuotaReserved: Previously: m
        40 Preempted=False QuotaReserved: Previously: m
        30 Requeued=True Preempted: m
        {"accumulatedPastExecutionTimeSeconds":20,"admission":{"clusterQueue":"q","podSetAssignments":[{"count":1,"name":"main"}]},"schedulingStats":{"evictions":[{"count":1,"reason":"Preempted","underlyingCause":""}]}}
    "#]],
    );
}

#[test]
fn an_eviction_closes_gates_and_removes_unhealthy_nodes() {
    let status: WorkloadStatus = serde_json::from_value(json!({
        "admission": {"clusterQueue": "q"},
        "conditions": [{"type": "BlockedOnPreemptionGates", "status": "True", "reason": "PreemptionGated"}],
        "preemptionGates": [{"name": "g", "position": "Open"}, {"name": "h", "position": "Closed"}],
        "unhealthyNodes": [{"name": "n"}],
    }))
    .expect("a status");
    let status = evict(status, "NodeFailures", 30);
    assert_eq!(status.unhealthy_nodes, []);
    let gates = json!(status.preemption_gates);
    let since = "1970-01-01T00:00:30Z";
    assert_eq!(
        gates,
        json!([
            {"name": "g", "position": "Closed", "lastTransitionTime": since},
            {"name": "h", "position": "Closed"},
        ])
    );
    let blocked = find(&status.conditions, "BlockedOnPreemptionGates").expect("a condition");
    assert_eq!((&*blocked.status, &*blocked.reason), ("False", "NodeFailures"));
}

#[test]
fn a_preemption_gate_blocks_until_quota_is_reserved() {
    let message = "Workload requires preemption, but it's gated";
    let status = gated(
        WorkloadStatus::default(),
        PendingCause { reason: "AdmissionGated", message, ..PendingCause::default() },
        at(10),
    );
    check(
        &status,
        expect![[r#"
            10 QuotaReserved=False AdmissionGated: Workload requires preemption, but it's gated
            10 Admitted=False NoReservation: The workload has no reservation
            10 BlockedOnPreemptionGates=True PreemptionGated: Workload requires preemption, but it's gated
        "#]],
    );
    let written = pending(
        status.clone(),
        PendingCause { reason: "WaitingForQuota", message: "m", ..PendingCause::default() },
        at(20),
    );
    let blocked = find(&written.conditions, "BlockedOnPreemptionGates").expect("a condition");
    assert_eq!((&*blocked.status, &*blocked.message), ("True", message));
    check(
        &reserve(status, &[], &[], 30),
        expect![[r#"
            30 QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue q
            30 Admitted=True Admitted: The workload is admitted
            30 BlockedOnPreemptionGates=False QuotaReserved: Previously: Workload requires preemption, but it's gated
            {"admission":{"clusterQueue":"q","podSetAssignments":[{"count":1,"name":"main"}]}}
        "#]],
    );
}

#[test]
fn a_cancelled_nomination_is_no_eviction() {
    let status = reserve(WorkloadStatus::default(), &["mk"], &["west"], 10);
    check(
        &nomination_cancelled(status, "west refused", at(20)),
        expect![[r#"
        20 QuotaReserved=False WaitingForQuota: west refused
        10 Admitted=False NoReservation: The workload has no reservation
        10 check mk=Pending: 
    "#]],
    );
}

#[test]
fn a_reservation_that_a_stopped_queue_drops_leaves_checks_as_they_are() {
    let mut status = reserve(WorkloadStatus::default(), &["nodes", "mk"], &["west"], 10);
    status.admission_checks[0].state = "Ready".to_owned();
    check(
        &reservation_dropped(status, "The queue is stopped", at(20)),
        expect![[r#"
        20 QuotaReserved=False WaitingForQuota: The queue is stopped
        10 Admitted=False NoReservation: The workload has no reservation
        10 check nodes=Ready: 
        10 check mk=Pending: 
    "#]],
    );
}

#[test]
fn the_time_before_a_deactivation_for_its_length_is_forgotten() {
    let mut status = running();
    status.accumulated_past_execution_time_seconds = Some(10);
    let of = |reason| deactivation_target(status.clone(), reason, "", at(20));
    let past = |reason| of(reason).accumulated_past_execution_time_seconds;
    assert_eq!(past(reasons::MAXIMUM_EXECUTION_TIME_EXCEEDED), None);
    assert_eq!(past(reasons::ADMISSION_CHECK), Some(10));
}

#[test]
fn a_deactivation_names_its_cause_and_can_be_reverted() {
    let status = deactivation_target(running(), "RequeuingLimitExceeded", "too often", at(20));
    let status = back_off(status, at(99).now, true);
    let status = deactivated(status, at(30));
    check(
        &status,
        expect![[r#"
        10 QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue q
        10 Admitted=True Admitted: The workload is admitted
        30 Evicted=True DeactivatedDueToRequeuingLimitExceeded: The workload is deactivated due to too often
        {"admission":{"clusterQueue":"q","podSetAssignments":[{"count":1,"name":"main"}]},"schedulingStats":{"evictions":[{"count":1,"reason":"Deactivated","underlyingCause":"RequeuingLimitExceeded"}]}}
    "#]],
    );
    let by_hand = deactivated(running(), at(30));
    let evicted = find(&by_hand.conditions, "Evicted").expect("a condition");
    assert_eq!(
        (&*evicted.reason, &*evicted.message),
        ("Deactivated", "The workload is deactivated")
    );
}

#[test]
fn the_maximum_execution_time_is_whole_again_after_a_reactivation() {
    let reason = "MaximumExecutionTimeExceeded";
    let status = deactivation_target(running(), reason, "too long", at(20));
    assert!(!was_deactivated(&status));
    let status = quota_released(deactivated(status, at(30)), at(40));
    let target = |status: &WorkloadStatus| find(&status.conditions, "DeactivationTarget").cloned();
    assert!(was_deactivated(&status));
    assert_eq!(target(&status).map(|one| one.reason), Some(reason.to_owned()));
    assert_eq!(status.accumulated_past_execution_time_seconds, Some(30));
    let status = reactivated(status);
    assert_eq!(target(&status), None);
    assert_eq!(status.accumulated_past_execution_time_seconds, None);
}

#[test]
fn a_requeue_backoff_never_gets_shorter() {
    let status = back_off(WorkloadStatus::default(), at(50).now, true);
    let status = back_off(status, at(40).now, false);
    let state = |status: &WorkloadStatus| json!(status.requeue_state);
    assert_eq!(state(&status), json!({"count": 1, "requeueAt": "1970-01-01T00:00:50Z"}));
    assert_eq!(backoff_ended(status.clone(), at(49).now), status, "it still runs");
    let status = backoff_ended(status, at(50).now);
    assert_eq!(state(&status), json!({"count": 1}));
    let status = requeued(status, reasons::BACKOFF_FINISHED, at(50));
    let one = find(&status.conditions, "Requeued").expect("a condition");
    assert_eq!((&*one.status, &*one.message), ("True", "The workload backoff was finished"));
}

#[test]
fn pods_ready_distinguishes_start_and_recovery() {
    let words = |status: &WorkloadStatus| {
        let one = find(&status.conditions, "PodsReady").expect("a condition");
        format!("{} {}", one.status, one.reason)
    };
    let mut status = running();
    for (ready, wanted) in [
        (false, "False WaitForStart"),
        (false, "False WaitForStart"),
        (true, "True Started"),
        (true, "True Started"),
        (false, "False WaitForRecovery"),
        (false, "False WaitForRecovery"),
        (true, "True Recovered"),
        (true, "True Recovered"),
        (false, "False WaitForRecovery"),
    ] {
        status = pods_ready(status, ready, at(20));
        assert_eq!(words(&status), wanted);
    }
    let released = quota_released(evict(status, "Preempted", 30), at(40));
    assert_eq!(words(&pods_ready(released, true, at(50))), "False WaitForStart");
}

#[test]
fn failing_pods_are_shown_once_per_cause_and_the_last_cause_stays_readable() {
    let words = |status: &WorkloadStatus| {
        let one = find(&status.conditions, "sluice.dev/PodsFailing");
        one.map(|one| format!("{} {} {}", one.status, one.reason, one.message))
    };
    let mut status = pods_not_failing(running(), at(20));
    assert_eq!(words(&status), None, "healthy pods need no condition");
    for (reason, message, wanted) in [
        ("ErrImagePull", "not found", "True ErrImagePull not found"),
        ("ImagePullBackOff", "again", "True ErrImagePull not found"),
        ("ErrImagePull", "not found, once more", "True ErrImagePull not found"),
        ("CreateContainerConfigError", "no secret", "True CreateContainerConfigError no secret"),
    ] {
        status = pods_failing(status, reason, message, at(20));
        assert_eq!(words(&status).as_deref(), Some(wanted));
    }
    for second in [30, 40] {
        status = pods_not_failing(status, at(second));
        let last = "False CreateContainerConfigError no secret";
        assert_eq!(words(&status).as_deref(), Some(last));
        assert_eq!(transition(&status, "sluice.dev/PodsFailing"), Some(30));
    }
    let again = pods_failing(status, "CreateContainerConfigError", "no secret", at(50));
    assert_eq!(transition(&again, "sluice.dev/PodsFailing"), Some(50));
}

/// The second of the last transition of a condition.
fn transition(status: &WorkloadStatus, condition: &str) -> Option<i64> {
    let at = find(&status.conditions, condition)?.last_transition_time.as_ref()?;
    Some(at.0.as_second())
}

#[test]
fn a_workload_is_finished_once() {
    let status = finished(running(), reasons::SUCCEEDED, "done", at(20));
    let again = finished(status.clone(), reasons::FAILED, "no", at(30));
    assert_eq!(again, status);
    assert_eq!(find(&status.conditions, "Finished").map(|one| &*one.message), Some("done"));
}

#[test]
fn removing_obsolete_checks_can_admit_a_workload() {
    let status = reserve(WorkloadStatus::default(), &["a"], &[], 10);
    let status = with_checks(status, &[], at(20));
    assert!(crds::meta::is_true(&status.conditions, "Admitted"));
    let status = with_checks(status, &["b".to_owned()], at(30));
    assert!(
        crds::meta::is_true(&status.conditions, "Admitted"),
        "an admitted Workload stays admitted"
    );
    assert_eq!(status.admission_checks.len(), 1);
}

#[test]
fn checks_are_named_in_order_with_the_messages_that_they_have() {
    let check = |name: &str, state: &str, message: &str| AdmissionCheckState {
        name: name.to_owned(),
        state: state.to_owned(),
        message: message.to_owned(),
        ..AdmissionCheckState::default()
    };
    let checks =
        vec![check("b", "Retry", "busy"), check("a", "Retry", ""), check("c", "Rejected", "")];
    let status = WorkloadStatus { admission_checks: checks, ..WorkloadStatus::default() };
    let named = |state: &str| checks_in_state(&status, state);
    let retry = r#"AdmissionChecks in Retry state: "a"; "b" (busy)"#;
    assert_eq!(named(RETRY).as_deref(), Some(retry));
    assert_eq!(named(REJECTED).as_deref(), Some(r#"AdmissionCheck in Rejected state: "c""#));
    assert_eq!(named("Ready"), None);
}

#[test]
fn an_eviction_counts_a_retry_and_keeps_the_count_of_a_rejected_check() {
    for (state, counted) in [("Retry", Some(2)), ("Rejected", Some(1)), ("Ready", None)] {
        let mut status = reserve(WorkloadStatus::default(), &["a"], &[], 10);
        let check = &mut status.admission_checks[0];
        (check.state, check.retry_count) = (state.to_owned(), Some(1));
        let reset = evict(status, reasons::ADMISSION_CHECK, 20).admission_checks;
        assert_eq!(reset[0].retry_count, counted, "{state}");
        assert_eq!(reset[0].state, "Pending");
    }
}

#[test]
fn admitted_is_unchanged_while_something_is_missing() {
    let waiting = reserve(WorkloadStatus::default(), &["a"], &[], 10);
    assert_eq!(admitted(waiting.clone(), at(20)), waiting);
    assert_eq!(admitted(WorkloadStatus::default(), at(20)), WorkloadStatus::default());
}

#[test]
fn only_owned_fields_are_applied() {
    let full: WorkloadStatus = serde_json::from_value(json!({
        "conditions": [
            {"type": "QuotaReserved", "status": "True"}, {"type": "Mine", "status": "True"},
            {"type": "OfAnotherManager", "status": "True"}, {"type": "PodsReady", "status": "True"},
        ],
        "reclaimablePods": [{"name": "main", "count": 1}],
        "requeueState": {},
        "resourceRequests": [{"name": "main"}],
        "admission": {"clusterQueue": "q"},
        "clusterName": "west",
    }))
    .expect("a status");
    let mut owned: Value = json!(owned_fields(full));
    let conditions = owned["conditions"].take();
    assert_eq!(
        owned,
        json!({"conditions": null, "admission": {"clusterQueue": "q"}, "clusterName": "west"})
    );
    let types: Vec<_> =
        conditions.as_array().expect("a list").iter().map(|one| one["type"].clone()).collect();
    assert_eq!(types, ["QuotaReserved", "PodsReady"]);
}

/// A transition by number.
fn step(status: WorkloadStatus, which: u8, second: i64) -> WorkloadStatus {
    match which {
        0 => pending(
            status,
            PendingCause { reason: "WaitingForQuota", message: "m", ..PendingCause::default() },
            at(second),
        ),
        1 => reserve(status, &["mk"], &["west"], second),
        2 => reserve(status, &[], &[], second),
        3 => admitted_on_cluster(status, "west", "mk", at(second)),
        4 => evict(status, "Preempted", second),
        5 => quota_released(status, at(second)),
        6 => nomination_cancelled(status, "m", at(second)),
        7 => with_check_retry(status, "mk", "m", at(second)),
        8 => pods_ready(status, true, at(second)),
        9 => deactivated(status, at(second)),
        _ => owned_fields(admitted(status, at(second))),
    }
}

proptest! {
    #[test]
    fn every_transition_is_idempotent(steps in prop::collection::vec(0..11_u8, 1..12)) {
        let mut status = WorkloadStatus::default();
        for (second, which) in (1..).zip(steps) {
            status = step(status, which, second);
            let again = step(status.clone(), which, second + 100);
            prop_assert_eq!(text_of(&again), text_of(&status), "step {}", which);
        }
    }

    #[test]
    fn the_api_accepts_every_status(steps in prop::collection::vec(0..11_u8, 1..12)) {
        let mut status = WorkloadStatus::default();
        for (second, which) in (1..).zip(steps) {
            status = step(status, which, second);
            let both = status.cluster_name.is_some() && !status.nominated_cluster_names.is_empty();
            prop_assert!(!both, "a nomination beside a chosen cluster");
            let reserved = crds::meta::is_true(&status.conditions, "QuotaReserved");
            prop_assert!(!reserved || status.admission.is_some());
            let admitted = crds::meta::is_true(&status.conditions, "Admitted");
            prop_assert!(!admitted || reserved, "admitted without quota");
            let read: WorkloadStatus = serde_json::from_value(json!(status)).expect("a status");
            prop_assert_eq!(read, status.clone());
        }
    }
}
