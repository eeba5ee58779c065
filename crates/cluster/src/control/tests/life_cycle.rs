//! The life of a Workload in one cluster: reasons, checks, deactivation, backoff.

use super::cluster::Cluster;
use super::core::Core;
use super::without_scheduler::reservation;
use super::*;

/// Quota that another client or an earlier write gave, with these checks.
fn reserved(checks: &Value) -> Value {
    let mut status = reservation();
    status["admissionChecks"] = checks.clone();
    json!({"status": status})
}

pub(super) fn checks(names: &[&str]) -> Value {
    let all: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    json!({"admissionChecksStrategy": {"admissionChecks": all}})
}

pub(super) fn check_states(cluster: &Cluster, name: &str) -> Vec<String> {
    let all = cluster.workloads[name]["status"]["admissionChecks"].as_array().cloned();
    let one = |one: Value| format!("{} {}", one["name"], one["state"]).replace('"', "");
    all.unwrap_or_default().into_iter().map(one).collect()
}

#[test]
fn a_reason_that_only_a_cycle_changes_is_written_without_a_further_input() {
    let mut cluster = Cluster::new();
    cluster.queue(&json!({"cohortName": "team"})).workload("a", 20, &json!({})).settle();
    cluster.wait(10).settle();
    assert!(cluster.condition("a", "QuotaReserved").contains("maximum capacity (8)"));
    let cohort = json!({
        "metadata": {"name": "team", "resourceVersion": "9"},
        "spec": {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
            {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "2"}]},
        ]}]},
    });
    cluster.wait(10).observe(ManagerInput::Cohort(Change::Apply(shared(cohort))));
    let step = cluster.control.decide(cluster.now);
    let pending = step.orders.iter().any(|order| order.ticket.purpose == Purpose::Pending);
    assert!(pending, "the new reason follows from the same input");
}

#[test]
fn work_that_is_left_over_wakes_at_once() {
    let mut cluster = Cluster::new();
    cluster.workload("a", 2, &json!({})).settle();
    let Cluster { control, now, .. } = &mut cluster;
    assert_ne!(control.core.complete(Decisions::default()).wake, Some(*now));
    let key = Key { namespace: Some("ns".into()), name: "a".into() };
    control.core.ctx.agenda.now(Reevaluation::Workload(key));
    assert_eq!(control.core.complete(Decisions::default()).wake, Some(*now));
}

#[test]
fn the_list_of_checks_follows_the_cluster_queue_also_with_quota() {
    let mut cluster = Cluster::new();
    cluster.check("one").check("two").queue(&checks(&["one"]));
    cluster.workload("a", 2, &reserved(&json!([]))).settle();
    assert_eq!(check_states(&cluster, "a"), ["one Pending"], "no state is not Ready");
    assert!(cluster.condition("a", "Admitted").starts_with("False UnsatisfiedAdmissionChecks"));

    cluster.queue(&checks(&["two"])).settle();
    assert_eq!(check_states(&cluster, "a"), ["two Pending"]);
    cluster.queue(&json!({})).settle();
    assert_eq!(check_states(&cluster, "a"), [""; 0]);
    assert!(cluster.condition("a", "Admitted").starts_with("True"), "nothing is missing");

    cluster.queue(&checks(&["one"])).settle();
    assert_eq!(check_states(&cluster, "a"), ["one Pending"]);
    assert!(cluster.condition("a", "Admitted").starts_with("True"), "it stays admitted");
}

#[test]
fn a_pending_workload_shows_the_checks_that_it_will_need() {
    let mut cluster = Cluster::new();
    cluster.check("one").queue(&checks(&["one"])).workload("a", 9, &json!({})).settle();
    cluster.wait(10).settle();
    assert_eq!(check_states(&cluster, "a"), ["one Pending"]);
    assert_eq!(
        cluster.condition("a", "Admitted"),
        "False NoReservation: The workload has no reservation"
    );
}

