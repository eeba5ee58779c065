//! What each built-in kind reports, by status (docs/reference/kueue.md §7.8): active pods, readiness, end, reclaimable pods.

use std::collections::BTreeSet;

use jobs::{GenericJob, JobObject, Kinds};
use serde_json::{Value, json};

use super::{found, samples};

/// Their pods are jobs, or belong to groups that start and end.
const SETS: [&str; 3] = ["Deployment", "StatefulSet", "LeaderWorkerSet"];

/// The sample of a kind with this status.
fn job(kind: &str, status: &Value) -> JobObject {
    let samples = samples();
    let sample = samples.iter().find(|one| one["kind"] == kind).expect("a sample");
    let mut object = sample.clone();
    object["status"] = status.clone();
    let text = |field: &str| sample[field].as_str().expect("text");
    let kind = Kinds::built_in().find(text("apiVersion"), text("kind")).expect("it is built in");
    let job = kind.decode(object).expect("it decodes");
    let found = found(&job, &samples);
    job.with_objects(&found)
}

/// Its answers in words.
fn in_words(job: &JobObject) -> String {
    let mut words = vec![];
    if job.is_active() {
        words.push("active".to_owned());
    }
    if job.pods_ready() {
        words.push("ready".to_owned());
    }
    if let Some(outcome) = job.finished() {
        words.push(if outcome.success { "succeeded" } else { "failed" }.to_owned());
    }
    for pods in job.reclaimable_pods() {
        words.push(format!("reclaims {}={}", pods.name, pods.count));
    }
    words.join(" ")
}

fn condition(name: &str) -> Value {
    json!({ "conditions": [{ "type": name, "status": "True" }] })
}

/// Status and expected answers of a kind; `None` if it has no table.
fn table(kind: &str) -> Option<Vec<(Value, &'static str)>> {
    Some(match kind {
        "Job" => vec![
            (json!({ "active": 2 }), "active"),
            (json!({ "active": 2, "ready": 2 }), "active ready"),
            (json!({ "active": 1, "ready": 1, "succeeded": 3 }), "active ready reclaims main=1"),
            (condition("Complete"), "succeeded"),
            (condition("Failed"), "failed"),
        ],
        "PyTorchJob" | "TFJob" | "XGBoostJob" | "PaddleJob" | "JAXJob" | "MPIJob" => vec![
            (json!({ "replicaStatuses": { "Worker": { "active": 1 } } }), "active"),
            (json!({ "replicaStatuses": { "Worker": { "succeeded": 1 } } }), ""),
            (condition("Running"), "ready"),
            (condition("Succeeded"), "succeeded"),
            (condition("Failed"), "failed"),
        ],
        "RayCluster" => vec![
            (json!({ "state": "suspended" }), ""),
            (json!({ "state": "ready" }), "active ready"),
            (json!({ "state": "failed" }), ""),
        ],
        "RayService" => vec![(condition("Running"), ""), (condition("Ready"), "active ready")],
        "RayJob" => vec![
            (json!({ "jobDeploymentStatus": "Suspended" }), ""),
            (json!({ "jobDeploymentStatus": "Initializing" }), "active"),
            (json!({ "jobDeploymentStatus": "Waiting" }), "active"),
            (json!({ "jobDeploymentStatus": "Suspending" }), "active"),
            (json!({ "jobDeploymentStatus": "Retrying" }), "active"),
            (json!({ "jobDeploymentStatus": "ValidationFailed" }), "active failed"),
            // The operator leaves its RayCluster as it is: the pods run on.
            (
                json!({
                    "jobDeploymentStatus": "ValidationFailed",
                    "jobStatus": "FAILED",
                    "rayClusterName": "rayjob-abcde",
                    "rayClusterStatus": { "state": "ready" },
                }),
                "active ready",
            ),
            (
                json!({ "jobDeploymentStatus": "Running", "rayClusterStatus": { "state": "ready" } }),
                "active ready",
            ),
            (
                json!({ "jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED" }),
                "active succeeded",
            ),
            (json!({ "jobDeploymentStatus": "Failed", "jobStatus": "FAILED" }), "active failed"),
        ],
        "AppWrapper" => vec![
            (condition("QuotaReserved"), "active"),
            (condition("PodsReady"), "ready"),
            (json!({ "phase": "Succeeded" }), "succeeded"),
            (json!({ "phase": "Failed" }), "failed"),
            (
                json!({
                    "phase": "Failed",
                    "conditions": [{ "type": "ResourcesDeployed", "status": "True" }],
                }),
                "",
            ),
        ],
        "SparkApplication" => {
            let state = |state: &str, executors: &Value| json!({ "applicationState": { "state": state }, "executorState": executors });
            let all_run = json!({ "1": "RUNNING", "2": "RUNNING" });
            vec![
                // Executors count only while the application runs.
                (state("", &all_run), ""),
                (state("SUSPENDED", &all_run), ""),
                (state("RESUMING", &all_run), ""),
                (state("PENDING_RERUN", &all_run), ""),
                (state("UNKNOWN", &all_run), ""),
                (state("RUNNING", &json!({ "1": "RUNNING" })), "active"),
                (state("RUNNING", &json!({ "1": "RUNNING", "2": "COMPLETED" })), "active ready"),
                (state("RUNNING", &json!({ "1": "RUNNING", "2": "FAILED" })), "active"),
                (state("COMPLETED", &json!({})), "succeeded"),
                (state("FAILED", &json!({})), "failed"),
                // The operator submits again, or goes on to FAILED.
                (state("SUBMISSION_FAILED", &json!({})), ""),
            ]
        }
        "Pod" => vec![
            (json!({ "phase": "Running" }), ""),
            (
                json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] }),
                "ready",
            ),
            (json!({ "phase": "Succeeded" }), "succeeded"),
            (json!({ "phase": "Failed" }), "failed"),
        ],
        "JobSet" | "TrainJob" => {
            vec![(condition("Failed"), "failed")]
        }
        _ => return None,
    })
}

