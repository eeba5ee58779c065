//! Rules for RayClusters that no recording shows.

use jiff::Timestamp;
use ray::{
    PassInputs, cluster,
    settings::OperatorSettings,
    step::{RayAnswer, RayRefusal, RayStep},
};
use serde_json::{Value, json};

fn cluster_with(groups: &Value) -> Value {
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "c1", "namespace": "default", "uid": "u1", "generation": 1},
        "spec": {
            "headGroupSpec": {"template": template()},
            "workerGroupSpecs": groups,
        },
    })
}

fn template() -> Value {
    json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}})
}

fn group(name: &str, replicas: i32) -> Value {
    json!({
        "groupName": name, "replicas": replicas, "minReplicas": 0, "maxReplicas": i32::MAX,
        "numOfHosts": 1, "template": template(),
    })
}

fn steps(cluster: &Value, children: &[Value], answers: &[RayAnswer]) -> Vec<RayStep> {
    let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [1; 32] };
    cluster::decide(
        cluster,
        &children.iter().collect::<Vec<_>>(),
        answers,
        &inputs,
        &OperatorSettings::default(),
    )
}

fn created(steps: &[RayStep], kind: &str) -> Vec<Value> {
    let created = steps.iter().filter_map(|step| match step {
        RayStep::Create(object) if object["kind"] == kind => Some(object.clone()),
        _ => None,
    });
    created.collect()
}

fn warning(steps: &[RayStep]) -> String {
    let warning = steps.iter().find_map(|step| match step {
        RayStep::Event(event) if event.warning => {
            Some(format!("{}: {}", event.reason, event.message))
        }
        _ => None,
    });
    warning.unwrap_or_default()
}

fn head_of(uid: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "c1-head-x",
            "uid": "p1",
            "labels": {"ray.io/cluster": "c1", "ray.io/node-type": "head"},
            "ownerReferences": [{"kind": "RayCluster", "name": "c1", "uid": uid, "controller": true}],
        },
        "spec": template()["spec"],
    })
}

#[test]
fn groups_of_the_same_name_are_refused() {
    let cluster = cluster_with(&json!([group("a", 1), group("a", 1)]));
    let refused = "InvalidRayClusterSpec: The RayCluster spec is invalid default/c1: worker group name a is not unique";
    assert_eq!(warning(&steps(&cluster, &[], &[])), refused);
}

#[test]
fn a_group_with_the_name_of_the_heads_group_is_refused() {
    let cluster = cluster_with(&json!([group("headgroup", 1)]));
    assert!(
        warning(&steps(&cluster, &[], &[]))
            .contains("headgroup is the name of the group of the head")
    );
}

#[test]
fn a_spec_that_does_not_decode_is_an_event() {
    let mut cluster = cluster_with(&json!([]));
    cluster["spec"]["headGroupSpec"] = json!("text");
    let text = warning(&steps(&cluster, &[], &[]));
    assert!(
        text.starts_with("InvalidRayClusterSpec: The RayCluster spec is invalid default/c1: "),
        "{text}"
    );
}

#[test]
fn a_head_of_a_deleted_cluster_of_the_same_name_does_not_count() {
    let cluster = cluster_with(&json!([]));
    assert_eq!(created(&steps(&cluster, &[head_of("u1")], &[]), "Pod").len(), 0);
    assert_eq!(created(&steps(&cluster, &[head_of("u0")], &[]), "Pod").len(), 1);
}

#[test]
fn a_pass_makes_a_bounded_number_of_pods() {
    let cluster = cluster_with(&json!([group("a", i32::MAX)]));
    assert_eq!(created(&steps(&cluster, &[head_of("u1")], &[]), "Pod").len(), 1000);
}

#[test]
fn a_refused_pod_is_a_condition_and_a_new_attempt() {
    let cluster = cluster_with(&json!([]));
    let orders = steps(&cluster, &[], &[]);
    assert_eq!(orders.len(), 2, "a Service and the head");
    let service = created(&orders, "Service").remove(0);
    let refusal = RayRefusal { code: 403, message: "quota".to_owned() };
    let last =
        steps(&cluster, &[], &[RayAnswer::Done(service.into()), RayAnswer::Refused(refusal)]);
    let status = last.iter().find_map(|step| match step {
        RayStep::ReplaceStatus(status) => Some(status.clone()),
        _ => None,
    });
    let condition = &status.expect("a status")["conditions"][0];
    assert_eq!(condition["type"], "ReplicaFailure");
    assert_eq!(condition["message"], "FailedCreateHeadPod\nquota");
    assert!(
        last.iter()
            .any(|step| matches!(step, RayStep::RequeueAfter(after) if after.as_secs() == 2))
    );
}