/// No cycle looks at the Workload behind the head of a strict queue.
#[test]
fn a_workload_behind_others_shows_the_checks_that_it_will_need() {
    let mut cluster = Cluster::new();
    let mut strict = checks(&["one"]);
    strict["queueingStrategy"] = json!("StrictFIFO");
    cluster.check("one").queue(&strict).workload("first", 9, &json!({})).wait(1);
    cluster.workload("second", 1, &json!({})).settle();
    cluster.wait(10).settle();
    assert_eq!(check_states(&cluster, "second"), ["one Pending"]);
    assert_eq!(cluster.condition("second", "QuotaReserved"), "none");
    let writes = cluster.take_writes();
    assert_eq!(writes.iter().filter(|one| *one == "pending second").count(), 1);
}

#[test]
fn a_retry_sets_the_time_of_the_requeue_and_names_its_check() {
    let mut cluster = Cluster::new();
    cluster.check("one").check("two").queue(&checks(&["one", "two"]));
    let retry = |name: &str, seconds: Value, at: &str| {
        json!({
            "name": name, "state": "Retry", "message": "busy", "requeueAfterSeconds": seconds,
            "lastTransitionTime": at,
        })
    };
    let states = json!([
        retry("one", json!(60), "1970-01-01T00:00:10Z"),
        retry("two", json!(5), "1970-01-01T00:00:20Z"),
    ]);
    cluster.wait(30).workload("a", 2, &reserved(&states)).settle();
    assert_eq!(
        cluster.condition("a", "Evicted"),
        "True AdmissionCheck: Evicted due to AdmissionChecks in Retry state: \"one\" (busy); \"two\" (busy)"
    );
    let state = &cluster.workloads["a"]["status"]["requeueState"];
    assert_eq!(state, &json!({"requeueAt": "1970-01-01T00:01:10Z"}), "the latest of both");
}

#[test]
fn a_retry_without_a_delay_is_requeued_at_once_and_counted_and_only_a_rejection_deactivates() {
    let state = |state: &str| {
        json!([{
            "name": "one", "state": state, "message": "", "lastTransitionTime": "1970-01-01T00:00:10Z",
        }])
    };
    for (name, active, retries) in
        [("Retry", Value::Null, json!(1)), ("Rejected", json!(false), Value::Null)]
    {
        let mut cluster = Cluster::new();
        cluster.check("one").queue(&checks(&["one"]));
        cluster.wait(30).workload("a", 2, &reserved(&state(name))).settle();
        let workload = &cluster.workloads["a"];
        assert_eq!(workload["spec"]["active"], active, "{name}");
        assert!(workload["status"]["requeueState"]["requeueAt"].is_null(), "no delay: {workload}");
        let check = &workload["status"]["admissionChecks"][0];
        assert_eq!(check["retryCount"], retries, "{workload}");
        let waits = !cluster.condition("a", "QuotaReserved").starts_with("True");
        assert!(name == "Rejected" || !waits, "it has quota again without a wait: {workload}");
    }
}

/// The release sets the checks back to Pending, and a Workload without quota is never evicted.
#[test]
fn the_delay_of_a_retry_counts_beside_another_eviction_and_without_quota() {
    let states = json!([{
        "name": "one", "state": "Retry", "message": "busy", "requeueAfterSeconds": 600,
        "lastTransitionTime": "1970-01-01T00:00:10Z",
    }]);
    let mut preempted = reserved(&states);
    let evicted =
        json!({"type": "Evicted", "status": "True", "reason": "Preempted", "message": ""});
    preempted["status"]["conditions"].as_array_mut().expect("conditions").push(evicted);
    let without_quota = json!({"status": {"admissionChecks": states}});
    for workload in [preempted, without_quota] {
        let mut cluster = Cluster::new();
        cluster.check("one").queue(&checks(&["one"]));
        cluster.wait(30).workload("a", 2, &workload).settle();
        let state = cluster.workloads["a"]["status"]["requeueState"].clone();
        assert_eq!(state, json!({"requeueAt": "1970-01-01T00:10:10Z"}), "{workload}");
        let longer = json!({"status": {"requeueState": {"requeueAt": "1970-01-01T01:00:00Z"}}});
        cluster.workload("a", 2, &longer).settle();
        let state = &cluster.workloads["a"]["status"]["requeueState"];
        assert_eq!(*state, longer["status"]["requeueState"], "a later time stays");
    }
}

