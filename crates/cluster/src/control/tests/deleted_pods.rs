//! Evicted pods that are deleted and that something keeps: a finalizer of another program, or a node that does not answer.

use super::{
    cluster::{Cluster, json_merge},
    lookups::settings_with,
    workloads_of_groups::pod_kind,
    *,
};

/// The pod `p`, which another finalizer keeps, with these fields.
fn pod(version: u32, fields: &Value) -> Value {
    let container = json!({"name": "main", "resources": {"requests": {"cpu": "8"}}});
    let mut pod = json!({
        "metadata": {
            "name": "p", "namespace": "ns", "uid": "uid-p", "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/other"],
            "labels": {"kueue.x-k8s.io/queue-name": "lq", "kueue.x-k8s.io/managed": "true"},
        },
        "spec": {"containers": [container]},
        "status": {"phase": "Pending"},
    });
    json_merge(&mut pod, fields);
    pod
}

fn observe(cluster: &mut Cluster, pod: Value) {
    let pod = Arc::new(pod_kind().decode(pod).expect("a pod decodes"));
    cluster.observe(ManagerInput::Job(pod_kind(), Change::Apply(pod))).settle();
}

/// The pod, which runs.
fn running() -> Value {
    json!({"spec": {"nodeName": "n"}, "status": {"phase": "Running"}})
}

/// The pod after its deletion at this time, in this phase.
fn leaving(deleted: Timestamp, phase: &str) -> Value {
    json!({
        "metadata": {"deletionTimestamp": deleted.to_string(), "deletionGracePeriodSeconds": 30},
        "spec": {"nodeName": "n"}, "status": {"phase": phase},
    })
}

/// A pod with all of the quota runs; its Workload is evicted for this reason, and the pod deleted. Returns the name of the Workload.
fn evicted(cluster: &mut Cluster, reason: &str) -> String {
    let none = Change::Reset { objects: vec![], removed: vec![] };
    cluster.observe(ManagerInput::Job(pod_kind(), none));
    let gates = json!([{"name": "kueue.x-k8s.io/admission"}]);
    observe(cluster, pod(20, &json!({"spec": {"schedulingGates": gates}})));
    let name = cluster.workloads.keys().next().expect("its Workload").clone();
    assert!(cluster.condition(&name, "Admitted").starts_with("True"));
    cluster.answer_job("p", &WriteOutcome::done(pod(21, &running())));
    let mut conditions = cluster.workloads[&name]["status"]["conditions"].clone();
    let all = conditions.as_array_mut().expect("conditions");
    all.push(json!({
        "type": "Evicted", "status": "True", "reason": reason, "message": "why",
        "lastTransitionTime": cluster.now.to_string(),
    }));
    cluster.workload(&name, 8, &json!({"status": {"conditions": conditions}})).settle();
    let mut marked = running();
    marked["status"]["conditions"] = json!([{"type": "TerminationTarget", "status": "True"}]);
    cluster.answer_job("p", &WriteOutcome::done(pod(22, &marked)));
    let deleted = pod(23, &leaving(cluster.now, "Running"));
    cluster.answer_job("p", &WriteOutcome::done(deleted));
    name
}

fn has_quota(cluster: &Cluster, name: &str) -> bool {
    cluster.condition(name, "QuotaReserved").starts_with("True")
}

#[test]
fn another_workload_gets_the_quota_of_a_pod_that_is_kept_after_its_grace_period() {
    for reason in ["Preempted", "PodsReadyTimeout", "AdmissionCheck"] {
        let mut cluster = Cluster::with(settings_with(&["pod"], &Gates::default()));
        let name = evicted(&mut cluster, reason);
        cluster.workload("next", 8, &json!({})).settle();
        cluster.wait(29).settle();
        assert!(has_quota(&cluster, &name) && !has_quota(&cluster, "next"), "the pod runs");
        cluster.wait(1).settle();
        assert!(!has_quota(&cluster, &name), "{reason}: {}", cluster.condition(&name, "Evicted"));
        assert!(has_quota(&cluster, "next"), "{reason}");
        // Its pod takes no other admission.
        cluster.delete("next").settle().wait(3600).settle();
        assert!(!has_quota(&cluster, &name), "{reason}");
        let requeued = format!("False {reason}: why");
        assert_eq!(cluster.condition(&name, "Requeued"), requeued);
    }
}

#[test]
fn the_quota_of_a_pod_returns_when_its_containers_have_ended() {
    let mut cluster = Cluster::with(settings_with(&["pod"], &Gates::default()));
    let name = evicted(&mut cluster, "Preempted");
    assert!(has_quota(&cluster, &name));
    let ended = pod(24, &leaving(cluster.now, "Failed"));
    observe(&mut cluster, ended);
    assert!(!has_quota(&cluster, &name));
}
