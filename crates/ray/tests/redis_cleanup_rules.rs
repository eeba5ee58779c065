//! Rules for the removal of a cluster's keys from Redis that no recording shows.

use std::time::Duration;

use jiff::Timestamp;
use ray::{
    PassInputs, cluster, names,
    settings::OperatorSettings,
    step::{RayAnswer, RayRefusal, RayStep},
};
use serde_json::{Value, json};

const DELETED_AT: &str = "2026-01-01T00:00:00Z";

/// A cluster that is being deleted, with its state in Redis.
fn deleted_cluster(redis: &Value) -> Value {
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": "c1", "namespace": "default", "uid": "u1",
            "deletionTimestamp": DELETED_AT,
            "finalizers": [names::REDIS_FINALIZER],
        },
        "spec": {
            "headGroupSpec": {"template": {"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}}},
            "gcsFaultToleranceOptions": redis,
        },
    })
}

/// The steps so many seconds after the deletion.
fn steps_after(cluster: &Value, children: &[Value], seconds: i64) -> Vec<RayStep> {
    steps_with(cluster, children, &[], seconds)
}

fn steps_with(
    cluster: &Value,
    children: &[Value],
    answers: &[RayAnswer],
    seconds: i64,
) -> Vec<RayStep> {
    let deleted: Timestamp = DELETED_AT.parse().expect("a time");
    let now = Timestamp::from_second(deleted.as_second() + seconds).expect("a time");
    let inputs = PassInputs { now, seed: [1; 32] };
    let children: Vec<&Value> = children.iter().collect();
    cluster::decide(cluster, &children, answers, &inputs, &OperatorSettings::default())
}

fn set_timeout(cluster: &mut Value, seconds: &str) {
    cluster["metadata"]["annotations"] = json!({names::FT_DELETION_TIMEOUT: seconds});
}

/// Whether the finalizer is removed.
fn lets_go(cluster: &Value, children: &[Value], seconds: i64) -> bool {
    let steps = steps_after(cluster, children, seconds);
    steps.iter().any(|step| {
        matches!(step, RayStep::Patch { patch, .. } if patch["metadata"]["finalizers"] == json!([]))
    })
}

/// The script of the Job that removes the keys.
fn script(redis: &Value) -> String {
    let steps = steps_after(&deleted_cluster(redis), &[], 1);
    let job = steps.into_iter().find_map(|step| match step {
        RayStep::Create(job) if job["kind"] == "Job" => Some(job),
        _ => None,
    });
    let job = job.expect("a Job");
    job["spec"]["template"]["spec"]["containers"][0]["args"][0].as_str().expect("a text").to_owned()
}

#[test]
fn the_user_of_redis_logs_in_by_name() {
    let password = json!({"redisAddress": "redis:6379", "redisPassword": {"value": "p"}});
    assert!(!script(&password).contains("username"), "an old Ray knows no such parameter");
    let mut user = password.clone();
    user["redisUsername"] = json!({"valueFrom": {"secretKeyRef": {"name": "s", "key": "u"}}});
    let argument = "    username=os.environ.get('REDIS_USERNAME', url.username),\n";
    assert_eq!(script(&user).replacen(argument, "", 1), script(&password));
    assert!(script(&user).contains(argument));
}