#[test]
fn a_rejected_check_marks_reports_and_deactivates() {
    let mut cluster = Cluster::new();
    cluster.check("one").queue(&checks(&["one"]));
    let states = json!([{"name": "one", "state": "Rejected", "message": "no"}]);
    cluster.workload("a", 2, &reserved(&states)).settle();
    assert_eq!(cluster.take_writes(), ["deactivation-target a", "deactivate a", "evict a"]);
    let events = [
        "a kueue-workload-controller AdmissionCheckRejected: Deactivated due to AdmissionCheck in Rejected state: \"one\" (no)",
        "a kueue-workload-controller EvictedDueToDeactivatedDueToAdmissionCheck: The workload is deactivated due to AdmissionCheck in Rejected state: \"one\" (no)",
    ];
    assert_eq!(cluster.take_events(), events);
}

#[test]
fn a_check_that_is_rejected_before_the_reservation_only_keeps_the_workload_pending() {
    let mut cluster = Cluster::new();
    cluster.check("one").queue(&checks(&["one"]));
    let states = |state: &str| {
        json!({"status": {"admissionChecks": [{
            "name": "one", "state": state, "message": "no",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }]}})
    };
    cluster.workload("a", 2, &states("Rejected")).settle();
    cluster.wait(60).settle();
    assert_ne!(cluster.workloads["a"]["spec"]["active"], false);
    let quota = cluster.condition("a", "QuotaReserved");
    assert!(!quota.starts_with("True"), "{quota}");
    assert_eq!(cluster.condition("a", "Evicted"), "none");
    cluster.workload("a", 2, &states("Pending")).settle();
    let quota = cluster.condition("a", "QuotaReserved");
    assert!(quota.starts_with("True"), "{quota}");
}

#[test]
fn what_another_field_manager_has_set_is_removed_as_well() {
    let mut cluster = Cluster::new();
    let target = json!([{
        "type": "DeactivationTarget", "status": "True", "reason": "AdmissionCheck", "message": "no",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }]);
    let state = json!({"requeueState": {"count": 2, "requeueAt": "1970-01-01T01:00:00Z"}});
    cluster.foreign_fields.insert("a".to_owned(), state.clone());
    let mut status = state;
    status["conditions"] = target;
    cluster.workload("a", 2, &json!({"spec": {"active": false}, "status": status})).settle();
    assert_eq!(cluster.workloads["a"]["status"].get("requeueState"), None);
    assert_eq!(cluster.take_writes(), ["evict a", "pending a"]);

    let ended = json!({"requeueState": {"count": 2, "requeueAt": "1970-01-01T00:00:00Z"}});
    cluster.foreign_fields.insert("b".to_owned(), ended.clone());
    let mut status = ended;
    status["conditions"] = json!([{
        "type": "Requeued", "status": "False", "reason": "AdmissionCheck", "message": "",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }]);
    cluster.wait(5).workload("b", 99, &json!({"status": status})).settle();
    assert_eq!(cluster.workloads["b"]["status"]["requeueState"], json!({"count": 2}));
    assert!(cluster.condition("b", "Requeued").starts_with("True BackoffFinished"));
}

#[test]
fn a_deactivated_pending_workload_says_so_and_has_no_backoff() {
    let mut cluster = Cluster::new();
    let backoff = json!({
        "spec": {"active": false},
        "status": {"requeueState": {"count": 2, "requeueAt": "1970-01-01T01:00:00Z"}},
    });
    cluster.workload("a", 2, &backoff).settle();
    assert_eq!(
        cluster.condition("a", "QuotaReserved"),
        "False Deactivated: The workload is deactivated"
    );
    assert!(cluster.condition("a", "Admitted").starts_with("False NoReservation"));
    assert_eq!(cluster.workloads["a"]["status"].get("requeueState"), None);
    assert_eq!(cluster.condition("a", "Evicted"), "True Deactivated: The workload is deactivated");
    assert_eq!(cluster.condition("a", "Requeued"), "none", "it was not taken from its queue");
    let evictions = &cluster.workloads["a"]["status"]["schedulingStats"]["evictions"];
    assert_eq!(evictions[0]["count"], 1);
    assert_eq!(cluster.take_events(), [""; 0]);
    cluster.workload("a", 2, &json!({"spec": {"active": true}})).settle();
    assert!(cluster.condition("a", "Evicted").starts_with("False QuotaReserved"));
}

