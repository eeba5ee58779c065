//! The status of a pod, as kubelets and recorded operations set it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::operations::selected;

/// Sets what an operation says of the pods that it selects.
pub(crate) fn set_selected(
    objects: &mut BTreeMap<String, Value>,
    operation: &Value,
    now: Timestamp,
) {
    for id in selected(objects, operation) {
        if let Some(pod) = objects.get_mut(&id) {
            set_status(pod, &operation["status"], now);
        }
    }
}

/// The seconds, or another number, of an annotation of the recording.
pub(crate) fn seconds(pod: &Value, annotation: &str) -> Option<i64> {
    let text = pod["metadata"]["annotations"][format!("lab.sluice.dev/{annotation}")].as_str();
    text.and_then(|text| text.parse().ok())
}

/// The phase of a pod of which all containers have ended with this code, its reason, and that of the containers.
pub(crate) fn outcome(code: i64) -> (&'static str, &'static str, &'static str) {
    match code {
        0 => ("Succeeded", "PodCompleted", "Completed"),
        _ => ("Failed", "PodFailed", "Error"),
    }
}

/// Sets what an operation says of a pod: `ready` and `terminate` stand for several fields, others are set as they are.
fn set_status(pod: &mut Value, status: &Value, now: Timestamp) {
    for (name, value) in status.as_object().into_iter().flatten() {
        match name.as_str() {
            "ready" => set_readiness(pod, *value == true),
            "terminate" => end_containers(pod, value, now),
            _ => pod["status"][name] = value.clone(),
        }
    }
}

fn set_readiness(pod: &mut Value, ready: bool) {
    set_ready(pod, ready, None);
    let conditions = pod["status"]["conditions"].as_array_mut().into_iter().flatten();
    for condition in conditions.filter(|_| !ready) {
        condition["message"] = json!("containers with unready status");
    }
}

pub(crate) fn end_containers(pod: &mut Value, end: &Value, now: Timestamp) {
    let reason = end["reason"].as_str().unwrap_or("Error");
    let code = end["exitCode"].as_i64().unwrap_or_default();
    terminate(pod, end["container"].as_str(), code, reason);
    for status in pod["status"]["containerStatuses"].as_array_mut().into_iter().flatten() {
        if !status["state"]["terminated"].is_null() {
            status["state"]["terminated"]["finishedAt"] = json!(now.to_string());
        }
    }
}

/// Sets the conditions Ready and ContainersReady.
pub(crate) fn set_ready(pod: &mut Value, ready: bool, reason: Option<&str>) {
    let condition = |kind: &str| {
        if ready {
            json!({"type": kind, "status": "True"})
        } else {
            let reason = reason.unwrap_or("ContainersNotReady");
            json!({"type": kind, "status": "False", "reason": reason})
        }
    };
    pod["status"]["conditions"] = json!([condition("ContainersReady"), condition("Ready")]);
}

/// Ends a container, or all of them.
///
/// The time at which it ended is set by the replay.
pub(crate) fn terminate(pod: &mut Value, container: Option<&str>, code: i64, reason: &str) {
    for status in pod["status"]["containerStatuses"].as_array_mut().into_iter().flatten() {
        if container.is_none_or(|name| status["name"] == name) {
            status["ready"] = json!(false);
            status["state"] = json!({"terminated": {"exitCode": code, "reason": reason}});
        }
    }
}
