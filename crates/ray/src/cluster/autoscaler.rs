//! The sidecar of the head that scales worker groups.
//!
//! Source: docs/reference/ray.md §3 "Ray container".

use serde_json::{Value, json};

use super::{
    context::ClusterContext,
    ray_container::{mount_volume, shell},
    ray_env::{add_token, add_variable},
};
use crate::{json::list, v1::AutoscalerOptions};

const COMMAND: &str = "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)";

/// Adds the sidecar, and the folder of logs that it shares with Ray.
pub(crate) fn add_sidecar(context: &ClusterContext<'_>, spec: &mut Value) {
    let Some(mut ray) = list(spec, "containers").first_mut().map(Value::take) else {
        return;
    };
    let logs = json!({"name": "ray-logs", "emptyDir": {}});
    // The autoscaler is a command of Ray, so it has the image of the head, and with it the version.
    let mut sidecar = sidecar(context, &ray["image"]);
    mount_volume(spec, &mut ray, logs.clone(), "/tmp/ray");
    mount_volume(spec, &mut sidecar, logs, "/tmp/ray");
    let options = context.spec.autoscaler_options.as_ref();
    match options.and_then(|options| options.version.as_deref()) {
        Some("v2") => add_variable(&mut ray, version_variable("true")),
        Some(_) => add_variable(&mut ray, version_variable("false")),
        // Without the option the variable of the template counts, or Ray's own default.
        None => {}
    }
    let containers = list(spec, "containers");
    if let Some(place) = containers.first_mut() {
        *place = ray;
    }
    containers.push(sidecar);
}

fn version_variable(value: &str) -> Value {
    json!({"name": "RAY_enable_autoscaler_v2", "value": value})
}

fn sidecar(context: &ClusterContext<'_>, image: &Value) -> Value {
    let from_field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let mut sidecar = json!({
        "name": "autoscaler",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": shell(context),
        "args": [COMMAND],
        "env": [
            from_field("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
            from_field("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
            from_field("RAY_HEAD_POD_NAME", "metadata.name"),
            {"name": "KUBERAY_CRD_VER", "value": "v1"},
            {"name": "KUBERAY_GEN_AUTOSCALER_START_CMD", "value": COMMAND},
        ],
        "resources": {
            "limits": {"cpu": "500m", "memory": "512Mi"},
            "requests": {"cpu": "500m", "memory": "512Mi"},
        },
    });
    add_token(context, &mut sidecar);
    if let Some(options) = &context.spec.autoscaler_options {
        apply_options(options, &mut sidecar);
    }
    sidecar
}

fn apply_options(options: &AutoscalerOptions, sidecar: &mut Value) {
    if let Some(resources) = &options.resources {
        sidecar["resources"] = resources.clone();
    }
    if let Some(image) = options.image.as_ref().filter(|image| !image.is_empty()) {
        sidecar["image"] = json!(image);
    }
    if let Some(policy) = &options.image_pull_policy {
        sidecar["imagePullPolicy"] = json!(policy);
    }
    if let Some(security) = &options.security_context {
        sidecar["securityContext"] = security.clone();
    }
    if !options.command.is_empty() {
        sidecar["command"] = json!(options.command);
    }
    if !options.args.is_empty() {
        sidecar["args"] = json!(options.args);
    }
    for (name, more) in [
        ("env", &options.env),
        ("envFrom", &options.env_from),
        ("volumeMounts", &options.volume_mounts),
    ] {
        if !more.is_empty() {
            list(sidecar, name).extend(more.iter().cloned());
        }
    }
}
