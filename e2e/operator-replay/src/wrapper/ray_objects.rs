//! The operator of Ray beside that of AppWrappers: pods of clusters, and the state of RayJobs.

use jiff::Timestamp;
use serde_json::{Value, json};

/// What an API server fills in when a RayCluster or a RayJob is created.
pub(super) fn complete(object: &mut Value) {
    let is_ray = object["apiVersion"].as_str().is_some_and(|it| it.starts_with("ray.io/"));
    if !is_ray || !object["spec"].is_object() {
        return;
    }
    for cluster in ["/spec", "/spec/rayClusterSpec"] {
        let groups = object.pointer_mut(&format!("{cluster}/workerGroupSpecs"));
        let groups = groups.and_then(Value::as_array_mut).into_iter().flatten();
        for group in groups.filter(|group| group.is_object()) {
            let bounds = [("replicas", 0), ("minReplicas", 0), ("maxReplicas", i32::MAX)];
            fill(group, bounds.into_iter().chain([("numOfHosts", 1), ("priority", 0)]));
        }
    }
    if object["kind"] == "RayJob" {
        let numbers = [("ttlSecondsAfterFinished", 0), ("backoffLimit", 0)];
        fill(&mut object["spec"], numbers.into_iter());
        if object["spec"]["submissionMode"].is_null() {
            object["spec"]["submissionMode"] = json!("K8sJobMode");
        }
    }
}

fn fill(part: &mut Value, defaults: impl Iterator<Item = (&'static str, i32)>) {
    for (name, value) in defaults {
        if part[name].is_null() {
            part[name] = json!(value);
        }
    }
}

/// The templates of the pods of a RayCluster, with numbers: one head, and one pod per host of each replica within the bounds of a group.
pub(super) fn templates(spec: &Value) -> Vec<(Value, i64)> {
    if spec["suspend"] == true {
        return Vec::new();
    }
    let head = (spec["headGroupSpec"]["template"].clone(), 1);
    let groups = spec["workerGroupSpecs"].as_array().into_iter().flatten();
    let groups = groups.map(|group| (group["template"].clone(), size(group)));
    std::iter::once(head).chain(groups).collect()
}

fn size(group: &Value) -> i64 {
    let number = |name: &str, unset: i64| group[name].as_i64().unwrap_or(unset);
    let replicas = number("replicas", 0).max(number("minReplicas", 0));
    let replicas = replicas.min(number("maxReplicas", i32::MAX.into()));
    replicas.saturating_mul(number("numOfHosts", 1))
}

/// The RayCluster of a RayJob.
pub(super) fn cluster(job: &Value, number: usize) -> Value {
    let name = job["metadata"]["name"].as_str().unwrap_or_default();
    json!({
        "apiVersion": job["apiVersion"],
        "kind": "RayCluster",
        "metadata": {
            "name": format!("{name}-made-{number}"),
            "ownerReferences": [
                {"kind": "RayJob", "uid": job["metadata"]["uid"], "controller": true},
            ],
        },
        "spec": job["spec"]["rayClusterSpec"],
    })
}

/// What becomes of the status of a RayJob when its head reports its job.
pub(super) fn report(job: &mut Value, is_ready: bool, head: &Value, now: Timestamp) {
    let of_head = head["job"]["status"].as_str().filter(|_| is_ready && head["up"] != false);
    let state = match of_head {
        Some("SUCCEEDED" | "STOPPED") => "Complete",
        Some("FAILED") => "Failed",
        Some(_) => "Running",
        None if job["status"]["jobDeploymentStatus"] == "Running" => return,
        None => "Initializing",
    };
    job["status"]["jobDeploymentStatus"] = json!(state);
    if has_ended(job) {
        job["status"]["endTime"] = json!(now.to_string());
    }
}

/// Whether a RayJob is over.
pub(super) fn has_ended(job: &Value) -> bool {
    let state = job["status"]["jobDeploymentStatus"].as_str();
    matches!(state, Some("Complete" | "Failed"))
}

/// Whether a RayJob that is over gives its RayCluster up.
pub(super) fn is_without_cluster(job: &Value, now: Timestamp) -> bool {
    let end = job["status"]["endTime"].as_str().and_then(|it| it.parse::<Timestamp>().ok());
    let age = now.as_second() - end.unwrap_or(now).as_second();
    let stays = job["spec"]["ttlSecondsAfterFinished"].as_i64().unwrap_or_default();
    job["spec"]["shutdownAfterJobFinishes"] == true && age >= stays
}
