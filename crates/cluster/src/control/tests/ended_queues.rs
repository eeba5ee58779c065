//! Workloads with quota that lose their queue before their admission.

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

/// Its finalizer keeps it while a Workload has quota there.
#[test]
fn a_reservation_ends_when_its_cluster_queue_is_deleted() {
    let mut cluster = reserved();
    let mut deleted = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
        "metadata": {
            "name": "cq", "resourceVersion": "900", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["kueue.x-k8s.io/resource-in-use"],
        },
        "spec": {"namespaceSelector": {}, "resourceGroups": [{
            "coveredResources": ["cpu"],
            "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "8"}]}],
        }]},
    });
    cluster::json_merge(&mut deleted["spec"], &checked());
    cluster.observe(ManagerInput::ClusterQueue(Change::Apply(shared(deleted)))).settle();
    assert!(cluster.condition("w", "QuotaReserved").starts_with("False"));
    assert_eq!(cluster.condition("w", "Evicted"), "none");
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
