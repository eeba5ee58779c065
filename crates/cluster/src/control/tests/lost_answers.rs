//! Decisions about a Workload after a write without an answer, or before a write that becomes impossible.

use super::{
    cluster::Cluster,
    workloads::{EvictionRequest, TrackedWorkload, Transition},
    *,
};

fn key() -> Key {
    Key { namespace: Some("ns".into()), name: "w".into() }
}

fn propose(cluster: &mut Cluster, transition: Transition) {
    let core = &mut cluster.control.core;
    core.workloads.propose(&key(), transition, &mut core.ctx);
}

fn evict(cluster: &mut Cluster, message: &str) {
    let core = &mut cluster.control.core;
    let id = core.workloads.get(&key()).and_then(TrackedWorkload::id).expect("its number");
    core.workloads.evict(id, EvictionRequest::new("Preempted", message), &mut core.ctx);
}

/// Decides once. The orders about the Workload, which stay without an answer.
fn orders(cluster: &mut Cluster) -> Vec<Order> {
    let step = cluster.control.decide(cluster.now);
    assert!(step.wake.is_none_or(|wake| wake > cluster.now), "the manager comes to rest");
    let of_workload = |order: &Order| order.ticket.target.key == key();
    step.orders.into_iter().filter(of_workload).collect()
}

fn purposes(orders: &[Order]) -> Vec<&'static str> {
    orders.iter().map(|order| order.ticket.purpose.name()).collect()
}

/// The answer to these orders is lost.
fn lose(cluster: &mut Cluster, orders: &[Order]) {
    for order in orders {
        let lost = WriteOutcome::Unknown("no answer within 10s".to_owned());
        cluster.control.answered(&order.ticket, lost, cluster.now);
    }
}

fn status_of(order: &Order) -> Value {
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    body["status"].clone()
}

#[test]
fn a_release_that_the_watch_shows_does_not_release_the_next_reservation() {
    let mut cluster = Cluster::new();
    cluster.workload("w", 1, &json!({})).settle();
    evict(&mut cluster, "first");
    cluster.settle();
    propose(&mut cluster, Transition::Release);
    let release = orders(&mut cluster);
    assert_eq!(purposes(&release), ["release"]);
    lose(&mut cluster, &release);
    cluster.workloads.get_mut("w").expect("it is stored")["status"] = status_of(&release[0]);
    cluster.workload("w", 1, &json!({})).wait(60).settle();
    assert!(cluster.condition("w", "Admitted").starts_with("True"));

    evict(&mut cluster, "second");
    cluster.settle();
    assert!(cluster.condition("w", "Evicted").starts_with("True"));
    assert!(cluster.condition("w", "QuotaReserved").starts_with("True"), "its pods still run");
}

/// The Workload has quota in the engine, and its write has no answer.
fn reserving() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.workload("w", 1, &json!({}));
    let reserve = orders(&mut cluster);
    assert_eq!(purposes(&reserve), ["reserve"]);
    lose(&mut cluster, &reserve);
    cluster.wait(60);
    cluster
}

#[test]
fn a_workload_that_is_over_is_finished_although_its_reservation_is_not_written() {
    let mut cluster = reserving();
    let (reason, message) = ("Succeeded".to_owned(), "done".to_owned());
    propose(&mut cluster, Transition::Finish { reason, message });
    assert_eq!(purposes(&orders(&mut cluster)), ["finish"]);
}

#[test]
fn a_workload_on_hold_gets_no_quota() {
    let mut cluster = reserving();
    propose(&mut cluster, Transition::Hold("on hold".to_owned()));
    let hold = orders(&mut cluster);
    assert_eq!(purposes(&hold), ["hold"]);
    cluster.workloads.get_mut("w").expect("it is stored")["status"] = status_of(&hold[0]);
    lose(&mut cluster, &hold);
    cluster.workload("w", 1, &json!({})).wait(60).settle();
    assert_eq!(cluster.condition("w", "QuotaReserved"), "False OnHold: on hold");
    assert_eq!(cluster.take_writes(), [""; 0]);
}

#[test]
fn an_eviction_ends_with_the_reservation_that_it_was_decided_for() {
    let mut cluster = reserving();
    evict(&mut cluster, "for another one");
    // A changed spec voids the reservation.
    cluster.workload("w", 1, &json!({"spec": {"priority": 7}})).settle();
    assert!(cluster.condition("w", "Admitted").starts_with("True"));
    assert_eq!(cluster.condition("w", "Evicted"), "none");
}

#[test]
fn a_rejected_check_deactivates_whatever_another_check_wants() {
    let mut cluster = Cluster::new();
    let checks = json!([{"name": "room"}, {"name": "budget"}]);
    cluster.check("room").check("budget");
    cluster.queue(&json!({"admissionChecksStrategy": {"admissionChecks": checks}}));
    cluster.workload("w", 1, &json!({})).settle();
    let state = |name: &str, state: &str| json!({"name": name, "state": state, "message": "no", "lastTransitionTime": "1970-01-01T00:00:00Z"});
    let states = json!([state("budget", "Rejected"), state("room", "Retry")]);
    cluster.workload("w", 1, &json!({"status": {"admissionChecks": states}})).settle();
    assert!(cluster.condition("w", "Evicted").starts_with("True DeactivatedDueToAdmissionCheck"));
    assert_eq!(cluster.condition("w", "DeactivationTarget"), "none");
    propose(&mut cluster, Transition::Release);
    cluster.settle();
    cluster.workload("w", 1, &json!({"spec": {"active": true}})).settle();
    assert_eq!(cluster.workloads["w"]["spec"]["active"], true);
    assert!(cluster.condition("w", "QuotaReserved").starts_with("True"));
}