#[test]
fn a_failed_pod_is_reported_until_a_pass_has_no_error() {
    let mut cluster = cluster_with(&json!([]));
    let condition = json!({
        "type": "ReplicaFailure", "status": "True", "reason": "FailedCreateHeadPod",
        "message": "quota", "lastTransitionTime": "1970-01-01T00:00:00Z",
    });
    cluster["status"] = json!({"conditions": [condition]});
    let service = created(&steps(&cluster, &[], &[]), "Service").remove(0);
    let mut second = service.clone();
    second["metadata"]["name"] = json!("second");
    let is_reported = |children: &[Value]| {
        let mut status = steps(&cluster, children, &[]).into_iter().filter_map(|step| match step {
            RayStep::ReplaceStatus(status) => Some(status),
            _ => None,
        });
        status.next().expect("a status").to_string().contains("ReplicaFailure")
    };
    assert!(!is_reported(&[service.clone(), head_of("u1")]));
    assert!(is_reported(&[service, second, head_of("u1")]), "two Services of the head");
}

#[test]
fn a_suspension_that_is_on_its_way_and_over_at_once_is_repaired() {
    let mut cluster = cluster_with(&json!([]));
    let is_true = |kind: &str| json!({"type": kind, "status": "True"});
    let both = [is_true("RayClusterSuspending"), is_true("RayClusterSuspended")];
    cluster["status"] = json!({"conditions": both});
    cluster["spec"]["suspend"] = json!(true);
    let service = created(&steps(&cluster, &[], &[]), "Service").remove(0);
    let with_head = steps(&cluster, &[service.clone(), head_of("u1")], &[]);
    assert!(matches!(with_head[..], [RayStep::Delete(_)]), "{with_head:?}");
    let mut status = steps(&cluster, &[service], &[]).into_iter().filter_map(|step| match step {
        RayStep::ReplaceStatus(status) => Some(status),
        _ => None,
    });
    let status = status.next().expect("a status");
    let conditions = status["conditions"].as_array().expect("conditions").iter();
    let suspending = conditions.filter(|it| it["type"] == "RayClusterSuspending");
    assert!(suspending.into_iter().all(|it| it["status"] == "False"), "{status}");
}

#[test]
fn the_head_is_as_ready_as_its_pod_says_whatever_its_phase() {
    let cluster = cluster_with(&json!([]));
    let service = created(&steps(&cluster, &[], &[]), "Service").remove(0);
    let condition = |phase: &str, ready: Value| {
        let mut head = head_of("u1");
        head["status"] = json!({"phase": phase, "conditions": [ready]});
        let last = steps(&cluster, &[service.clone(), head], &[]);
        let status = last.into_iter().find_map(|step| match step {
            RayStep::ReplaceStatus(status) => Some(status),
            _ => None,
        });
        let conditions = status.expect("a status")["conditions"].clone();
        let mut found = conditions.as_array().expect("conditions").clone();
        found.retain(|it| it["type"] == "HeadPodReady");
        [found[0]["status"].clone(), found[0]["reason"].clone()]
    };
    let ready = json!({"type": "Ready", "status": "True"});
    assert_eq!(condition("Running", ready.clone()), ["True", "HeadPodRunningAndReady"]);
    assert_eq!(condition("Unknown", ready), ["True", "HeadPodRunningAndReady"]);
    let lost = json!({"type": "Ready", "status": "False", "reason": "NodeLost"});
    assert_eq!(condition("Running", lost), ["False", "NodeLost"]);
}

/// As for the state: the kubelet may not have reported whether a pod is ready.
#[test]
fn a_pod_that_runs_without_a_ready_condition_counts_as_provisioned() {
    let provisioned = |pod_status: Value| {
        let mut head = head_of("u1");
        head["status"] = pod_status;
        let mut service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "c1-head-svc", "uid": "s"},
        });
        let labels = json!({"ray.io/cluster": "c1", "ray.io/node-type": "head"});
        service["metadata"]["labels"] = labels;
        let steps = steps(&cluster_with(&json!([])), &[head, service], &[]);
        let status = steps.iter().find_map(|step| match step {
            RayStep::ReplaceStatus(status) => Some(status.clone()),
            _ => None,
        });
        let status = status.expect("a status");
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|it| it["type"] == "RayClusterProvisioned");
        (status["state"].clone(), found.map(|it| it["status"].clone()).unwrap_or_default())
    };
    assert_eq!(provisioned(json!({"phase": "Running"})), (json!("ready"), json!("True")));
    let unready = json!([{"type": "Ready", "status": "False"}]);
    let unready = json!({"phase": "Running", "conditions": unready});
    assert_eq!(provisioned(unready), (Value::Null, json!("False")));
}

