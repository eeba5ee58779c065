//! The backoff of an evicted Workload that still holds quota.

use super::{cluster::Cluster, core::Core, *};

/// The Workload `a` is evicted for this reason, holds quota, and may be requeued after 10 s.
fn evicted(reason: &str, more: &[Value]) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.workload("a", 2, &json!({})).settle();
    let condition = json!({
        "type": "Evicted", "status": "True", "reason": reason, "message": "why",
        "lastTransitionTime": cluster.now.to_string(),
    });
    let mut conditions = cluster.workloads["a"]["status"]["conditions"].clone();
    let all = conditions.as_array_mut().expect("conditions");
    all.push(condition);
    all.extend(more.iter().cloned());
    let at = (cluster.now + jiff::SignedDuration::from_secs(10)).to_string();
    let state = json!({"count": 1, "requeueAt": at});
    let status = json!({"conditions": conditions, "requeueState": state});
    cluster.workload("a", 2, &json!({"status": status})).settle();
    cluster
}

fn state(cluster: &Cluster) -> &Value {
    &cluster.workloads["a"]["status"]["requeueState"]
}

fn has_quota(cluster: &Cluster) -> bool {
    cluster.condition("a", "QuotaReserved").starts_with("True")
}

#[test]
fn the_time_of_a_requeue_stays_until_the_quota_is_released() {
    let mut cluster = evicted("PodsReadyTimeout", &[]);
    cluster.wait(60).settle();
    assert!(has_quota(&cluster) && state(&cluster)["requeueAt"].is_string(), "{}", state(&cluster));
    let key = Key { namespace: Some("ns".into()), name: "a".into() };
    let Core { workloads, ctx, .. } = &mut cluster.control.core;
    workloads.propose(&key, workloads::Transition::Release, ctx);
    cluster.settle();
    assert_eq!(*state(&cluster), json!({"count": 1}));
    let requeued = "True BackoffFinished: The workload backoff was finished";
    assert_eq!(cluster.condition("a", "Requeued"), requeued);
}

#[test]
fn the_time_of_a_requeue_ends_beside_quota_if_the_backoff_keeps_the_workload_out() {
    for (reason, ends) in
        [("PodsReadyTimeout", true), ("AdmissionCheck", true), ("LocalQueueStopped", false)]
    {
        let kept = json!({
            "type": "Requeued", "status": "False", "reason": reason, "message": "why",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        });
        let mut cluster = evicted(reason, &[kept]);
        cluster.wait(60).settle();
        assert!(has_quota(&cluster));
        assert_eq!(state(&cluster)["requeueAt"].is_null(), ends, "{reason}");
    }
}

#[test]
fn a_deactivated_workload_has_no_backoff_while_it_holds_quota() {
    let mut cluster = evicted("PodsReadyTimeout", &[]);
    cluster.workload("a", 2, &json!({"spec": {"active": false}})).settle();
    assert!(has_quota(&cluster));
    assert!(state(&cluster).is_null(), "{}", state(&cluster));
}