#[test]
fn every_kind_reports_what_its_status_says() {
    let kinds = Kinds::built_in().iter().map(jobs::Kind::name);
    let mut differences = vec![];
    for kind in kinds.filter(|kind| !SETS.contains(kind)) {
        let rows = table(kind).unwrap_or_else(|| panic!("{kind} has no table"));
        let idle = (json!({}), "");
        for (status, expected) in std::iter::once(idle).chain(rows) {
            let answers = in_words(&job(kind, &status));
            if answers != expected {
                differences.push(format!("{kind} {status}: {answers:?}, expected {expected:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Only COMPLETED and FAILED are ends, and only RUNNING can be ready.
#[test]
fn a_spark_application_between_two_states_has_neither_ended_nor_is_ready() {
    for state in ["SUBMITTED", "SUCCEEDING", "FAILING", "INVALIDATING", "SUSPENDING"] {
        let executors = json!({ "1": "RUNNING", "2": "RUNNING" });
        let status = json!({ "applicationState": { "state": state }, "executorState": executors });
        let job = job("SparkApplication", &status);
        assert!(job.finished().is_none(), "{state}");
        assert!(!job.pods_ready(), "{state}");
    }
}

/// Succeeded replicas of a job of a JobSet are reclaimed pod by pod; a TrainJob runs as a JobSet.
#[test]
fn replicated_jobs_are_counted_by_replica() {
    let names = |job: &JobObject| -> BTreeSet<String> {
        job.pod_sets(jobs::JobGates::default()).into_iter().map(|set| set.name).collect()
    };
    for (kind, field, done) in
        [("JobSet", "replicatedJobsStatus", "Completed"), ("TrainJob", "jobsStatus", "Complete")]
    {
        let name = names(&job(kind, &json!({}))).pop_first().expect("a pod set");
        let entry = |counts: Value| {
            let mut entry = counts;
            entry["name"] = json!(name);
            job(kind, &json!({ field: [entry] }))
        };
        assert!(entry(json!({ "active": 1 })).is_active(), "{kind}");
        assert!(!entry(json!({ "active": 0 })).is_active(), "{kind}");
        assert!(!entry(json!({ "active": 1 })).pods_ready(), "{kind}");
        let all = job(kind, &json!({ field: [{ "name": name, "ready": 1, "succeeded": 99 }] }));
        assert!(!all.pods_ready(), "{kind}: more than there are");
        let succeeded = entry(json!({ "succeeded": 1 })).reclaimable_pods();
        assert_eq!(succeeded.iter().map(|pods| &*pods.name).collect::<Vec<_>>(), [&*name]);
        assert!(job(kind, &condition(done)).finished().is_some_and(|end| end.success), "{kind}");
    }
}