#[test]
fn the_message_of_a_head_that_is_not_ready_names_the_pods_and_the_containers_reason() {
    let cluster = cluster_with(&json!([]));
    let service = created(&steps(&cluster, &[], &[]), "Service").remove(0);
    let message = |ready: &str| {
        let waiting = json!({"reason": "ErrImagePull", "message": "no such image"});
        let mut head = head_of("u1");
        head["status"] = json!({
            "phase": "Pending",
            "conditions": [{
                "type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": ready,
            }],
            "containerStatuses": [{"name": "ray-head", "state": {"waiting": waiting}}],
        });
        let last = steps(&cluster, &[service.clone(), head], &[]);
        let status = last.into_iter().find_map(|step| match step {
            RayStep::ReplaceStatus(status) => Some(status),
            _ => None,
        });
        let status = status.expect("a status");
        let mut conditions = status["conditions"].as_array().expect("conditions").iter();
        let found = conditions.find(|it| it["type"] == "HeadPodReady").expect("the condition");
        [found["reason"].clone(), found["message"].clone()]
    };
    assert_eq!(message(""), ["ErrImagePull", "ray-head: no such image"]);
    assert_eq!(
        message("containers with unready status: [ray-head]"),
        ["ErrImagePull", "containers with unready status: [ray-head]; ray-head: no such image"]
    );
}

/// Orders of a pass with this seed: each pass has another one.
fn pods_of(seed: u8, cluster: &Value, children: &[Value]) -> Vec<String> {
    let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [seed; 32] };
    let children: Vec<&Value> = children.iter().collect();
    let mut answers = Vec::new();
    loop {
        let steps =
            cluster::decide(cluster, &children, &answers, &inputs, &OperatorSettings::default());
        let pods = created(&steps, "Pod");
        if !pods.is_empty() || !steps.iter().any(RayStep::is_order) {
            let name = |pod: &Value| pod["metadata"]["name"].as_str().map(str::to_owned);
            return pods.iter().filter_map(name).collect();
        }
        answers.extend(created(&steps, "Service").into_iter().map(|it| RayAnswer::Done(it.into())));
    }
}

#[test]
fn pods_of_a_workload_slice_wait_for_its_quota() {
    let slice = |template: &mut Value, gates: Value| {
        let annotations = json!({"kueue.x-k8s.io/workload-slice-name": "first"});
        template["metadata"] = json!({"annotations": annotations});
        template["spec"]["schedulingGates"] = gates;
    };
    let gate = json!({"name": "kueue.x-k8s.io/elastic-job"});
    let mut cluster = cluster_with(&json!([group("a", 1), group("b", 1)]));
    cluster["spec"]["enableInTreeAutoscaling"] = json!(true);
    let spec = &mut cluster["spec"];
    slice(&mut spec["headGroupSpec"]["template"], Value::Null);
    slice(&mut spec["workerGroupSpecs"][0]["template"], json!([{"name": "own"}]));
    slice(&mut spec["workerGroupSpecs"][1]["template"], json!([gate]));
    let orders = steps(&cluster, &[], &[]);
    let gates = |pods: &[Value]| -> Vec<Value> {
        pods.iter().map(|pod| pod["spec"]["schedulingGates"].clone()).collect()
    };
    let expected = [json!([gate]), json!([{"name": "own"}, gate]), json!([gate])];
    assert_eq!(gates(&created(&orders, "Pod")), expected);
    // Without a slice nothing would take the gate off.
    let alone = created(&steps(&cluster_with(&json!([group("a", 1)])), &[], &[]), "Pod");
    assert_eq!(gates(&alone), [Value::Null, Value::Null]);
}

#[test]
fn the_second_autoscaler_alone_sets_the_restart_policy_of_pods() {
    let policies = |version: Value| -> Vec<Value> {
        let mut cluster = cluster_with(&json!([group("a", 1)]));
        cluster["spec"]["enableInTreeAutoscaling"] = json!(true);
        cluster["spec"]["autoscalerOptions"] = json!({"version": version});
        let pods = created(&steps(&cluster, &[], &[]), "Pod");
        pods.iter().map(|pod| pod["spec"]["restartPolicy"].clone()).collect()
    };
    assert_eq!(policies(Value::Null), [Value::Null, Value::Null]);
    assert_eq!(policies(json!("v1")), [Value::Null, Value::Null], "the head, a worker");
    assert_eq!(policies(json!("v2")), ["Never", "Never"]);
}

#[test]
fn the_variable_of_the_second_autoscaler_leaves_restart_policies_alone() {
    let mut cluster = cluster_with(&json!([group("a", 1)]));
    let spec = &mut cluster["spec"];
    spec["enableInTreeAutoscaling"] = json!(true);
    let variable = json!([{"name": "RAY_enable_autoscaler_v2", "value": "1"}]);
    spec["headGroupSpec"]["template"]["spec"]["containers"][0]["env"] = variable;
    spec["workerGroupSpecs"][0]["template"]["spec"]["restartPolicy"] = json!("Always");
    let pods = created(&steps(&cluster, &[], &[]), "Pod");
    let policies: Vec<&Value> = pods.iter().map(|pod| &pod["spec"]["restartPolicy"]).collect();
    assert_eq!(policies, [&Value::Null, &json!("Always")], "the head, a worker");
}