#[test]
fn a_workload_that_exceeded_its_time_has_all_of_it_after_a_reactivation() {
    let mut cluster = Cluster::new();
    let evicted = json!({
        "spec": {"active": false, "maximumExecutionTimeSeconds": 60},
        "status": {
            "accumulatedPastExecutionTimeSeconds": 60,
            "conditions": [
                {"type": "DeactivationTarget", "status": "True", "reason": "MaximumExecutionTimeExceeded", "message": ""},
                {"type": "Evicted", "status": "True", "reason": "DeactivatedDueToMaximumExecutionTimeExceeded", "message": ""},
                {"type": "Requeued", "status": "False", "reason": "DeactivatedDueToMaximumExecutionTimeExceeded", "message": ""},
            ],
        },
    });
    cluster.workload("a", 2, &evicted).settle();
    assert!(cluster.condition("a", "DeactivationTarget").starts_with("True"));
    cluster.take_writes();
    cluster.workload("a", 2, &json!({"spec": {"active": true}})).settle();
    assert_eq!(cluster.take_writes(), ["requeue a", "reserve a"]);
    assert_eq!(cluster.condition("a", "DeactivationTarget"), "none");
    assert!(cluster.condition("a", "Admitted").starts_with("True"));
    let status = &cluster.workloads["a"]["status"];
    assert_eq!(status.get("accumulatedPastExecutionTimeSeconds"), None);
}

#[test]
fn the_end_of_a_backoff_is_shown_whatever_else_holds() {
    let mut cluster = Cluster::new();
    let requeued = |status: &str| json!([{"type": "Requeued", "status": status, "reason": "PodsReadyTimeout", "message": ""}]);
    for (name, conditions) in
        [("none", json!([])), ("true", requeued("True")), ("false", requeued("False"))]
    {
        let state = json!({"count": 2, "requeueAt": "1970-01-01T00:01:00Z"});
        // Nothing fits, so no reservation ends the wait.
        let status = json!({"status": {"requeueState": state, "conditions": conditions}});
        cluster.workload(name, 9, &status).settle();
    }
    cluster.wait(60).settle();
    for name in ["none", "true", "false"] {
        let state = &cluster.workloads[name]["status"]["requeueState"];
        assert_eq!(state, &json!({"count": 2}), "{name}");
    }
    assert!(cluster.condition("false", "Requeued").starts_with("True BackoffFinished"));
}

#[test]
fn admission_gates_are_reported_when_they_come_and_when_they_go() {
    let mut cluster = Cluster::new();
    let gates = |gates: &str| json!({"metadata": {"annotations": {"kueue.x-k8s.io/admission-gated-by": gates}}});
    cluster.workload("a", 2, &gates("a.b/c,a.b/d")).settle();
    assert_eq!(
        cluster.condition("a", "QuotaReserved"),
        "False AdmissionGated: Admission is gated by: a.b/c,a.b/d"
    );
    let gated =
        "a kueue-workload-controller AdmissionGated: Workload admission is gated by: a.b/c,a.b/d";
    assert_eq!(cluster.take_events(), [gated]);
    cluster.wait(10).workload("a", 2, &gates("a.b/c")).settle();
    assert_eq!(
        cluster.condition("a", "QuotaReserved"),
        "False AdmissionGated: Admission is gated by: a.b/c"
    );
    assert_eq!(cluster.take_events(), [""; 0]);
    cluster.workload("a", 2, &gates("")).settle();
    let events = cluster.take_events();
    let cleared = "a kueue-workload-controller AdmissionGateCleared: Admission gate cleared, workload is now admissible";
    let reserved = "a kueue-admission QuotaReserved: Quota reserved in ClusterQueue cq, wait time since queued was 10s";
    let admitted = "a kueue-admission Admitted: Admitted by ClusterQueue cq, wait time since reservation was 0s";
    assert_eq!(events, [cleared, reserved, admitted]);
}

