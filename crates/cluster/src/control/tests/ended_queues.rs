//! Workloads with quota in a queue that ends.

use super::{cluster::Cluster, *};

/// The Workload `w` has quota and waits for its check.
fn reserved() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.check("room");
    cluster.queue(&checked());
    cluster.workload("w", 1, &json!({})).settle();
    assert!(cluster.condition("w", "QuotaReserved").starts_with("True"));
    assert!(!cluster.condition("w", "Admitted").starts_with("True"), "its check is pending");
    cluster
}

fn checked() -> Value {
    json!({"admissionChecksStrategy": {"admissionChecks": [{"name": "room"}]}})
}

#[test]
fn a_reservation_ends_with_its_local_queue() {
    let mut cluster = reserved();
    let queue = Key { namespace: Some("ns".into()), name: "lq".into() };
    cluster.observe(ManagerInput::LocalQueue(Change::Delete(queue))).settle();
    let gone = "False Misconfigured: LocalQueue lq doesn't exist";
    assert_eq!(cluster.condition("w", "QuotaReserved"), gone);
    assert_eq!(cluster.condition("w", "Evicted"), "none");
}

/// The check is Ready at the same time as the queue stops.
#[test]
fn a_reservation_with_ready_checks_is_admitted_before_its_queue_stops_it() {
    for (policy, evicted) in [
        ("Hold", "none"),
        ("HoldAndDrain", "True ClusterQueueStopped: The ClusterQueue is stopped"),
    ] {
        let mut cluster = reserved();
        let mut ready = cluster.workloads["w"]["status"].clone();
        ready["admissionChecks"][0]["state"] = json!("Ready");
        let mut stopped = checked();
        stopped["stopPolicy"] = json!(policy);
        cluster.take_writes();
        cluster.queue(&stopped).workload("w", 1, &json!({"status": ready})).settle();
        assert_eq!(cluster.take_writes().first().map(String::as_str), Some("admit w"), "{policy}");
        assert_eq!(cluster.condition("w", "Evicted"), evicted);
    }
}

/// The ClusterQueue is being deleted. Its finalizer keeps it while a Workload has quota there.
fn deletion(version: u32, more: &Value) -> ManagerInput {
    let mut deleted = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
        "metadata": {
            "name": "cq", "resourceVersion": version.to_string(), "generation": version,
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["kueue.x-k8s.io/resource-in-use"],
        },
        "spec": {"namespaceSelector": {}, "resourceGroups": [{
            "coveredResources": ["cpu"],
            "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "8"}]}],
        }]},
    });
    cluster::json_merge(&mut deleted["spec"], more);
    ManagerInput::ClusterQueue(Change::Apply(shared(deleted)))
}

#[test]
fn a_reservation_ends_when_its_cluster_queue_is_deleted() {
    let mut cluster = reserved();
    cluster.observe(deletion(900, &checked())).settle();
    assert!(cluster.condition("w", "QuotaReserved").starts_with("False"));
    assert_eq!(cluster.condition("w", "Evicted"), "none");
}

#[test]
fn a_cluster_queue_that_is_being_deleted_can_be_drained() {
    let mut cluster = Cluster::new();
    cluster.queue(&json!({})).workload("w", 1, &json!({})).settle();
    cluster.observe(deletion(900, &json!({}))).settle();
    assert!(cluster.condition("w", "Admitted").starts_with("True"));
    cluster.observe(deletion(901, &json!({"stopPolicy": "Hold"}))).settle();
    assert_eq!(cluster.condition("w", "Evicted"), "none", "it runs to its end");
    cluster.observe(deletion(902, &json!({"stopPolicy": "HoldAndDrain"}))).settle();
    let drained = "True ClusterQueueStopped: The ClusterQueue is stopped";
    assert_eq!(cluster.condition("w", "Evicted"), drained);
}

#[test]
fn a_workload_behind_others_does_not_name_a_queue_that_exists_again() {
    let mut cluster = Cluster::new();
    cluster.queue(&json!({"queueingStrategy": "StrictFIFO"}));
    cluster.workload("never-fits", 9, &json!({})).wait(1);
    cluster.workload("w", 1, &json!({})).settle();
    let queue = Key { namespace: Some("ns".into()), name: "lq".into() };
    cluster.observe(ManagerInput::LocalQueue(Change::Delete(queue))).settle();
    cluster.wait(10).settle();
    let gone = "False Misconfigured: LocalQueue lq doesn't exist";
    assert_eq!(cluster.condition("w", "QuotaReserved"), gone);
    let back = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
        "metadata": {"name": "lq", "namespace": "ns", "resourceVersion": "901"},
        "spec": {"clusterQueue": "cq"},
    });
    cluster.observe(ManagerInput::LocalQueue(Change::Apply(shared(back)))).settle();
    cluster.wait(10).settle();
    assert!(cluster.condition("never-fits", "QuotaReserved").starts_with("False ExceedsMaxQuota"));
    let waits = "False PendingEvaluation: Workload is pending evaluation in the scheduling queue";
    assert_eq!(cluster.condition("w", "QuotaReserved"), waits);
}

