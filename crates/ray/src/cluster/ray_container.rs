//! The Ray container of a pod: the first one of the template.
//!
//! Source: docs/reference/ray.md §3 "Ray container".

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    context::ClusterContext,
    probes::add_probes,
    ray_env::{add_common, add_storage},
    start_command::{RayNode, start_command, start_params},
};
use crate::json::{field, items, list, named, object, text};

/// What raises the limit of open files before Ray starts.
const ULIMIT: &str = "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}";

/// Completes the Ray container of a pod.
pub(crate) fn complete(context: &ClusterContext<'_>, node: RayNode<'_>, pod_spec: &mut Value) {
    let Some(mut container) = list(pod_spec, "containers").first_mut().map(Value::take) else {
        return;
    };
    let params = start_params(context, node, &container);
    let command = start_command(node.is_head, &params);
    // The container's own command may run the generated one from KUBERAY_GEN_RAY_START_CMD.
    if !node.keeps_command {
        set_command(context, &command, &mut container);
    }
    if node.is_head {
        add_storage(context, node.params, &mut container);
    }
    add_common(context, node.is_head, &command, &mut container);
    add_metrics_port(&mut container);
    add_shared_memory(&params, pod_spec, &mut container);
    add_probes(context, node.is_head, &params, &mut container);
    if let Some(place) = list(pod_spec, "containers").first_mut() {
        *place = container;
    }
}

/// Starts Ray after the command of the template, if that does not start it itself.
fn set_command(context: &ClusterContext<'_>, start: &str, container: &mut Value) {
    let words = ["command", "args"].into_iter().flat_map(|list| items(&container[list]));
    let given: String = words.map(|word| format!(" {} ", text(word))).collect();
    if given.contains("ray start") {
        return;
    }
    let and = if given.is_empty() { "" } else { " && " };
    let args = format!("{given}{and}{ULIMIT}; {start}");
    let container = object(container);
    container.insert("command".into(), shell(context));
    container.insert("args".into(), json!([args]));
}

/// The shell of generated commands.
pub(crate) fn shell(context: &ClusterContext<'_>) -> Value {
    json!(["/bin/bash", if context.settings.login_shell { "-cl" } else { "-c" }, "--"])
}

fn add_metrics_port(container: &mut Value) {
    if named(&container["ports"], "metrics").is_none() {
        list(container, "ports").push(json!({"name": "metrics", "containerPort": 8080}));
    }
}

/// Ray's object store is in `/dev/shm`, which is small by default.
fn add_shared_memory(
    params: &BTreeMap<String, String>,
    pod_spec: &mut Value,
    container: &mut Value,
) {
    // The object store is in that directory then.
    if params.contains_key("plasma-directory") {
        return;
    }
    let resources = &container["resources"];
    let limits = &resources["limits"]["memory"];
    // Memory volumes count against the memory of the container, so more would have no effect.
    let size = if limits.is_null() { &resources["requests"]["memory"] } else { limits };
    let mut volume = json!({"name": "shared-mem", "emptyDir": {"medium": "Memory"}});
    if !size.is_null() {
        volume["emptyDir"]["sizeLimit"] = size.clone();
    }
    mount_volume(pod_spec, container, volume, "/dev/shm");
}

/// Mounts a volume at a path where the container has none.
pub(crate) fn mount_volume(pod_spec: &mut Value, container: &mut Value, volume: Value, path: &str) {
    // The API server refuses two mounts at one path.
    if items(&container["volumeMounts"]).iter().any(|mount| mount["mountPath"] == path) {
        return;
    }
    let mount = json!({"name": volume["name"], "mountPath": path});
    if named(&pod_spec["volumes"], text(&volume["name"])).is_none() {
        list(pod_spec, "volumes").push(volume);
    }
    list(container, "volumeMounts").push(mount);
}

/// Sets a field that the template leaves open.
pub(crate) fn set_default(value: &mut Value, name: &str, default: Value) {
    let place = field(value, name);
    if place.is_null() || *place == "" {
        *place = default;
    }
}
