//! Rules of what goes with the end of a RayJob, without a recording.

use jiff::Timestamp;
use ray::{
    Moment, job,
    settings::OperatorSettings,
    step::{RayAnswer, RayStep},
};
use serde_json::{Value, json};

/// A RayJob that succeeded some time ago.
fn ended(metadata: &Value, spec: &Value) -> Value {
    let container = json!({"name": "ray", "image": "ray:1"});
    let mut job = json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": "rj", "namespace": "ns", "uid": "u", "resourceVersion": "7",
            "finalizers": ["ray.io/rayjob-finalizer"],
        },
        "spec": {
            "submissionMode": "HTTPMode",
            "entrypoint": "python main.py",
            "rayClusterSpec": {"headGroupSpec": {"template": {"spec": {"containers": [container]}}}},
        },
        "status": {
            "jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "jobId": "id",
            "rayClusterName": "rj-a", "startTime": "2026-01-01T00:00:00Z",
            "endTime": "2026-01-01T00:00:30Z",
        },
    });
    json_patch::merge(&mut job["metadata"], metadata);
    json_patch::merge(&mut job["spec"], spec);
    job
}

/// The kinds that a pass deletes, with the switch of finished jobs.
fn deleted(job: &Value) -> Vec<String> {
    let now: Timestamp = "2026-01-01T00:01:00Z".parse().expect("a time");
    let moment = Moment { now, seed: [3; 32] };
    let settings = OperatorSettings { delete_finished_jobs: true, ..OperatorSettings::default() };
    let cluster = json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": "rj-a", "namespace": "ns", "uid": "c",
            "ownerReferences": [{"kind": "RayJob", "uid": "u", "controller": true}],
        },
        "spec": job["spec"]["rayClusterSpec"],
    });
    let (mut kinds, mut answers) = (Vec::new(), Vec::new());
    loop {
        let steps = job::decide(job, &[&cluster], &answers, &moment, &settings);
        if !steps.iter().any(RayStep::is_order) {
            return kinds;
        }
        for step in steps {
            if let RayStep::Delete(target) = step {
                kinds.push(target.kind);
            }
            answers.push(RayAnswer::Done(Value::Null.into()));
        }
    }
}

fn owned_by(kind: &str) -> Value {
    json!({"ownerReferences": [{"kind": kind, "name": "o", "uid": "o", "controller": true}]})
}

#[test]
fn an_ended_job_goes_by_the_switch_or_by_its_rule() {
    let shutdown = json!({"shutdownAfterJobFinishes": true});
    let rule = json!({"policy": "DeleteSelf", "condition": {"jobStatus": "SUCCEEDED"}});
    let rules = json!({"deletionStrategy": {"deletionRules": [rule]}});
    for spec in [&shutdown, &rules] {
        assert_eq!(deleted(&ended(&json!({}), spec)), ["RayJob"], "{spec}");
        // A RayCronJob neither reads nor removes its RayJobs.
        assert_eq!(deleted(&ended(&owned_by("RayCronJob"), spec)), ["RayJob"], "{spec}");
    }
}

#[test]
fn the_end_of_a_copy_or_of_a_component_stays_readable() {
    let shutdown = json!({"shutdownAfterJobFinishes": true});
    let rule = json!({"policy": "DeleteSelf", "condition": {"jobStatus": "SUCCEEDED"}});
    let rules = json!({"deletionStrategy": {"deletionRules": [rule]}});
    let copy = json!({"labels": {"kueue.x-k8s.io/multikueue-origin": "hub"}});
    for metadata in [copy, owned_by("AppWrapper")] {
        for spec in [&shutdown, &rules] {
            assert_eq!(deleted(&ended(&metadata, spec)), ["RayCluster"], "{metadata} {spec}");
        }
    }
}
