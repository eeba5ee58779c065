//! Controllers that make pods, and the kubelets that run them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ray_objects;
use crate::pod_status::{outcome, seconds};

/// The templates of the pods that an object makes, with numbers.
pub(crate) fn templates(object: &Value) -> Vec<(Value, i64)> {
    let spec = &object["spec"];
    let replicas = |value: &Value| value.as_i64().unwrap_or(1);
    match object["kind"].as_str() {
        Some("Deployment" | "StatefulSet") => {
            vec![(spec["template"].clone(), replicas(&spec["replicas"]))]
        }
        Some("RayCluster") => ray_objects::templates(spec),
        _ => Vec::new(),
    }
}

/// A pod of a template.
pub(crate) fn pod(template: &Value, owner: &Value, number: usize) -> Value {
    let owner_name = owner["metadata"]["name"].as_str().unwrap_or_default();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{owner_name}-made-{number}"),
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
            "ownerReferences": [{"uid": owner["metadata"]["uid"], "controller": true}],
        },
        "spec": template["spec"],
    })
}

/// How long a pod takes to end after its deletion.
pub(crate) fn stop_seconds(pod: &Value) -> i64 {
    seconds(pod, "stop-seconds").unwrap_or(0)
}

/// Moves a pod on. Returns whether it succeeded just now.
pub(crate) fn run(pod: &mut Value, age: i64, delay: i64, marked: bool, now: Timestamp) -> bool {
    if !pod["spec"].is_object() {
        return false;
    }
    let phase = pod["status"]["phase"].as_str().unwrap_or_default().to_owned();
    let waits = !pod["spec"]["nodeSelector"]["no"].is_null()
        || !pod["spec"]["schedulingGates"].is_null()
        || pod["spec"]["schedulerName"] == "my-scheduler";
    if waits || (phase.is_empty() && age < delay) {
        if phase.is_empty() {
            pod["status"] = json!({"phase": "Pending", "conditions": []});
        }
        return false;
    }
    let runs = seconds(pod, "run-seconds");
    let code = seconds(pod, "exit-code").unwrap_or(0);
    let restarts = pod["spec"]["restartPolicy"].as_str().unwrap_or("Always") == "Always";
    if phase.is_empty() || phase == "Pending" {
        if age < delay {
            return false;
        }
        let avoids = !pod["spec"]["affinity"].is_null() && marked;
        pod["spec"]["nodeName"] = json!(if avoids { "node-2" } else { "node-1" });
        pod["status"]["startTime"] = json!(now.to_string());
        if restarts || runs.is_some() {
            set(pod, "Running", &json!({"running": {}}), true, None);
            return false;
        }
        return end(pod, code);
    }
    let started = pod["status"]["startTime"].as_str().and_then(|text| text.parse().ok());
    let started: Timestamp = started.unwrap_or(now);
    let is_over = runs.is_some_and(|runs| now.as_second() - started.as_second() >= runs);
    if phase == "Running" && !restarts && is_over {
        return end(pod, code);
    }
    false
}

fn end(pod: &mut Value, code: i64) -> bool {
    let (phase, why, reason) = outcome(code);
    let state = json!({"terminated": {"exitCode": code, "reason": reason}});
    set(pod, phase, &state, false, Some(why));
    code == 0
}

fn set(pod: &mut Value, phase: &str, state: &Value, ready: bool, why: Option<&str>) {
    let containers = pod["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let statuses: Vec<Value> = containers
        .iter()
        .map(|it| json!({"name": it["name"], "ready": ready, "state": state}))
        .collect();
    let condition = |kind: &str| {
        let mut condition = json!({"type": kind, "status": if ready { "True" } else { "False" }});
        if let Some(why) = why {
            condition["reason"] = json!(why);
        }
        condition
    };
    pod["status"]["phase"] = json!(phase);
    pod["status"]["containerStatuses"] = json!(statuses);
    pod["status"]["conditions"] = json!([condition("ContainersReady"), condition("Ready")]);
    pod["status"]["podIP"] = json!("<ip>");
}
