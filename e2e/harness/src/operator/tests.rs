//! A made-up kind with a map of counts and a phase, and JobSet with a list of counts and conditions.

use jobs::{Kind, Kinds};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::replicated_pods::TemplateObjects;
use super::step::{OperatorStep, next_step};

const TRAINING: &str = "
framework: example.com/training
group: example.com
version: v1
kind: Training
plural: trainings
suspend: /spec/run/suspend
managedBy: { at: /spec/run/managedBy, controller: example.com/trainer }
fields:
  podSets:
  - { name: { fixed: driver }, within: /spec/driver, template: /template }
  - { name: { fixed: worker }, template: /spec/worker/template, replicas: { at: /spec/worker/replicas } }
  outcomes:
  - values: { at: /status/state, succeeded: [Done], failed: [Broken], message: /status/reason }
  active: { anyAbove: [/status/running/*] }
  ready: { in: { at: /status/state, values: [Running] } }
";

fn training(suspend: bool) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Training",
        "metadata": { "name": "t", "namespace": "ns", "uid": "u" },
        "spec": {
            "run": { "suspend": suspend },
            "driver": { "template": { "spec": { "restartPolicy": "Never" } } },
            "worker": { "replicas": 1, "template": { "metadata": { "labels": { "own": "1" } }, "spec": {} } },
        },
    })
}

fn job_set() -> Value {
    json!({
        "metadata": { "name": "s", "namespace": "ns", "uid": "u" },
        "spec": { "suspend": false, "replicatedJobs": [
            { "name": "a", "replicas": 2, "template": { "spec": { "parallelism": 2, "template": { "spec": {} } } } },
        ] },
    })
}

fn step(kind: &Kind, job: &Value, pods: &[Value]) -> OperatorStep {
    let pods: Vec<Pod> =
        pods.iter().map(|pod| serde_json::from_value(pod.clone()).expect("a pod")).collect();
    next_step(
        (kind, &TemplateObjects::new()),
        job,
        &pods.iter().collect::<Vec<_>>(),
        Timestamp::UNIX_EPOCH,
    )
}

/// The pods that a step creates, in this state.
fn pods(step: &OperatorStep, phase: &str, ready: bool) -> Vec<Value> {
    let ready = if ready { "True" } else { "False" };
    let status = json!({ "phase": phase, "conditions": [{ "type": "Ready", "status": ready }] });
    let with_status = |pod: &Value| {
        let mut pod = pod.clone();
        pod["status"] = status.clone();
        pod
    };
    step.create.iter().map(with_status).collect()
}

#[test]
fn pods_are_created_from_their_templates_and_deleted_when_the_job_is_suspended() {
    let kind = Kind::parse(TRAINING).expect("a kind");
    assert!(step(&kind, &training(true), &[]).create.is_empty());
    let started = step(&kind, &training(false), &[]);
    let names: Vec<&str> =
        started.create.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
    assert_eq!(names, ["t-driver-0-0", "t-worker-0-0"]);
    assert_eq!(started.create[0]["spec"]["restartPolicy"], "Never");
    assert_eq!(started.create[1]["metadata"]["labels"]["own"], "1");
    let running = pods(&started, "Running", true);
    assert!(step(&kind, &training(false), &running).create.is_empty());
    assert_eq!(step(&kind, &training(true), &running).delete, names);
}

#[test]
fn counts_and_phase_are_written_where_the_definition_reads_them() {
    let kind = Kind::parse(TRAINING).expect("a kind");
    let started = step(&kind, &training(false), &[]);
    let starting = pods(&started, "Running", false);
    let status = step(&kind, &training(false), &starting).status.expect("another status");
    assert_eq!(status["status"], json!({ "running": { "driver": 1, "worker": 1 } }));
    let running = pods(&started, "Running", true);
    let ready = step(&kind, &status, &running).status.expect("another status");
    assert_eq!(ready["status"]["state"], "Running");
    assert_eq!(step(&kind, &ready, &running).status, None);
    let mut suspended = ready;
    suspended["spec"]["run"]["suspend"] = json!(true);
    let idle = step(&kind, &suspended, &[]).status.expect("another status");
    assert_eq!(idle["status"], json!({ "running": { "driver": 0, "worker": 0 } }));
}

#[test]
fn a_result_stays_and_the_other_pods_are_deleted() {
    let kind = Kind::parse(TRAINING).expect("a kind");
    let started = step(&kind, &training(false), &[]);
    let mut pods_now = pods(&started, "Succeeded", false);
    let done = step(&kind, &training(false), &pods_now).status.expect("another status");
    assert_eq!(done["status"]["state"], "Done");
    assert_eq!(done["status"]["reason"], "all pods succeeded");
    assert_eq!(step(&kind, &done, &[]).create, Vec::<Value>::new());

    pods_now[0] = pods(&started, "Failed", false)[0].clone();
    pods_now[1] = pods(&started, "Running", true)[1].clone();
    let failed = step(&kind, &training(false), &pods_now);
    assert_eq!(failed.status.expect("another status")["status"]["state"], "Broken");
    assert_eq!(failed.delete, ["t-worker-0-0"]);
}

#[test]
fn a_job_of_another_controller_is_left_alone() {
    let kind = Kind::parse(TRAINING).expect("a kind");
    let mut job = training(false);
    job["spec"]["run"]["managedBy"] = json!("kueue.x-k8s.io/multikueue");
    assert_eq!(step(&kind, &job, &[]), OperatorStep::default());
    job["spec"]["run"]["managedBy"] = json!("example.com/trainer");
    assert_eq!(step(&kind, &job, &[]).create.len(), 2);
}

#[test]
fn a_job_set_counts_replicas_in_a_list() {
    let kind = Kinds::built_in().of_framework("jobset.x-k8s.io/jobset").expect("JobSet");
    let started = step(kind, &job_set(), &[]);
    assert_eq!(started.create.len(), 4);
    let mut pods_now = pods(&started, "Running", true);
    pods_now[0] = pods(&started, "Succeeded", false)[0].clone();
    pods_now[1] = pods(&started, "Succeeded", false)[1].clone();
    let running = step(kind, &job_set(), &pods_now).status.expect("another status");
    let expected = json!([{ "name": "a", "active": 1, "ready": 1, "succeeded": 1 }]);
    assert_eq!(running["status"]["replicatedJobsStatus"], expected);
    let all = pods(&started, "Succeeded", false);
    let done = step(kind, &running, &all).status.expect("another status");
    assert_eq!(done["status"]["conditions"][0]["type"], "Completed");
    assert_eq!(done["status"]["replicatedJobsStatus"][0]["succeeded"], 2);
}
