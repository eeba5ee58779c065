//! What goes with the end of a RayJob.

use ray::{
    PassInputs, job,
    settings::OperatorSettings,
    step::{RayAnswer, RayRefusal, RayStep},
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

/// The finalizers may be taken away by hand, and their return be refused by a webhook.
#[test]
fn a_finalizer_that_is_refused_is_an_event_and_holds_up_no_job_that_was_begun() {
    let with_status = |status: &Value| {
        let mut job = ray_job(&json!({"suspend": true, "shutdownAfterJobFinishes": true}), status);
        job["metadata"]["finalizers"] = json!([]);
        job
    };
    let run = |job: &Value, code: u16| {
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let inputs = PassInputs { now, seed: [3; 32] };
        let cluster = cluster();
        let children = [&cluster];
        let refused = RayAnswer::Refused(RayRefusal { code, message: "no".to_owned() });
        let (mut orders, mut answers) = (Vec::new(), vec![refused]);
        loop {
            let steps =
                job::decide(job, &children, &answers, &inputs, &OperatorSettings::default());
            if !steps.iter().any(RayStep::is_order) {
                let reasons = steps.iter().filter_map(|step| match step {
                    RayStep::Event(event) => Some(event.reason),
                    _ => None,
                });
                return (orders, reasons.collect::<Vec<_>>());
            }
            answers.extend(steps.iter().map(|_| RayAnswer::Done(Value::Null.into())));
            orders.extend(steps);
        }
    };
    let stopping = json!({"jobDeploymentStatus": "Suspending", "rayClusterName": "rj-a"});
    let (orders, reasons) = run(&with_status(&stopping), 403);
    let deletes = |step: &RayStep| matches!(step, RayStep::Delete(it) if it.kind == "RayCluster");
    assert!(orders.iter().any(deletes), "its quota comes back: {orders:?}");
    assert_eq!(reasons, ["FailedToUpdateRayJob", "DeletedRayCluster"]);
    // The object has changed or is gone: another pass follows, or none.
    for code in [409, 404] {
        assert_eq!(run(&with_status(&stopping), code), (vec![], vec![]), "{code}");
    }
    // A new one would make objects without the finalizer.
    assert_eq!(run(&with_status(&Value::Null), 403), (vec![], vec!["FailedToUpdateRayJob"]));
    let mut deleted = ray_job(&json!({}), &Value::Null);
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(run(&deleted, 403), (vec![], vec!["FailedToUpdateRayJob"]));
}
