//! The kubelets of the recording: they run pods as their annotations say, and end them.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::pod_status::{end_containers, outcome, seconds, set_ready, terminate};

/// How long a deleted pod takes to go.
pub(super) fn stop_time(pod: &Value) -> SignedDuration {
    SignedDuration::from_secs(seconds(pod, "stop-seconds").unwrap_or(0))
}

/// When a deleted pod goes.
pub(super) fn stops_at(pod: &Value) -> Option<Timestamp> {
    let deleted: Timestamp = pod["metadata"]["deletionTimestamp"].as_str()?.parse().ok()?;
    deleted.checked_add(stop_time(pod)).ok()
}

/// When the containers of a pod end by themselves, if it runs since `started`.
pub(super) fn ends_at(pod: &Value, started: Timestamp) -> Option<Timestamp> {
    let policy = pod["spec"]["restartPolicy"].as_str().unwrap_or("Always");
    if pod["status"]["phase"] != "Running" || policy == "Always" || is_never_ready(pod) {
        return None;
    }
    let runs = seconds(pod, "run-seconds").unwrap_or(0);
    started.checked_add(SignedDuration::from_secs(runs)).ok()
}

/// Moves a pod on that is not being deleted.
pub(super) fn advance(pod: &mut Value, started: Timestamp, now: Timestamp) {
    match pod["status"]["phase"].as_str() {
        None if !is_scheduled(pod) => {
            pod["status"] = json!({"phase": "Pending", "conditions": []});
        }
        None => run(pod, !is_never_ready(pod)),
        Some("Running") if ends_at(pod, started).is_some_and(|end| end <= now) => {
            end(pod, now);
        }
        Some(_) => {}
    }
}

fn is_never_ready(pod: &Value) -> bool {
    pod["metadata"]["annotations"]["lab.sluice.dev/never-ready"] == "true"
}

/// No node has labels that pods ask for, and no claim gets a volume.
fn is_scheduled(pod: &Value) -> bool {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let waits = |volume: &Value| !volume["persistentVolumeClaim"].is_null();
    pod["spec"]["nodeSelector"]["no"].is_null() && !volumes.into_iter().any(waits)
}

fn run(pod: &mut Value, ready: bool) {
    let names = pod["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let statuses: Vec<Value> = names
        .iter()
        .map(|it| json!({"name": it["name"], "ready": ready, "state": {"running": {}}}))
        .collect();
    pod["status"] = json!({"phase": "Running", "containerStatuses": statuses, "podIP": "<ip>"});
    set_ready(pod, ready, None);
}

/// Ends the containers with the exit code that the pod asks for.
fn end(pod: &mut Value, now: Timestamp) {
    let code = seconds(pod, "exit-code").unwrap_or(0);
    let (phase, of_pod, of_container) = outcome(code);
    end_containers(pod, &json!({"exitCode": code, "reason": of_container}), now);
    pod["status"]["phase"] = json!(phase);
    set_ready(pod, false, Some(of_pod));
}

/// Ends a pod that was deleted.
pub(super) fn stop(pod: &mut Value) {
    terminate(pod, None, 143, "Error");
    pod["status"]["phase"] = json!("Failed");
    set_ready(pod, false, Some("PodFailed"));
}