#[test]
fn a_clean_up_that_takes_too_long_is_given_up() {
    let mut cluster = deleted_cluster(&json!({"redisAddress": "redis:6379"}));
    cluster["spec"]["gcsFaultToleranceOptions"]["externalStorageNamespace"] = json!("keys");
    assert!(!lets_go(&cluster, &[], 299));
    assert!(lets_go(&cluster, &[], 300));
    set_timeout(&mut cluster, "20");
    assert!(!lets_go(&cluster, &[], 19));
    assert!(lets_go(&cluster, &[], 20));
    for none in ["0", "-1", "x", ""] {
        set_timeout(&mut cluster, none);
        assert!(!lets_go(&cluster, &[], 299), "{none}");
        assert!(lets_go(&cluster, &[], 300), "{none}");
    }
    let removed = [RayAnswer::Done(Value::Null.into())];
    let event = steps_with(&cluster, &[], &removed, 300).into_iter().find_map(|step| match step {
        RayStep::Event(event) => Some((event.reason, event.message)),
        _ => None,
    });
    let message = "Force-removed GCS FT finalizer after 5m0s due to Redis cleanup timeout; Redis storage namespace \"keys\" may need manual cleanup";
    assert_eq!(event, Some(("ForceDeletedStuckCluster", message.to_owned())));
}

#[test]
fn a_head_that_may_still_write_keys_is_waited_for() {
    let cluster = deleted_cluster(&json!({"redisAddress": "redis:6379"}));
    let mut head = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "c1-head-x", "uid": "p1",
            "labels": {"ray.io/cluster": "c1", "ray.io/node-type": "head"},
            "ownerReferences": [{"kind": "RayCluster", "name": "c1", "uid": "u1", "controller": true}],
        },
    });
    let steps = steps_after(&cluster, &[head.clone()], 1000);
    assert!(matches!(&steps[..], [RayStep::Delete(pod)] if pod.name == "c1-head-x"), "{steps:?}");
    head["metadata"]["deletionTimestamp"] = json!(DELETED_AT);
    let wait = RayStep::RequeueAfter(Duration::from_secs(10));
    assert_eq!(steps_after(&cluster, &[head], 1000), [wait]);
}

/// Without the finalizer the keys of its pods would stay in Redis after a deletion.
#[test]
fn nothing_is_made_before_the_finalizer_is_stored() {
    let mut cluster = deleted_cluster(&json!({"redisAddress": "redis:6379"}));
    cluster["metadata"].as_object_mut().expect("an object").remove("deletionTimestamp");
    cluster["metadata"]["finalizers"] = json!([]);
    cluster["metadata"]["resourceVersion"] = json!("7");
    let steps = steps_with(&cluster, &[], &[], 1);
    let patch =
        json!({"metadata": {"finalizers": [names::REDIS_FINALIZER], "resourceVersion": "7"}});
    let [RayStep::Patch { patch: first, .. }] = &steps[..] else { unreachable!("{steps:?}") };
    assert_eq!(*first, patch);
    let soon = RayStep::RequeueAfter(Duration::from_secs(2));
    for code in [409, 404] {
        let steps = steps_with(&cluster, &[], &[refused(code)], 1);
        assert_eq!(
            steps,
            std::slice::from_ref(&soon),
            "{code}: the cluster that comes next is looked at"
        );
    }
    for code in [403, 500] {
        let steps = steps_with(&cluster, &[], &[refused(code)], 1);
        assert_eq!(warnings(&steps), [CANNOT_STORE], "{code}");
        assert!(steps.contains(&soon) && !steps.iter().any(RayStep::is_order), "{steps:?}");
    }
    let stored = [RayAnswer::Done(Value::Null.into())];
    let is_made = |step: &RayStep| matches!(step, RayStep::Create(_));
    assert!(steps_with(&cluster, &[], &stored, 1).iter().any(is_made));
}

const CANNOT_STORE: (&str, &str) = (
    "FailedToUpdateRayCluster",
    "Failed to update the finalizers of the RayCluster default/c1: no",
);

fn refused(code: u16) -> RayAnswer {
    RayAnswer::Refused(RayRefusal { code, message: "no".to_owned() })
}

fn warnings(steps: &[RayStep]) -> Vec<(&str, &str)> {
    let warnings = steps.iter().filter_map(|step| match step {
        RayStep::Event(event) if event.warning => Some((event.reason, event.message.as_str())),
        _ => None,
    });
    warnings.collect()
}