#[test]
fn a_repeated_pass_gives_its_pods_the_same_names() {
    let cluster = cluster_with(&json!([group("w", 900)]));
    let names = pods_of(1, &cluster, &[]);
    assert_eq!(names, pods_of(2, &cluster, &[]));
    let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), 901);
    assert!(names.iter().all(|name| name.len() <= 63), "{names:?}");
    assert!(names[0].starts_with("c1-head-"), "{}", names[0]);
    // A cluster of the same name that is made later has pods of other names.
    let mut later = cluster;
    later["metadata"]["uid"] = json!("u2");
    assert!(pods_of(1, &later, &[]).iter().all(|name| !names.contains(name)));
}

/// A create without an answer is repeated before the cluster has changed.
#[test]
fn a_worker_of_an_autoscaler_has_one_name_until_its_cluster_changes() {
    for hosts in [1, 2] {
        let mut group = group("w", 3);
        group["numOfHosts"] = json!(hosts);
        let mut cluster = cluster_with(&json!([group]));
        cluster["spec"]["enableInTreeAutoscaling"] = json!(true);
        cluster["metadata"]["resourceVersion"] = json!("7");
        let names = pods_of(1, &cluster, &[]);
        assert_eq!(names.len(), 1 + 3 * hosts);
        assert!(names.iter().all(|name| name.starts_with("c1-")), "{names:?}");
        assert_eq!(names, pods_of(2, &cluster, &[]));
        cluster["metadata"]["resourceVersion"] = json!("8");
        let later = pods_of(1, &cluster, &[]);
        assert_eq!(later[0], names[0], "the head");
        assert!(later[1..].iter().all(|name| !names.contains(name)), "workers that come later");
    }
}

#[test]
fn a_worker_that_was_given_up_leaves_its_name() {
    let mut group = group("w", 1);
    let first = pods_of(1, &cluster_with(&json!([group])), &[]);
    group["scaleStrategy"] = json!({"workersToDelete": [first[1]]});
    let second = pods_of(1, &cluster_with(&json!([group])), &[]);
    assert_eq!(second[0], first[0], "the head");
    assert_ne!(second[1], first[1], "it would be deleted at once");
}

#[test]
fn the_head_of_another_operator_stays_and_is_taken_over() {
    let mut cluster = cluster_with(&json!([]));
    cluster["spec"]["upgradeStrategy"] = json!({"type": "Recreate"});
    let head = |version: &str| {
        let mut head = head_of("u1");
        head["metadata"]["resourceVersion"] = json!("5");
        head["metadata"]["annotations"] = json!({
            "ray.io/upgrade-strategy-recreate-hash": "HASHOFANOTHER",
            "ray.io/kuberay-version": version,
        });
        head
    };
    let is_delete = |step: &RayStep| matches!(step, RayStep::Delete(_));
    let mut foreign = head("v1.7.0");
    let orders = steps(&cluster, &[foreign.clone()], &[]);
    assert!(!orders.iter().any(is_delete));
    let patch = orders.iter().find_map(|step| match step {
        RayStep::Patch { target, patch } if target.kind == "Pod" => Some(patch),
        _ => None,
    });
    json_patch::merge(&mut foreign, patch.expect("the head gets the present hash"));
    assert_eq!(foreign["metadata"]["resourceVersion"], "5", "a later spec must not count as known");
    let version = OperatorSettings::default().version;
    assert_eq!(foreign["metadata"]["annotations"]["ray.io/kuberay-version"], version.as_str());
    let orders = steps(&cluster, &[foreign.clone()], &[]);
    assert!(!orders.iter().any(|step| is_delete(step) || matches!(step, RayStep::Patch { .. })));
    cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["image"] = json!("ray:2");
    assert!(steps(&cluster, &[foreign], &[]).iter().any(is_delete), "a later change");
    for annotations in
        [json!({"ray.io/upgrade-strategy-recreate-hash": "HASHOFANOTHER"}), json!({})]
    {
        let mut unnamed = head("");
        unnamed["metadata"]["annotations"] = annotations;
        let orders = steps(&cluster, &[unnamed], &[]);
        assert!(!orders.iter().any(is_delete), "a version that writes none");
        let is_patch =
            |step: &RayStep| matches!(step, RayStep::Patch { target, .. } if target.kind == "Pod");
        assert!(orders.iter().any(is_patch));
    }
    assert!(steps(&cluster, &[head(&version)], &[]).iter().any(is_delete), "an own head");
}
