//! What the API server fills in when an object is created.

use serde_json::{Value, json};

/// Addresses and node ports.
pub(super) fn complete_service(object: &mut Value) {
    if object["kind"] != "Service" {
        return;
    }
    if object["spec"]["clusterIP"].is_null() {
        object["spec"]["clusterIP"] = json!("<ip>");
    }
    if matches!(object["spec"]["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
        for port in object["spec"]["ports"].as_array_mut().into_iter().flatten() {
            port["nodePort"] = json!("<nodePort>");
        }
    }
}

/// The default of the CRD for groups without a size.
pub(super) fn complete_ray_cluster(object: &mut Value) {
    if object["kind"] == "RayCluster" {
        let groups = object["spec"].get_mut("workerGroupSpecs").and_then(Value::as_array_mut);
        for group in groups.into_iter().flatten().filter_map(Value::as_object_mut) {
            group.entry("replicas").or_insert(json!(0));
        }
    }
}

/// The conditions that the CRD of a Gateway begins with.
pub(super) fn complete_gateway(object: &mut Value) {
    if object["kind"] == "Gateway" {
        let condition = |kind: &str| {
            json!({
                "type": kind, "status": "Unknown", "reason": "Pending",
                "message": "Waiting for controller", "lastTransitionTime": "<time>",
            })
        };
        object["status"] = json!({"conditions": [condition("Accepted"), condition("Programmed")]});
    }
}