/// The only check of a Workload, in this state.
fn checked(state: &str) -> Value {
    let one = json!({"name": "one", "state": state, "message": "no", "lastTransitionTime": "1970-01-01T00:00:00Z"});
    json!({"status": {"admissionChecks": [one]}})
}

/// A Workload with a check that was evicted after its admission.
fn evicted_with_a_check() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.check("one");
    cluster.queue(&json!({"admissionChecksStrategy": {"admissionChecks": [{"name": "one"}]}}));
    cluster.workload("w", 1, &json!({})).settle();
    cluster.workload("w", 1, &checked("Ready")).settle();
    evict(&mut cluster, "preempted");
    cluster.settle();
    cluster
}

/// The release sets the check back to Pending (kueue#10807).
#[test]
fn a_check_that_is_rejected_during_an_eviction_deactivates() {
    for released_first in [false, true] {
        let mut cluster = evicted_with_a_check();
        cluster.take_writes();
        cluster.take_events();
        cluster.workload("w", 1, &checked("Rejected"));
        if released_first {
            propose(&mut cluster, Transition::Release);
        }
        cluster.settle();
        propose(&mut cluster, Transition::Release);
        cluster.settle();
        let mut writes = vec!["deactivation-target w", "deactivate w", "evict w"];
        // Otherwise one write has both.
        writes.extend((!released_first).then_some("release w"));
        assert_eq!(cluster.take_writes(), writes, "{released_first}");
        let rejected = "w kueue-workload-controller AdmissionCheckRejected: Deactivated due to AdmissionCheck in Rejected state: \"one\" (no)";
        let events = cluster.take_events();
        assert_eq!(events.iter().filter(|one| *one == rejected).count(), 1, "{events:?}");
        assert_eq!(cluster.workloads["w"]["spec"]["active"], false);
        assert_eq!(
            cluster.condition("w", "QuotaReserved"),
            "False Deactivated: The workload is deactivated"
        );
        assert_eq!(cluster.condition("w", "DeactivationTarget"), "none");
        cluster.wait(60).settle();
        assert_eq!(cluster.take_writes(), [""; 0], "it does not return");
        cluster.workload("w", 1, &json!({"spec": {"active": true}})).settle();
        assert!(cluster.condition("w", "QuotaReserved").starts_with("True"));
    }
}

/// As one that counts during the eviction that a deactivation began.
#[test]
fn an_activation_counts_while_the_pods_of_an_evicted_and_rejected_workload_stop() {
    let mut cluster = evicted_with_a_check();
    cluster.workload("w", 1, &checked("Rejected")).settle();
    assert_eq!(
        cluster.condition("w", "Evicted"),
        "True DeactivatedDueToAdmissionCheck: The workload is deactivated due to AdmissionCheck in Rejected state: \"one\" (no)"
    );
    let events = cluster.take_events();
    let evictions = events.iter().filter(|one| one.contains("EvictedDueTo"));
    assert_eq!(evictions.count(), 1, "its pods stop once: {events:?}");
    let counted = &cluster.workloads["w"]["status"]["schedulingStats"]["evictions"];
    assert_eq!(counted.as_array().map(Vec::len), Some(1), "{counted}");
    cluster.take_writes();
    cluster.workload("w", 1, &json!({"spec": {"active": true}})).settle();
    assert_eq!(cluster.take_writes(), [""; 0], "nothing takes it back");
    propose(&mut cluster, Transition::Release);
    cluster.settle();
    assert_eq!(cluster.workloads["w"]["spec"]["active"], true);
    assert!(cluster.condition("w", "QuotaReserved").starts_with("True"), "it has quota again");
    assert_eq!(cluster.workloads["w"]["status"]["admissionChecks"][0]["state"], "Pending");
}

/// An earlier manager evicted it for another reason after the check was Rejected.
#[test]
fn a_mark_that_outlived_its_eviction_does_not_deactivate_for_ever() {
    let mut cluster = Cluster::new();
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        })
    };
    let conditions = json!([
        condition("DeactivationTarget", "True", "AdmissionCheck"),
        condition("Evicted", "True", "Preempted"),
        condition("QuotaReserved", "False", "PendingEvaluation"),
        condition("Requeued", "True", "Preempted"),
    ]);
    let fields = json!({"spec": {"active": false}, "status": {"conditions": conditions}});
    cluster.workload("w", 1, &fields).settle();
    assert_eq!(cluster.condition("w", "DeactivationTarget"), "none");
    cluster.workload("w", 1, &json!({"spec": {"active": true}})).settle();
    assert_eq!(cluster.workloads["w"]["spec"]["active"], true);
    assert!(cluster.condition("w", "Admitted").starts_with("True"));
}

#[test]
fn a_hold_does_not_repeat_an_eviction_that_is_over() {
    let mut cluster = Cluster::new();
    cluster.workload("w", 1, &json!({})).settle();
    evict(&mut cluster, "first");
    cluster.settle();
    propose(&mut cluster, Transition::Release);
    cluster.settle();
    assert!(cluster.condition("w", "Evicted").starts_with("False"), "it has quota again");
    let requeued = cluster.condition("w", "Requeued");
    propose(&mut cluster, Transition::Hold("on hold".to_owned()));
    cluster.settle();
    assert_eq!(cluster.condition("w", "QuotaReserved"), "False OnHold: on hold");
    assert_eq!(cluster.condition("w", "Requeued"), requeued);
}