#[test]
fn a_gate_that_comes_after_the_reservation_ends_it() {
    let mut cluster = Cluster::new();
    let gates = |gates: &str| json!({"metadata": {"annotations": {"kueue.x-k8s.io/admission-gated-by": gates}}});
    cluster.check("one").queue(&checks(&["one"]));
    cluster.workload("a", 2, &json!({})).settle();
    assert!(cluster.condition("a", "QuotaReserved").starts_with("True"));
    cluster.take_events();
    // In the write that would admit it.
    let mut ready = gates("a.b/c");
    ready["status"] = json!({"admissionChecks": [{
        "name": "one", "state": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]});
    cluster.workload("a", 2, &ready).settle();
    let gated = "False AdmissionGated: Admission is gated by: a.b/c";
    assert_eq!(cluster.condition("a", "QuotaReserved"), gated);
    assert!(!cluster.condition("a", "Admitted").starts_with("True"));
    assert_eq!(cluster.workloads["a"]["status"].get("admission"), None);
    let event = "a kueue-workload-controller AdmissionGated: Workload admission is gated by: a.b/c";
    assert_eq!(cluster.take_events(), [event]);
    cluster.wait(10).workload("a", 2, &gates("")).settle();
    assert!(cluster.condition("a", "Admitted").starts_with("True"));
    // An admitted one runs on.
    cluster.workload("a", 2, &gates("a.b/c")).settle();
    assert!(cluster.condition("a", "Admitted").starts_with("True"));
}

#[test]
fn a_gate_that_comes_with_the_reservation_withdraws_it() {
    let mut cluster = Cluster::new();
    let gates =
        json!({"metadata": {"annotations": {"kueue.x-k8s.io/admission-gated-by": "a.b/c"}}});
    // The first decision reserves, and its write is refused because the object has changed.
    cluster.workload("a", 2, &json!({}));
    let step = cluster.control.decide(cluster.now);
    let reserves = |order: &&Order| order.ticket.purpose == Purpose::Reserve;
    let order = step.orders.iter().find(reserves).expect("the reservation is written");
    let ticket = order.ticket.clone();
    cluster.workload("a", 2, &gates);
    cluster.control.answered(&ticket, WriteOutcome::Stale, cluster.now);
    cluster.settle();
    let gated = "False AdmissionGated: Admission is gated by: a.b/c";
    assert_eq!(cluster.condition("a", "QuotaReserved"), gated);
    assert_eq!(cluster.take_writes(), ["pending a"]);
}

#[test]
fn a_workload_whose_gates_are_cleared_says_so_at_once() {
    let mut cluster = Cluster::new();
    let gates = |gates: &str| json!({"metadata": {"annotations": {"kueue.x-k8s.io/admission-gated-by": gates}}});
    cluster.workload("full", 8, &json!({})).settle();
    cluster.wait(1).workload("first", 8, &json!({})).settle();
    cluster.wait(1).workload("a", 8, &gates("a.b/c")).settle();
    assert!(cluster.condition("a", "QuotaReserved").starts_with("False AdmissionGated"));
    cluster.take_events();
    cluster.wait(1).workload("a", 8, &gates("")).settle();
    let cleared =
        "False PendingEvaluation: AdmissionGatedBy cleared, waiting for quota reservation";
    assert_eq!(cluster.condition("a", "QuotaReserved"), cleared);
    let event = "a kueue-workload-controller AdmissionGateCleared: Admission gate cleared, workload is now admissible";
    assert!(cluster.take_events().iter().any(|one| one == event));
}

#[test]
fn flavors_that_do_not_simply_fit_are_reported_with_the_reservation() {
    let mut cluster = Cluster::new();
    let flavor = |name: &str, quota: &str| json!({"name": name, "resources": [{"name": "cpu", "nominalQuota": quota}]});
    let flavors = [flavor("default", "1"), flavor("other", "8")];
    let groups = json!([{"coveredResources": ["cpu"], "flavors": flavors}]);
    let other = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "spec": {},
        "metadata": {"name": "other", "resourceVersion": "31"},
    });
    cluster.observe(ManagerInput::ResourceFlavor(Change::Apply(shared(other))));
    cluster.queue(&json!({"resourceGroups": groups})).workload("a", 2, &json!({})).settle();
    let reserved = "a kueue-admission QuotaReserved: Quota reserved in ClusterQueue cq, wait time since queued was 0s; \
                    Flavors considered: main: default(NoFit;insufficient quota for cpu in flavor default, previously \
                    considered podsets requests (0) + current podset request (2) > maximum capacity (1))";
    assert_eq!(cluster.take_events()[0], reserved);
}

