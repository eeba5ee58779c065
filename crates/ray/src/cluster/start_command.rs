//! The command that starts Ray in a pod.
//!
//! Source: docs/reference/ray.md §3 "Ray container".

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{context::ClusterContext, resources::quantity};

/// Parameters that are written out although they are false.
const WRITTEN_IF_FALSE: &[&str] = &["log-color", "include-dashboard", "include-log-monitor"];

/// Resources of containers that Ray counts under a name of its own.
const ACCELERATORS: &[(&str, &str)] =
    &[("aws.amazon.com/neuroncore", "neuron_cores"), ("google.com/tpu", "TPU")];

/// A head, or a worker of a group.
#[derive(Clone, Copy)]
pub(crate) struct RayNode<'a> {
    /// Whether it is the head.
    pub(crate) is_head: bool,
    /// Parameters of `ray start` from the spec.
    pub(crate) params: &'a BTreeMap<String, String>,
    /// Resources from the spec, in place of those of the container.
    pub(crate) resources: &'a BTreeMap<String, String>,
    /// Labels of the Ray node.
    pub(crate) labels: &'a BTreeMap<String, String>,
}

/// The parameters of `ray start`, with defaults.
pub(crate) fn start_params(
    context: &ClusterContext<'_>,
    node: RayNode<'_>,
    container: &Value,
) -> BTreeMap<String, String> {
    let mut params = node.params.clone();
    let mut default = |name: &str, value: String| {
        params.entry(name.to_owned()).or_insert(value);
    };
    if node.is_head {
        default("dashboard-host", "0.0.0.0".to_owned());
        if context.is_autoscaling() {
            // The autoscaler is the sidecar, so the head starts none of its own.
            default("no-monitor", "true".to_owned());
        }
        for (name, value) in redis_params(context) {
            default(name, value.to_owned());
        }
    } else {
        default("address", format!("{}:{}", context.head_address(), context.gcs_port()));
    }
    default("metrics-export-port", "8080".to_owned());
    default("dashboard-agent-listen-port", "52365".to_owned());
    if !node.labels.is_empty() {
        let labels: Vec<String> =
            node.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        default("labels", labels.join(","));
    }
    if node.resources.is_empty() {
        for (name, value) in container_resources(container) {
            default(name, value);
        }
    } else {
        for (name, value) in given_resources(node.resources) {
            default(name, value);
        }
    }
    // Ray must stay in the foreground of its container.
    params.insert("block".to_owned(), "true".to_owned());
    params
}

/// Credentials of Redis come from variables, so that they are not in the command.
fn redis_params(context: &ClusterContext<'_>) -> Vec<(&'static str, &'static str)> {
    let options = context.spec.gcs_fault_tolerance_options.as_ref();
    let username = options.and_then(|it| it.redis_username.as_ref());
    let password = options.and_then(|it| it.redis_password.as_ref());
    let username = username.map(|_| ("redis-username", "$REDIS_USERNAME"));
    username.into_iter().chain(password.map(|_| ("redis-password", "$REDIS_PASSWORD"))).collect()
}

/// What Ray counts, from the limits of its container; CPUs also from the requests.
fn container_resources(container: &Value) -> Vec<(&'static str, String)> {
    let limits = &container["resources"]["limits"];
    let requests = &container["resources"]["requests"];
    let mut found = Vec::new();
    let cpu = quantity(&limits["cpu"]).or_else(|| quantity(&requests["cpu"]));
    found.extend(cpu.map(|cpu| ("num-cpus", cpu.units().to_string())));
    let memory = quantity(&limits["memory"]);
    found.extend(memory.map(|memory| ("memory", memory.units().to_string())));
    let entries = || limits.as_object().into_iter().flatten();
    let gpu = entries().find(|(name, _)| name.ends_with("gpu"));
    let gpu = gpu.and_then(|(_, amount)| quantity(amount)).filter(|amount| !amount.is_zero());
    found.extend(gpu.map(|gpu| ("num-gpus", gpu.units().to_string())));
    let accelerators: Map<String, Value> = ACCELERATORS
        .iter()
        .filter_map(|(resource, name)| {
            let amount = quantity(&limits[*resource]).filter(|amount| !amount.is_zero())?;
            Some(((*name).to_owned(), json!(amount.units())))
        })
        .collect();
    found.extend(custom_resources(accelerators));
    found
}

/// What Ray counts, from the field `resources` of a group.
fn given_resources(resources: &BTreeMap<String, String>) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut custom = Map::new();
    for (name, amount) in resources {
        let Some(amount) = quantity(&json!(amount)) else { continue };
        match name.to_ascii_lowercase().as_str() {
            "cpu" => found.push(("num-cpus", amount.units().to_string())),
            "memory" => found.push(("memory", amount.units().to_string())),
            "gpu" => found.push(("num-gpus", amount.units().to_string())),
            _ => {
                custom.insert(name.clone(), json!(amount.units()));
            }
        }
    }
    found.extend(custom_resources(custom));
    found
}

fn custom_resources(resources: Map<String, Value>) -> Option<(&'static str, String)> {
    let text = Value::Object(resources);
    let is_empty = text.as_object().is_none_or(Map::is_empty);
    (!is_empty).then(|| ("resources", format!("'{text}'")))
}

/// `ray start` with parameters in the order of their names.
pub(crate) fn start_command(is_head: bool, params: &BTreeMap<String, String>) -> String {
    let mut command = String::from(if is_head { "ray start --head " } else { "ray start " });
    for (name, value) in params {
        match value.to_ascii_lowercase().as_str() {
            // A flag of `ray start` has no value.
            "true" => command.push_str(&format!(" --{name} ")),
            "false" if !WRITTEN_IF_FALSE.contains(&name.as_str()) => {}
            _ => command.push_str(&format!(" --{name}={value} ")),
        }
    }
    command
}
