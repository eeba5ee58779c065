//! A RayJob of mode InteractiveMode that waits until the user has named its job.

use serde_json::json;

use super::{cluster, pass, ray_job, running, unreachable};

/// The phase and the reason after a pass over a RayJob that began years ago.
fn after(spec: &serde_json::Value) -> Option<(String, String)> {
    let mut waiting = running();
    waiting["jobDeploymentStatus"] = json!("Waiting");
    waiting["jobId"] = json!("");
    waiting["startTime"] = json!("2020-01-01T00:00:00Z");
    let mut job = ray_job(spec, &waiting);
    job["spec"]["submissionMode"] = json!("InteractiveMode");
    let done = pass(&job, &[cluster()], unreachable);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    done.status().map(|it| (text(&it["jobDeploymentStatus"]), text(&it["reason"])))
}

fn moved(phase: &str, reason: &str) -> Option<(String, String)> {
    Some((phase.to_owned(), reason.to_owned()))
}

#[test]
fn only_the_deadline_of_the_time_before_the_job_ends_it() {
    assert_eq!(after(&json!({"activeDeadlineSeconds": 1})), None);
    let named = json!({"activeDeadlineSeconds": 1, "jobId": "mine"});
    assert_eq!(after(&named), moved("Running", ""));
    let late = json!({"activeDeadlineSeconds": 1, "preRunningDeadlineSeconds": 1});
    assert_eq!(after(&late), moved("Failed", "PreRunningDeadlineExceeded"));
}

#[test]
fn a_suspension_frees_its_quota() {
    let spec = json!({
        "suspend": true, "shutdownAfterJobFinishes": true, "preRunningDeadlineSeconds": 1,
    });
    assert_eq!(after(&spec), moved("Suspending", ""));
}