#[test]
fn a_preemption_is_reported_on_both_workloads_with_their_paths() {
    let mut cluster = Cluster::new();
    let preempts = json!({
        "cohortName": "team", "preemption": {"withinClusterQueue": "LowerPriority"},
    });
    cluster.queue(&preempts).workload("low", 8, &json!({"spec": {"priority": -5}})).settle();
    cluster.take_events();
    cluster.workload("high", 8, &json!({"spec": {"priority": 7}})).settle();
    cluster.wait(5).settle();
    let events = cluster.take_events();
    let why = "Preempted to accommodate a workload (UID: uid-high, JobUID: UNKNOWN) due to prioritization in the \
               ClusterQueue; preemptor path: /team/cq; preemptee path: /team/cq";
    let priorities = "preemptor effective priority: 7 (base: 7, boost: 0); preemptee effective priority: -5 (base: -5, boost: 0)";
    assert_eq!(events[0], format!("low kueue-admission EvictedDueToPreempted: {why}"));
    assert_eq!(events[1], format!("low kueue-admission Preempted: {why}; {priorities}"));
    assert_eq!(
        events[2],
        format!(
            "high kueue-admission PreemptedWorkload: Preempted workload ns/low (UID: uid-low) in ClusterQueue cq; {priorities}"
        )
    );
    assert!(
        events[3].starts_with("high kueue-admission WaitingForPreemptedWorkloads: "),
        "{events:?}"
    );
}

/// They become one Event with a count, as upstream's recorder makes it.
#[test]
fn all_victims_of_a_decision_are_reported_about_one_version_of_the_preemptor() {
    let mut cluster = Cluster::new();
    cluster.queue(&json!({"preemption": {"withinClusterQueue": "LowerPriority"}}));
    for name in ["a", "b", "c", "d"] {
        cluster.workload(name, 2, &json!({"spec": {"priority": -5}}));
    }
    cluster.settle().workload("high", 8, &json!({"spec": {"priority": 7}})).settle();
    let about_high = cluster.events.iter().filter(|one| one.reason == "PreemptedWorkload");
    let versions: Vec<&str> = about_high.map(|one| &*one.regarding.version).collect();
    assert!(versions.len() == 4 && !versions[0].is_empty(), "{versions:?}");
    assert!(versions.iter().all(|one| *one == versions[0]), "{versions:?}");
}

#[test]
fn a_closed_preemption_gate_is_the_reason_to_be_pending() {
    let gates = Gates::parse("MultiKueueOrchestratedPreemption=true").expect("a gate");
    let settings = ManagerSettings::new(&Configuration::default(), &gates, &kinds(), false);
    let mut cluster = Cluster::with(settings);
    let preempts = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    cluster.queue(&preempts).workload("low", 8, &json!({"spec": {"priority": -5}})).settle();
    let gated = json!({"spec": {"priority": 7, "preemptionGates": [{"name": "a.b/c"}]}});
    cluster.workload("high", 8, &gated).settle();
    cluster.wait(10).settle();
    assert_eq!(
        cluster.condition("high", "QuotaReserved"),
        "False AdmissionGated: Workload requires preemption, but it's gated"
    );
    assert!(cluster.condition("high", "BlockedOnPreemptionGates").starts_with("True"));
}

#[test]
fn pods_ready_is_written_beside_an_admission_of_another_client() {
    let mut settings = settings();
    settings.core.pods_ready = Some(PodsReadyPolicy::from(&config::WaitForPodsReady::default()));
    let mut cluster = Cluster::with(settings);
    cluster.observe(ManagerInput::Job(batch_job(), jobs(vec![json!(job())])));
    let mut theirs = reserved(&json!([]));
    theirs["metadata"] = json!({"ownerReferences": workload()["metadata"]["ownerReferences"]});
    let admitted =
        json!({"type": "Admitted", "status": "True", "reason": "Admitted", "message": ""});
    theirs["status"]["conditions"].as_array_mut().expect("a list").push(admitted);
    cluster.workload("a", 2, &theirs).settle();
    assert!(cluster.condition("a", "PodsReady").starts_with("False WaitForStart"));
}

