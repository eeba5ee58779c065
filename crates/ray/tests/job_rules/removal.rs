//! What goes with the end of a RayJob.

use ray::{
    settings::OperatorSettings,
    step::{RayAnswer, RayStep},
};
use serde_json::{Value, json};

use crate::{cluster, pass_with, ray_job, unreachable};

/// A RayJob that succeeded some time ago.
fn ended(metadata: &Value, spec: &Value) -> Value {
    let status = json!({
        "jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "jobId": "id",
        "rayClusterName": "rj-a", "startTime": "2026-01-01T00:00:00Z",
        "endTime": "2026-01-01T00:00:30Z",
    });
    let mut job = ray_job(spec, &status);
    json_patch::merge(&mut job["metadata"], metadata);
    job
}

/// The kinds that a pass deletes, with the switch of finished jobs.
fn deleted(job: &Value) -> Vec<String> {
    let settings = OperatorSettings { delete_finished_jobs: true, ..OperatorSettings::default() };
    let create = |object: &Value| RayAnswer::Done(object.clone().into());
    let done = pass_with(job, &[cluster()], unreachable, create, &settings);
    let kinds = done.orders.into_iter().filter_map(|step| match step {
        RayStep::Delete(target) => Some(target.kind),
        _ => None,
    });
    kinds.collect()
}

fn owned_by(kind: &str) -> Value {
    json!({"ownerReferences": [{"kind": kind, "name": "o", "uid": "o", "controller": true}]})
}

/// By the switch, and by a rule.
fn removals() -> [Value; 2] {
    let rule = json!({"policy": "DeleteSelf", "condition": {"jobStatus": "SUCCEEDED"}});
    [
        json!({"shutdownAfterJobFinishes": true}),
        json!({"deletionStrategy": {"deletionRules": [rule]}}),
    ]
}

#[test]
fn an_ended_job_goes_by_the_switch_or_by_its_rule() {
    for spec in removals() {
        assert_eq!(deleted(&ended(&json!({}), &spec)), ["RayJob"], "{spec}");
        // A RayCronJob neither reads nor removes its RayJobs.
        assert_eq!(deleted(&ended(&owned_by("RayCronJob"), &spec)), ["RayJob"], "{spec}");
    }
}

#[test]
fn the_end_of_a_copy_or_of_a_component_stays_readable() {
    let copy = json!({"labels": {"kueue.x-k8s.io/multikueue-origin": "hub"}});
    for metadata in [copy, owned_by("AppWrapper")] {
        for spec in removals() {
            assert_eq!(deleted(&ended(&metadata, &spec)), ["RayCluster"], "{metadata} {spec}");
        }
    }
}
