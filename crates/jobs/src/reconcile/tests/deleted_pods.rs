//! Evicted pods that are being deleted.

use super::*;
use crate::Pod;

/// A pod that is deleted at the epoch with a grace period of 30 s.
pub(super) fn deleted(more: &Value) -> Pod {
    let mut pod = json!({
        "metadata": {
            "name": "train", "namespace": "ns", "uid": "u-1",
            "deletionTimestamp": "1970-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30,
            "finalizers": ["example.com/other"],
        },
        "spec": { "containers": [{ "name": "c" }], "nodeName": "n" },
        "status": { "phase": "Running" },
    });
    merge(&mut pod, more);
    serde_json::from_value(pod).expect("a pod decodes")
}

/// Whether quota is released so many seconds after the deletion.
fn releases(pod: &Pod, conditions: &[&str], seconds: i64, gates: JobGates) -> bool {
    let of_pod = workload(conditions);
    let now = Timestamp::from_second(seconds).expect("a time");
    let known = [&of_pod];
    let none = FlavorsByName::new();
    let steps = reconcile(pod, ReconcileContext { now, gates, ..context(&known, &none) });
    let is_release = |step: &ReconcileStep<Pod>| {
        matches!(step, ReconcileStep::Workload { write: WorkloadStep::ReleaseQuota, .. })
    };
    steps.iter().any(is_release)
}

const EVICTED: [&str; 2] = ["QuotaReserved", "Evicted"];

#[test]
fn the_quota_of_an_evicted_pod_returns_with_the_end_of_its_containers() {
    let running = deleted(&json!({}));
    let pending = deleted(&json!({ "status": { "phase": "Pending" } }));
    for pod in [&running, &pending] {
        assert!(!releases(pod, &EVICTED, 29, GATES()), "its containers may run: {pod:?}");
        assert!(releases(pod, &EVICTED, 30, GATES()), "its node does not answer: {pod:?}");
        let fast = JobGates { fast_quota_release: true, ..GATES() };
        assert!(releases(pod, &EVICTED, 0, fast));
    }
    let failed = deleted(&json!({ "status": { "phase": "Failed" } }));
    let unbound =
        deleted(&json!({ "spec": { "nodeName": null }, "status": { "phase": "Pending" } }));
    for pod in [failed, unbound] {
        assert!(releases(&pod, &EVICTED, 0, GATES()), "nothing of it runs: {pod:?}");
    }
}

#[test]
fn a_deleted_pod_that_is_not_evicted_keeps_its_quota_until_it_is_gone() {
    let failed = deleted(&json!({ "status": { "phase": "Failed" } }));
    assert!(!releases(&failed, &["QuotaReserved", "Admitted"], 60, GATES()));
    assert!(!releases(&failed, &["Evicted"], 60, GATES()), "it has none");
    assert!(!releases(&failed, &["QuotaReserved", "Evicted", "Finished"], 60, GATES()));
}
