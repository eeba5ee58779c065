//! When an evicted Workload is requeued: its backoff while it still holds quota, and checks in Retry without quota.

use super::{
    cluster::Cluster,
    core::Core,
    life_cycle::{check_states, checks, with_gates},
    *,
};

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

/// A check of a Workload without quota, set to Retry after 10 s with this delay.
fn retry_without_quota(seconds: &Value) -> Value {
    json!({"status": {"admissionChecks": [{
        "name": "one", "state": "Retry", "message": "busy", "requeueAfterSeconds": seconds,
        "lastTransitionTime": "1970-01-01T00:00:10Z", "retryCount": 1,
    }]}})
}

/// Nothing evicts such a Workload, and its nomination is refused.
#[test]
fn a_check_that_is_set_to_retry_without_quota_is_repeated_after_its_delay() {
    for (seconds, waits) in [(json!(600), 600), (Value::Null, 0)] {
        let mut cluster = Cluster::new();
        let mut strict = checks(&["one"]);
        strict["queueingStrategy"] = json!("StrictFIFO");
        cluster.check("one").queue(&strict);
        cluster.wait(10).workload("head", 2, &retry_without_quota(&seconds)).settle();
        cluster.workload("behind", 2, &json!({})).settle();
        if waits > 0 {
            cluster.wait(waits - 1).settle();
            assert_eq!(check_states(&cluster, "head"), ["one Retry"], "the delay is not over");
            cluster.wait(1).settle();
        }
        let check = &cluster.workloads["head"]["status"]["admissionChecks"][0];
        assert_eq!((&check["state"], &check["retryCount"]), (&json!("Pending"), &json!(2)));
        assert_eq!(check["message"], "Reset to Pending after its delay. Previously: Retry");
        let state = &cluster.workloads["head"]["status"]["requeueState"];
        assert!(state["requeueAt"].is_null(), "{state}");
        for name in ["head", "behind"] {
            let reserved = cluster.condition(name, "QuotaReserved");
            assert!(reserved.starts_with("True"), "{name}: {reserved}");
        }
        let resets = cluster.take_writes().into_iter().filter(|one| one == "requeue head").count();
        assert_eq!(resets, 1 + usize::from(waits > 0), "the end of the delay resets the check");
    }
}

#[test]
fn a_check_in_retry_stays_while_its_queue_is_stopped_and_beside_another_state() {
    let mut cluster = Cluster::new();
    cluster.check("one").check("two");
    let mut stopped = retry_without_quota(&Value::Null);
    let states = stopped["status"]["admissionChecks"].as_array_mut().expect("checks");
    states.push(json!({
        "name": "two", "state": "Rejected", "message": "no", "lastTransitionTime": "1970-01-01T00:00:10Z",
    }));
    stopped["status"]["conditions"] = json!([{
        "type": "Requeued", "status": "False", "reason": "ClusterQueueStopped", "message": "",
        "lastTransitionTime": "1970-01-01T00:00:10Z",
    }]);
    let held = |policy: &str| {
        let mut queue = checks(&["one", "two"]);
        queue["stopPolicy"] = json!(policy);
        queue
    };
    cluster.queue(&held("Hold")).wait(20).workload("a", 2, &stopped).settle();
    assert_eq!(check_states(&cluster, "a"), ["one Retry", "two Rejected"]);
    cluster.queue(&held("None")).settle();
    assert_eq!(check_states(&cluster, "a"), ["one Pending", "two Rejected"]);
    assert!(cluster.condition("a", "Requeued").starts_with("True ClusterQueueRestarted"));
}

#[test]
fn a_parent_of_variants_shows_the_checks_of_its_variant() {
    let mut cluster = with_gates("ConcurrentAdmission=true");
    let mut policy = checks(&["one"]);
    policy["concurrentAdmissionPolicy"] = json!({"migration": {"mode": "TryPreferredFlavors"}});
    cluster.check("one").queue(&policy).wait(20);
    cluster.workload("a", 9, &retry_without_quota(&Value::Null)).settle();
    assert!(cluster.workloads.len() > 1, "it has variants");
    assert_eq!(check_states(&cluster, "a"), ["one Retry"]);
}
