//! Pods on unreachable nodes are ended and deleted by force (docs/reference/kueue.md §6.7).

use super::{
    cluster::Cluster,
    topologies::{body, reduced},
    *,
};

/// Deleted at `NOW` with a grace period of 30 s, on node `n1`.
fn pod(version: u32, fields: &Value) -> Value {
    let mut pod = json!({
        "metadata": {
            "name": "p", "namespace": "ns", "uid": "uid-p", "resourceVersion": version.to_string(),
            "annotations": {"kueue.x-k8s.io/safe-to-forcefully-delete": "true"},
            "deletionTimestamp": "1970-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30,
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "main"}]},
        "status": {"phase": "Running"},
    });
    cluster::json_merge(&mut pod, fields);
    pod
}

fn marked(version: u32) -> Value {
    let condition = json!({"type": "KueueFailureRecovery", "status": "True"});
    pod(version, &json!({"status": {"phase": "Failed", "conditions": [condition]}}))
}

fn shown(pod: Value) -> ManagerInput {
    ManagerInput::TerminatingPod(Change::Apply(reduced(pod)))
}

fn node(taint: Option<&str>) -> ManagerInput {
    let taints: Vec<Value> =
        taint.into_iter().map(|key| json!({"key": key, "effect": "NoExecute"})).collect();
    let node = json!({"metadata": {"name": "n1"}, "spec": {"taints": taints}});
    ManagerInput::NodeReachability(Change::Apply(reduced(node)))
}

fn unreachable() -> ManagerInput {
    node(Some("node.kubernetes.io/unreachable"))
}

/// Orders about the pod at the end of a decision.
fn decide(cluster: &mut Cluster) -> Vec<Order> {
    let step = cluster.control.decide(cluster.now);
    cluster.events.extend(step.events);
    let of_pod = |order: &Order| &*order.ticket.target.key.name == "p";
    step.orders.into_iter().filter(of_pod).collect()
}

fn purposes(orders: &[Order]) -> Vec<&'static str> {
    orders.iter().map(|order| order.ticket.purpose.name()).collect()
}

fn answer(cluster: &mut Cluster, order: &Order, answer: WriteOutcome) {
    cluster.control.answered(&order.ticket, answer, cluster.now);
}