#[test]
fn resources_that_a_cluster_queue_covers_no_longer_count_no_longer() {
    let mut settings = settings();
    settings.core.scheduler.index.ignore_uncovered_resources = true;
    let mut cluster = Cluster::with(settings);
    cluster.workload("a", 9, &json!({})).settle();
    assert_eq!(cluster.condition("a", "Admitted"), "none", "more cpus than the quota has");
    let other = json!({"resourceGroups": [{
        "coveredResources": ["memory"],
        "flavors": [{"name": "default", "resources": [{"name": "memory", "nominalQuota": "1"}]}],
    }]});
    cluster.queue(&other).settle();
    assert!(cluster.condition("a", "Admitted").starts_with("True"), "cpus are not covered");
}

pub(super) fn with_gates(gates: &str) -> Cluster {
    Cluster::with(settings_with(gates))
}

/// The settings of a manager with these gates.
pub(super) fn settings_with(gates: &str) -> ManagerSettings {
    let gates = Gates::parse(gates).expect("gates");
    ManagerSettings::new(&Configuration::default(), &gates, &kinds(), false)
}

#[test]
fn without_observability_reasons_are_those_of_before() {
    let mut cluster = with_gates("UnadmittedWorkloadsObservability=false");
    let gates =
        json!({"metadata": {"annotations": {"kueue.x-k8s.io/admission-gated-by": "a.b/c"}}});
    cluster.check("one").queue(&checks(&["one"]));
    cluster.workload("waits", 2, &json!({})).workload("large", 9, &json!({}));
    cluster.workload("gated", 2, &gates).settle().wait(10).settle();
    assert!(cluster.condition("large", "QuotaReserved").starts_with("False Pending: couldn't"));
    assert!(cluster.condition("gated", "QuotaReserved").starts_with("False AdmissionGated: "));
    assert!(cluster.condition("waits", "Admitted").starts_with("False UnsatisfiedChecks: "));
    let warning = cluster.take_events().into_iter().find(|event| event.starts_with("large "));
    assert!(warning.is_some_and(|event| event.contains(" Pending: couldn't assign")));
    cluster.take_writes();
    cluster.wait(10).settle();
    assert_eq!(cluster.take_writes(), [""; 0], "nothing is written again");
}

#[test]
fn without_observability_only_queues_make_a_workload_inadmissible() {
    let mut cluster = with_gates("UnadmittedWorkloadsObservability=false");
    let nowhere = json!({"spec": {"queueName": "absent"}});
    cluster.workload("lost", 2, &nowhere).settle().wait(10).settle();
    assert!(cluster.condition("lost", "QuotaReserved").starts_with("False Inadmissible: "));
    cluster.queue(&json!({"namespaceSelector": {"matchLabels": {"team": "other"}}}));
    cluster.workload("foreign", 2, &json!({})).settle().wait(10).settle();
    let refused = "False Pending: workload namespace doesn't match ClusterQueue selector";
    assert_eq!(cluster.condition("foreign", "QuotaReserved"), refused);
}

#[test]
fn with_explicit_status_a_new_workload_shows_that_no_cycle_has_seen_it() {
    for (gate, first) in [("true", "pending a"), ("false", "reserve a")] {
        let mut cluster = with_gates(&format!("UnadmittedWorkloadsExplicitStatus={gate}"));
        cluster.workload("a", 2, &json!({})).settle();
        let writes = cluster.take_writes();
        assert_eq!(writes.first().map(String::as_str), Some(first));
        assert_eq!(writes.last().map(String::as_str), Some("reserve a"));
    }
}

#[test]
fn a_workload_without_its_owner_is_finished_and_let_go() {
    let orphan = json!({"metadata": {
        "labels": {"kueue.x-k8s.io/job-uid": "gone"}, "finalizers": ["kueue.x-k8s.io/resource-in-use"],
    }});
    let mut cluster = Cluster::new();
    cluster.workload("a", 2, &orphan).settle();
    assert_eq!(
        cluster.condition("a", "Finished"),
        "True OwnerNotFound: The workload's owner no longer exists"
    );
    assert_eq!(cluster.workloads["a"]["metadata"]["finalizers"], json!([]));

    let mut cluster = with_gates("FinishOrphanedWorkloads=false");
    cluster.workload("a", 2, &orphan).settle();
    assert!(cluster.condition("a", "Admitted").starts_with("True"));
    // Its namespace could not end otherwise.
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    cluster.workload("a", 2, &deleted).settle();
    assert_eq!(cluster.workloads["a"]["metadata"]["finalizers"], json!([]));
}