/// Its quota must come back.
#[test]
fn a_cluster_is_suspended_although_the_finalizer_cannot_be_stored() {
    let mut cluster = deleted_cluster(&json!({"redisAddress": "redis:6379"}));
    cluster["metadata"].as_object_mut().expect("an object").remove("deletionTimestamp");
    cluster["metadata"]["finalizers"] = json!([]);
    cluster["spec"]["suspend"] = json!(true);
    let child = |kind: &str, name: &str| {
        json!({
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {
                "name": name, "uid": name,
                "labels": {"ray.io/cluster": "c1", "ray.io/node-type": "head"},
                "ownerReferences": [
                    {"kind": "RayCluster", "name": "c1", "uid": "u1", "controller": true},
                ],
            },
        })
    };
    let children = [child("Pod", "c1-head-x"), child("Service", "c1-head-svc")];
    let steps = steps_with(&cluster, &children, &[refused(403)], 1);
    assert_eq!(warnings(&steps), [CANNOT_STORE]);
    let status = steps.iter().find_map(|step| match step {
        RayStep::ReplaceStatus(status) => Some(status),
        _ => None,
    });
    let status = status.expect("a status").clone();
    let suspending = json!("RayClusterSuspending");
    let is_suspending = |it: &Value| it["type"] == suspending && it["status"] == "True";
    assert!(status["conditions"].as_array().expect("conditions").iter().any(is_suspending));
    cluster["status"] = status;
    let steps = steps_with(&cluster, &children, &[refused(403)], 1);
    let is_deletion =
        |step: &RayStep| matches!(step, RayStep::Delete(pod) if pod.name == "c1-head-x");
    assert!(steps.iter().any(is_deletion), "{steps:?}");
}

#[test]
fn a_finalizer_that_cannot_be_removed_is_an_event() {
    let cluster = deleted_cluster(&json!({"redisAddress": "redis:6379"}));
    let steps = steps_with(&cluster, &[], &[refused(403)], 300);
    let [_, cannot_remove] = warnings(&steps)[..] else { unreachable!("{steps:?}") };
    assert_eq!(cannot_remove, CANNOT_STORE);
    let steps = steps_with(&cluster, &[], &[refused(404)], 300);
    assert_eq!(warnings(&steps).len(), 1, "the cluster is gone");
}

/// Kueue removes its gates from pods of an admitted RayCluster only.
#[test]
fn the_pod_of_a_clean_up_has_no_gate_of_an_admission() {
    let mut cluster = deleted_cluster(&json!({"redisAddress": "redis:6379"}));
    let gate = |name: &str| json!({"name": name});
    let gates_of = |cluster: &Value| {
        let steps = steps_after(cluster, &[], 1);
        let job = steps.iter().find_map(|step| match step {
            RayStep::Create(job) if job["kind"] == "Job" => Some(job),
            _ => None,
        });
        job.expect("a Job")["spec"]["template"]["spec"].get("schedulingGates").cloned()
    };
    let template = "/spec/headGroupSpec/template";
    let kueue = [gate("kueue.x-k8s.io/elastic-job"), gate("kueue.x-k8s.io/topology")];
    let head = &mut cluster.pointer_mut(template).expect("a template")["spec"];
    head["schedulingGates"] = json!(kueue);
    assert_eq!(gates_of(&cluster), None);
    let head = &mut cluster.pointer_mut(template).expect("a template")["spec"];
    head["schedulingGates"] = json!([kueue[0], gate("example.com/own"), kueue[1]]);
    assert_eq!(gates_of(&cluster), Some(json!([gate("example.com/own")])));
    // Without Kueue's webhook the operator adds the gate to the head itself.
    let head = cluster.pointer_mut(template).expect("a template");
    head["metadata"]["annotations"] = json!({"kueue.x-k8s.io/workload-slice-name": "w"});
    head["spec"]["schedulingGates"] = Value::Null;
    assert_eq!(gates_of(&cluster), None);
}