/// The reason may be that of an earlier process, or of the deactivation: no message in memory names it.
#[test]
fn a_workload_behind_others_does_not_keep_a_reason_that_has_ended() {
    let waits = "False PendingEvaluation: Workload is pending evaluation in the scheduling queue";
    for reason in ["Deactivated", "Suspended", "Misconfigured", "Inadmissible", "Pending"] {
        let mut cluster = Cluster::new();
        cluster.queue(&json!({"queueingStrategy": "StrictFIFO"}));
        cluster.workload("never-fits", 9, &json!({})).wait(1);
        let condition =
            json!({"type": "QuotaReserved", "status": "False", "reason": reason, "message": "old"});
        cluster.workload("w", 1, &json!({"status": {"conditions": [condition]}})).settle();
        cluster.wait(10).settle();
        assert_eq!(cluster.condition("w", "QuotaReserved"), waits, "{reason}");
    }
}

#[test]
fn a_reactivated_workload_behind_others_is_no_longer_deactivated() {
    let mut cluster = Cluster::new();
    cluster.queue(&json!({"queueingStrategy": "StrictFIFO"}));
    cluster.workload("never-fits", 9, &json!({})).wait(1);
    cluster.workload("w", 1, &json!({"spec": {"active": false}})).settle();
    assert!(cluster.condition("w", "QuotaReserved").starts_with("False Deactivated"));
    cluster.workload("w", 1, &json!({"spec": {"active": true}})).settle();
    cluster.wait(10).settle();
    assert!(cluster.condition("w", "QuotaReserved").starts_with("False PendingEvaluation"));
}

/// After a takeover another field manager may have set the admission; an apply leaves it.
#[test]
fn a_reservation_that_ends_leaves_no_admission_of_another_field_manager() {
    let mut cluster = reserved();
    let admission = cluster.workloads["w"]["status"]["admission"].clone();
    assert!(admission.is_object());
    let foreign = json!({"admission": admission, "unhealthyNodes": [{"name": "n1"}]});
    cluster.foreign_fields.insert("w".to_owned(), foreign);
    let queue = Key { namespace: Some("ns".into()), name: "lq".into() };
    cluster.observe(ManagerInput::LocalQueue(Change::Delete(queue))).settle();
    assert!(cluster.condition("w", "QuotaReserved").starts_with("False Misconfigured"));
    let status = &cluster.workloads["w"]["status"];
    assert_eq!((status.get("admission"), status.get("unhealthyNodes")), (None, None));
}

fn local_queue(version: &str, deleted: bool) -> ManagerInput {
    let mut queue = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
        "metadata": {
            "name": "lq", "namespace": "ns", "resourceVersion": version,
            "generation": version.parse::<i64>().expect("a number"),
        },
        "spec": {"clusterQueue": "cq"},
    });
    if deleted {
        queue["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        queue["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    }
    ManagerInput::LocalQueue(Change::Apply(shared(queue)))
}

#[test]
fn a_local_queue_that_is_being_deleted_gets_no_further_quota() {
    let mut cluster = reserved();
    cluster.observe(local_queue("900", true)).settle();
    assert!(cluster.condition("w", "QuotaReserved").starts_with("False Misconfigured"));
    cluster.workload("late", 8, &json!({})).settle();
    cluster.take_writes();
    cluster.wait(60).settle();
    let writes = cluster.take_writes();
    assert!(writes.iter().all(|one| !one.starts_with("reserve")), "{writes:?}");
    // Nothing is counted by assumption: the queue comes back, and all of its quota is free.
    cluster.observe(local_queue("901", false)).settle();
    cluster.wait(60).settle();
    assert!(cluster.condition("late", "QuotaReserved").starts_with("True"));
}

#[test]
fn a_reservation_that_is_not_written_ends_with_its_queue_as_well() {
    let mut cluster = Cluster::new();
    cluster.check("room");
    cluster.queue(&checked());
    cluster.workload("w", 1, &json!({}));
    let step = cluster.control.decide(cluster.now);
    let reserve = step.orders.iter().find(|one| one.ticket.purpose == Purpose::Reserve);
    let ticket = reserve.expect("it is reserved").ticket.clone();
    cluster.control.answered(&ticket, WriteOutcome::Unknown(String::new()), cluster.now);
    cluster.observe(local_queue("900", true)).wait(60).settle();
    let gone = Key { namespace: Some("ns".into()), name: "lq".into() };
    cluster.observe(ManagerInput::LocalQueue(Change::Delete(gone))).settle();
    let core = &cluster.control.core;
    let key = Key { namespace: Some("ns".into()), name: "w".into() };
    let record = core.workloads.get(&key).expect("the Workload");
    assert!(record.transitions().reservation().is_none());
    assert_eq!(core.scheduler.counts("cq").total.reserving, 0, "its quota is free");
}