#[test]
fn a_message_with_old_numbers_is_refreshed_within_a_minute() {
    let mut cluster = Cluster::new();
    cluster.workload("a", 4, &json!({})).settle();
    cluster.workload("b", 2, &json!({})).settle();
    cluster.wait(1).workload("waits", 5, &json!({})).settle().wait(10).settle();
    let missing = |cluster: &Cluster, cpus: usize| {
        cluster.condition("waits", "QuotaReserved").ends_with(&format!("{cpus} more needed"))
    };
    assert!(missing(&cluster, 3));
    let key = Key { namespace: Some("ns".into()), name: "b".into() };
    cluster.observe(ManagerInput::Workload(Change::Delete(key))).settle();
    cluster.wait(10).settle();
    assert!(missing(&cluster, 3), "the refusal was foreseen");
    assert!(cluster.control.decide(cluster.now).wake.is_some(), "the refresh needs no input");
    cluster.wait(50).settle();
    assert!(missing(&cluster, 1), "{}", cluster.condition("waits", "QuotaReserved"));
    cluster.wait(60).take_writes();
    cluster.settle();
    assert_eq!(cluster.take_writes(), [""; 0], "nothing is old");
}

/// Conditions of the preempted Workload of an object after the release of its quota.
fn requeued(cluster: &mut Cluster, kind: &str) -> (String, String) {
    let owner = json!([{
        "apiVersion": "v1", "kind": kind, "name": "p", "uid": "p", "controller": true,
    }]);
    let mut fields = reserved(&json!([]));
    fields["metadata"] = json!({"ownerReferences": owner});
    fields["status"]["conditions"] = json!([
        {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""},
        {"type": "Evicted", "status": "True", "reason": "Preempted", "message": "why"},
    ]);
    cluster.workload("a", 2, &fields);
    let key = Key { namespace: Some("ns".into()), name: "a".into() };
    let Core { workloads, ctx, .. } = &mut cluster.control.core;
    workloads.propose(&key, workloads::Transition::Release, ctx);
    cluster.settle();
    (cluster.condition("a", "Requeued"), cluster.condition("a", "Admitted"))
}

#[test]
fn the_evicted_workload_of_a_single_pod_that_is_gone_is_not_requeued_under_its_gate() {
    let (condition, admitted) = requeued(&mut with_gates(""), "Pod");
    assert_eq!(condition, "False Preempted: why");
    assert!(admitted.starts_with("False"), "nothing would run: {admitted}");
    let mut without = with_gates("SkipReassignmentForPodOwnedWorkloads=false");
    let mut file = Configuration::default();
    file.integrations.frameworks = vec!["pod".to_owned()];
    let kinds = JobKinds::configured(&file, &Gates::default(), &Kinds::default());
    let mut waits = Cluster::with(ManagerSettings::new(&file, &Gates::default(), &kinds, false));
    let pod = json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "p", "resourceVersion": "1"},
        "spec": {"containers": [], "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]},
        "status": {"phase": "Pending"},
    });
    let kind = ::jobs::pods::kind();
    let objects = vec![Arc::new(kind.decode(pod).expect("a pod"))];
    waits.observe(ManagerInput::Job(kind.clone(), Change::Reset { objects, removed: vec![] }));
    for (cluster, kind) in
        [(&mut without, "Pod"), (&mut waits, "Pod"), (&mut with_gates(""), "Other")]
    {
        let (condition, admitted) = requeued(cluster, kind);
        assert!(condition.starts_with("True") && admitted.starts_with("True"), "{condition}");
    }
}

#[test]
fn a_dump_has_the_workloads_of_each_queue_and_every_usage() {
    let mut cluster = Cluster::new();
    cluster.workload("runs", 5, &json!({})).settle();
    cluster.wait(1).workload("waits", 9, &json!({})).settle();
    let dump = cluster.control.dump();
    let queue = "queue cq: active [], inadmissible [ns/waits], with quota [ns/runs]\n";
    assert!(dump.contains(queue) && dump.contains("queue cq cpu/default: 5000 of 8000"), "{dump}");
}