#[test]
fn it_is_ended_a_minute_after_its_grace_period_and_then_deleted() {
    let mut cluster = Cluster::new();
    cluster.observe(unreachable()).observe(shown(pod(10, &json!({})))).settle();
    cluster.wait(89);
    assert!(decide(&mut cluster).is_empty(), "its time is not over");
    cluster.wait(1);
    let orders = decide(&mut cluster);
    assert_eq!(purposes(&orders), ["forcefully-end"]);
    let body = body(&orders[0].write);
    let message = "Pod forcefully terminated after 1m30s grace period due to unreachable node `n1` (triggered by `kueue.x-k8s.io/safe-to-forcefully-delete` annotation)";
    let condition = &body["status"]["conditions"][0];
    assert_eq!(condition["reason"], "KueueForcefullyDeleted");
    assert_eq!(
        (&body["status"]["phase"], &condition["message"]),
        (&json!("Failed"), &json!(message))
    );
    let event = format!("p kueue-pod-termination-controller KueueForcefullyDeleted: {message}");
    assert_eq!(cluster.take_events(), [""; 0], "it is not written yet");
    answer(&mut cluster, &orders[0], WriteOutcome::done(marked(11)));
    let orders = decide(&mut cluster);
    assert_eq!(cluster.take_events(), [event]);
    assert_eq!(purposes(&orders), ["forcefully-delete"]);
    let delete: Value = serde_json::from_slice(orders[0].write.request().body()).expect("JSON");
    assert_eq!(
        (&delete["gracePeriodSeconds"], &delete["preconditions"]["uid"]),
        (&json!(0), &json!("uid-p"))
    );
    // A finalizer keeps it. The watch is late.
    let mut kept = marked(12);
    kept["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    answer(&mut cluster, &orders[0], WriteOutcome::done(kept));
    assert!(decide(&mut cluster).is_empty());
}

#[test]
fn a_late_watch_does_not_undo_the_answer_to_a_write() {
    let mut cluster = Cluster::new();
    cluster.observe(unreachable()).observe(shown(pod(10, &json!({})))).wait(90);
    let orders = decide(&mut cluster);
    answer(&mut cluster, &orders[0], WriteOutcome::done(marked(12)));
    cluster.observe(shown(pod(11, &json!({}))));
    assert_eq!(purposes(&decide(&mut cluster)), ["forcefully-delete"]);
}

#[test]
fn it_stays_while_its_node_is_reachable_or_unknown() {
    let mut cluster = Cluster::new();
    cluster.observe(shown(pod(10, &json!({})))).wait(90);
    assert!(decide(&mut cluster).is_empty(), "no such node");
    cluster.observe(node(Some("node.kubernetes.io/not-ready")));
    assert!(decide(&mut cluster).is_empty());
    cluster.observe(unreachable());
    assert_eq!(purposes(&decide(&mut cluster)), ["forcefully-end"]);
    let mut back = Cluster::new();
    back.observe(unreachable()).observe(shown(pod(10, &json!({})))).observe(node(None)).wait(90);
    assert!(decide(&mut back).is_empty(), "its node is back");
}

#[test]
fn only_pods_that_allow_it_are_ended() {
    let annotation = |value: Value| json!({"metadata": {"annotations": {"kueue.x-k8s.io/safe-to-forcefully-delete": value}}});
    for fields in [
        annotation(json!("false")),
        annotation(Value::Null),
        json!({"metadata": {"deletionTimestamp": null, "deletionGracePeriodSeconds": null}}),
        json!({"spec": {"nodeName": null}}),
    ] {
        let mut cluster = Cluster::new();
        cluster.observe(unreachable()).observe(shown(pod(10, &fields))).wait(90);
        assert!(decide(&mut cluster).is_empty(), "{fields}");
    }
}

#[test]
fn a_pod_that_was_deleted_by_force_is_only_ended() {
    for grace in [json!(0), Value::Null] {
        let mut cluster = Cluster::new();
        let forced = json!({"metadata": {
            "deletionTimestamp": "1970-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace,
        }});
        cluster.observe(unreachable()).observe(shown(pod(10, &forced))).settle();
        cluster.wait(59);
        assert!(decide(&mut cluster).is_empty(), "its time is not over");
        cluster.wait(1);
        let orders = decide(&mut cluster);
        assert_eq!(purposes(&orders), ["forcefully-end"], "{grace}");
        let message = body(&orders[0].write)["status"]["conditions"][0]["message"].clone();
        assert!(
            message.as_str().is_some_and(|text| text.contains("after 1m0s grace period")),
            "{message}"
        );
        let mut ended = marked(11);
        cluster::json_merge(&mut ended, &forced);
        answer(&mut cluster, &orders[0], WriteOutcome::done(ended));
        assert!(decide(&mut cluster).is_empty(), "a finalizer keeps it");
    }
}

/// Its kubelet wrote the phase and went silent before it removed the pod.
#[test]
fn a_pod_that_has_ended_by_itself_keeps_its_phase_and_is_deleted() {
    for phase in ["Succeeded", "Failed"] {
        let mut cluster = Cluster::new();
        let ended = pod(10, &json!({"status": {"phase": phase}}));
        cluster.observe(unreachable()).observe(shown(ended)).wait(89);
        assert!(decide(&mut cluster).is_empty(), "its time is not over");
        cluster.wait(1);
        let orders = decide(&mut cluster);
        assert_eq!(purposes(&orders), ["forcefully-delete"], "{phase}");
        let forced = json!({
            "metadata": {"deletionGracePeriodSeconds": 0}, "status": {"phase": phase},
        });
        answer(&mut cluster, &orders[0], WriteOutcome::done(pod(11, &forced)));
        assert!(decide(&mut cluster).is_empty(), "a finalizer keeps it");
    }
}

#[test]
fn a_refused_write_is_repeated_later_and_a_successor_of_the_name_is_left_alone() {
    let mut cluster = Cluster::new();
    cluster.observe(unreachable()).observe(shown(pod(10, &json!({})))).wait(90);
    let orders = decide(&mut cluster);
    let refused = WriteOutcome::Refused {
        code: 403,
        reason: "Forbidden".to_owned(),
        message: "no".to_owned(),
    };
    answer(&mut cluster, &orders[0], refused);
    assert!(decide(&mut cluster).is_empty(), "it is not repeated at once");
    cluster.wait(30);
    let orders = decide(&mut cluster);
    assert_eq!(purposes(&orders), ["forcefully-end"]);
    let successor = json!({"metadata": {
        "uid": "other", "deletionTimestamp": null, "deletionGracePeriodSeconds": null,
    }});
    cluster.observe(shown(pod(20, &successor)));
    answer(&mut cluster, &orders[0], WriteOutcome::done(marked(11)));
    assert!(decide(&mut cluster).is_empty());
}
