//! The command that starts Ray in a pod.
//!
//! Source: docs/reference/ray.md §3 "Ray container".

use std::collections::BTreeMap;

use crds::quantity::Quantity;
use serde_json::{Map, Value, json};

use super::{
    context::ClusterContext,
    resources::{is_gpu, quantity},
};

/// Parameters of which the value is written out also if it is true or false.
const WITH_VALUE: &[&str] = &["log-color", "include-dashboard", "include-log-monitor"];

const NANOS_PER_UNIT: i128 = 1_000_000_000;

/// Resources of containers that Ray counts under a name of its own, in the order of their names: a pod counts the first one.
const ACCELERATORS: &[(&str, &str)] =
    &[("aws.amazon.com/neuroncore", "neuron_cores"), ("google.com/tpu", "TPU")];

/// A head, or a worker of a group.
#[derive(Clone, Copy)]
pub(crate) struct RayNode<'a> {
    /// Whether it is the head.
    pub(crate) is_head: bool,
    /// Parameters of `ray start` from the spec.
    pub(crate) params: &'a BTreeMap<String, String>,
    /// Resources from the spec, which precede those of the container.
    pub(crate) resources: &'a BTreeMap<String, String>,
    /// Labels of the Ray node.
    pub(crate) labels: &'a BTreeMap<String, String>,
    /// Whether the command of the template stays as it is.
    pub(crate) keeps_command: bool,
}

/// The parameters of `ray start`, with defaults.
pub(crate) fn start_params(
    context: &ClusterContext<'_>,
    node: RayNode<'_>,
    container: &Value,
) -> BTreeMap<String, String> {
    let mut params = node.params.clone();
    if node.is_head && context.is_autoscaling() {
        // The autoscaler is the sidecar, so the head starts none of its own.
        params.insert("no-monitor".to_owned(), "true".to_owned());
    }
    let mut default = |name: &str, value: String| {
        params.entry(name.to_owned()).or_insert(value);
    };
    if node.is_head {
        default("dashboard-host", "0.0.0.0".to_owned());
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
    // The field of the spec first; what it leaves open comes from the container.
    for (name, value) in given_resources(node.resources) {
        default(name, value);
    }
    for (name, value) in container_amounts(container) {
        default(name, value);
    }
    add_accelerators(&container["resources"]["limits"], &mut params);
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

/// CPUs and memory, from the limits of the container; CPUs also from the requests.
fn container_amounts(container: &Value) -> Vec<(&'static str, String)> {
    let amount = |list: &str, name: &str| counted(&container["resources"][list][name]);
    let cpu = amount("limits", "cpu").or_else(|| amount("requests", "cpu"));
    let memory = amount("limits", "memory");
    let found = cpu.map(|cpu| ("num-cpus", cpu)).into_iter();
    found
        .chain(memory.map(|memory| ("memory", memory)))
        .map(|(name, it)| (name, it.to_string()))
        .collect()
}

/// The whole units of an amount, if there is one and it is more than nothing.
fn counted(amount: &Value) -> Option<i64> {
    quantity(amount).filter(|amount| !amount.is_zero()).map(|amount| amount.units())
}

/// Adds GPUs and the first accelerator that Ray counts under a name of its own.
fn add_accelerators(limits: &Value, params: &mut BTreeMap<String, String>) {
    let given = params.get("resources").map(|text| custom_resources_of(text));
    // As the official operator: with resources that cannot be read nothing is added to them, and no GPUs either.
    let Some(mut custom) = given.unwrap_or_else(|| Some(Map::new())) else {
        return;
    };
    let gpus = limits.as_object().into_iter().flatten();
    let gpus = gpus.filter(|(name, _)| is_gpu(name)).find_map(|(_, amount)| counted(amount));
    if let Some(gpus) = gpus {
        params.entry("num-gpus".to_owned()).or_insert_with(|| gpus.to_string());
    }
    if ACCELERATORS.iter().any(|(_, name)| custom.contains_key(*name)) {
        return;
    }
    let first =
        ACCELERATORS.iter().find_map(|(resource, name)| Some((name, counted(&limits[*resource])?)));
    if let Some((name, amount)) = first {
        custom.insert((*name).to_owned(), json!(amount));
        params.insert("resources".to_owned(), quoted(custom));
    }
}

/// The custom resources of a parameter; none if the text is not a JSON object of numbers.
fn custom_resources_of(text: &str) -> Option<Map<String, Value>> {
    let text = text.trim_matches(['\'', '"', '`', ' ']);
    let amounts: BTreeMap<String, f64> = serde_json::from_str(text).ok()?;
    Some(amounts.into_iter().map(|(name, amount)| (name, floating(amount))).collect())
}

/// A number as Go writes one that it has decoded as floating point: a whole one has no fraction.
fn floating(amount: f64) -> Value {
    let digits = format!("{amount}");
    digits.parse::<i64>().map_or_else(|_| json!(amount), |whole| json!(whole))
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
            name if is_gpu(name) => found.push(("num-gpus", amount.units().to_string())),
            _ => {
                custom.insert(name.clone(), fractional(&amount));
            }
        }
    }
    if !custom.is_empty() {
        found.push(("resources", quoted(custom)));
    }
    found
}

/// A number of a custom resource, which may be a part of one.
#[expect(clippy::cast_precision_loss, reason = "Ray counts custom resources in floating point")]
fn fractional(amount: &Quantity) -> Value {
    match amount.nanos() % NANOS_PER_UNIT {
        0 => json!(amount.units()),
        _ => json!(amount.nanos() as f64 / NANOS_PER_UNIT as f64),
    }
}

/// As an argument of the shell.
fn quoted(resources: Map<String, Value>) -> String {
    format!("'{}'", Value::Object(resources))
}

/// `ray start` with parameters in the order of their names.
pub(crate) fn start_command(is_head: bool, params: &BTreeMap<String, String>) -> String {
    let mut command = String::from(if is_head { "ray start --head " } else { "ray start " });
    for (name, value) in params {
        let has_value = WITH_VALUE.contains(&name.as_str());
        match value.to_ascii_lowercase().as_str() {
            // A flag of `ray start` has no value.
            "true" if !has_value => command.push_str(&format!(" --{name} ")),
            "false" if !has_value => {}
            _ => command.push_str(&format!(" --{name}={value} ")),
        }
    }
    command
}
