//! The states of RayClusters, RayJobs and RayServices in one text, and the copies in their status that depend on a moment.

use serde_json::Value;

/// The state of an object in one text: the phase, or the reasons of conditions and the parts of both clusters.
pub(super) fn state_of(id: &str, status: &Value) -> String {
    if id.starts_with("RayCluster/") {
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let status_of = |kind: &str| {
            let condition = conditions.iter().find(|it| it["type"] == kind);
            condition.and_then(|it| it["status"].as_str()).unwrap_or_default().to_owned()
        };
        return cluster_state(&status["state"], status_of);
    }
    if id.starts_with("RayJob/") {
        return status["jobDeploymentStatus"].as_str().unwrap_or_default().to_owned();
    }
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let reasons = |kind: &str| {
        let condition = conditions.iter().find(|it| it["type"] == kind);
        condition.map_or_else(String::new, |it| {
            let text = |name: &str| it[name].as_str().unwrap_or_default();
            format!("{}/{}", text("status"), text("reason"))
        })
    };
    let slot = |name: &str| {
        let slot = &status[name];
        let has_cluster = slot["rayClusterName"].as_str().is_some_and(|name| !name.is_empty());
        let (capacity, traffic) = (&slot["targetCapacity"], &slot["trafficRoutedPercent"]);
        service_part(has_cluster, capacity, traffic)
    };
    service_state(reasons, &[slot("activeServiceStatus"), slot("pendingServiceStatus")])
}

/// The conditions of a RayCluster that tell its states. The others come one by one with its pods.
const CLUSTER_CONDITIONS: [&str; 2] = ["RayClusterSuspending", "RayClusterSuspended"];

/// The state of a RayCluster in one text. Empty before the first status.
fn cluster_state(state: &Value, status_of: impl Fn(&str) -> String) -> String {
    let conditions = CLUSTER_CONDITIONS.map(|kind| (kind, status_of(kind)));
    let conditions = conditions.iter().filter(|(_, status)| !status.is_empty());
    let state = state.as_str().filter(|state| !state.is_empty()).map(str::to_owned).into_iter();
    let parts = state.chain(conditions.map(|(kind, status)| format!("{kind}={status}")));
    parts.collect::<Vec<_>>().join(" ")
}

/// What one cluster of a RayService is to it.
fn service_part(has_cluster: bool, capacity: &Value, traffic: &Value) -> String {
    format!("{has_cluster} {capacity} {traffic}")
}

/// The state of a RayService in one text.
fn service_state(reasons: impl Fn(&str) -> String, parts: &[String; 2]) -> String {
    // Without Ready: when endpoints come and go depends on the delay of their controller.
    let kinds = ["UpgradeInProgress", "Suspending", "Suspended", "RollbackInProgress"];
    let reasons = kinds.map(|kind| format!("{kind}={}", reasons(kind)));
    format!("{} | {}", reasons.join(" "), parts.join(" | "))
}

/// A line of a recorded history, in the form of the world's. Empty for kinds without a comparison of states.
pub(super) fn recorded_state(line: &Value) -> String {
    let of = line["of"].as_str().unwrap_or_default();
    if of.starts_with("RayJob/") {
        return line["jobDeploymentStatus"].as_str().unwrap_or_default().to_owned();
    }
    if of.starts_with("RayCluster/") {
        let status_of = |kind: &str| {
            let condition = line["conditions"][kind].as_str().unwrap_or_default();
            condition.split('/').next().unwrap_or_default().to_owned()
        };
        return cluster_state(&line["state"], status_of);
    }
    let is_begun = line["conditions"].as_object().is_some_and(|conditions| !conditions.is_empty());
    if !of.starts_with("RayService/") || !is_begun {
        return String::new();
    }
    let reason = |kind: &str| line["conditions"][kind].as_str().unwrap_or_default().to_owned();
    let slot = |name: &str| {
        let slot = &line[name];
        let has_cluster = slot["cluster"].as_str().is_some_and(|name| !name.is_empty());
        service_part(has_cluster, &slot["targetCapacity"], &slot["trafficRoutedPercent"])
    };
    service_state(reason, &[slot("active"), slot("pending")])
}

/// Fields of a copy that depend on the moment at which it was made.
const COUNTS: [&str; 2] = ["availableWorkerReplicas", "readyWorkerReplicas"];

/// A copy of the status of a cluster that was not ready yet depends on the moment at which it was made.
pub(super) fn without_early_copies(ours: &mut Value, theirs: &mut Value) {
    for part in ["activeServiceStatus", "pendingServiceStatus"] {
        let copy = |object: &Value| object["status"][part]["rayClusterStatus"].clone();
        let is_early =
            |copy: &Value| copy.is_object() && copy["desiredCPU"] != "0" && copy["state"].is_null();
        if is_early(&copy(ours)) || is_early(&copy(theirs)) {
            ours["status"][part]["rayClusterStatus"] = Value::Null;
            theirs["status"][part]["rayClusterStatus"] = Value::Null;
        }
        for status in [&mut *ours, &mut *theirs] {
            let copy = status.pointer_mut(&format!("/status/{part}/rayClusterStatus"));
            if let Some(copy) = copy.and_then(Value::as_object_mut) {
                copy.retain(|name, _| !COUNTS.contains(&name.as_str()));
            }
        }
    }
    let is_early = |object: &Value| {
        let copy = &object["status"]["rayClusterStatus"];
        copy.is_object() && copy["state"].is_null() && copy["desiredCPU"] != "0"
    };
    if is_early(ours) && is_early(theirs) {
        ours["status"]["rayClusterStatus"] = Value::Null;
        theirs["status"]["rayClusterStatus"] = Value::Null;
    }
}
