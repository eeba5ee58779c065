//! Rules for the collector of the history server.
//!
//! Source: docs/reference/ray.md §5 "Controller-side rules".

use serde_json::Value;

use super::{context::ClusterContext, validate::Checked};
use crate::{
    json::{items, named, text},
    v1::CollectorOptions,
};

/// The name of the container.
const CONTAINER: &str = "ray-history-collector";

/// How the collector logs in to Azure.
const AZURE_MODE: &str = "AZURE_STORAGE_AUTH_MODE";

const AZURE_CONNECTION: &str = "AZURE_STORAGE_CONNECTION_STRING";
const AZURE_ACCOUNT: &str = "AZURE_STORAGE_ACCOUNT_URL";

/// Variables that the operator sets.
const MANAGED: &[&str] = &[
    "POD_IP",
    "FQ_RAY_IP",
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_ROLE",
    "OWNER_KIND",
    "OWNER_NAME",
    "EVENTS_PORT",
];

/// Checks the options for the history server.
pub(crate) fn check_history_server(context: &ClusterContext<'_>) -> Checked {
    let Some(options) = &context.spec.history_server_options else { return Ok(()) };
    if !context.settings.gates.history_server {
        return Err("RayClusterHistoryServer feature gate is not enabled".to_owned());
    }
    let Some(collector) = &options.collector_options else {
        return Err("historyServerOptions.collectorOptions must be set".to_owned());
    };
    check_options(collector)?;
    check_containers(context)?;
    Err("the collector of the history server is not built yet".to_owned())
}

fn check_options(collector: &CollectorOptions) -> Checked {
    if collector.image.as_ref().is_none_or(String::is_empty) {
        return Err("historyServerOptions.collectorOptions.image must be set".to_owned());
    }
    let env: Value = collector.env.clone().into();
    if let Some(name) = MANAGED.iter().find(|name| named(&env, name).is_some()) {
        return Err(format!(
            "historyServerOptions.collectorOptions.env must not contain {name}: it is managed by KubeRay and injected automatically into the collector container"
        ));
    }
    check_backend(&env)
}

/// The collector cannot store anything without these variables.
fn check_backend(env: &Value) -> Checked {
    let value = |name: &str| last(env, name).map_or("", |variable| text(&variable["value"]));
    let backend = value("STORAGE_BACKEND").to_uppercase();
    if backend.is_empty() {
        return Err("STORAGE_BACKEND environment variable must be set with a literal string value in historyServerOptions.collectorOptions.env".to_owned());
    }
    let mode = value(AZURE_MODE).trim().to_lowercase();
    let needed: &[&str] = match backend.as_str() {
        "GCS" => &["GCS_BUCKET"],
        "S3" => &["S3_REGION"],
        "ALIYUNOSS" => &["OSS_REGION"],
        "AZUREBLOB" => azure_variables(&mode),
        _ => return Ok(()),
    };
    if needed.iter().any(|name| is_set(env, name)) {
        return Ok(());
    }
    let either = if needed.len() > 1 { "either " } else { "" };
    let of_mode = if backend == "AZUREBLOB" && needed.len() == 1 {
        format!(" and {AZURE_MODE} is {mode}")
    } else {
        String::new()
    };
    Err(format!(
        "{either}{} environment variable must be set when STORAGE_BACKEND is {backend}{of_mode}",
        needed.join(" or ")
    ))
}

/// The variables of which Azure needs one. Without a mode the collector takes the credentials that it finds.
fn azure_variables(mode: &str) -> &'static [&'static str] {
    match mode {
        "connection_string" => &[AZURE_CONNECTION],
        "workload_identity" | "default" => &[AZURE_ACCOUNT],
        _ => &[AZURE_CONNECTION, AZURE_ACCOUNT],
    }
}

/// The variable of this name. The last of several counts, as in a container.
fn last<'a>(env: &'a Value, name: &str) -> Option<&'a Value> {
    items(env).iter().rfind(|variable| variable["name"] == name)
}

/// Whether a variable has a value, or one from another object.
fn is_set(env: &Value, name: &str) -> bool {
    last(env, name).is_some_and(|variable| {
        !text(&variable["value"]).is_empty() || !variable["valueFrom"].is_null()
    })
}

/// A container of the template must not have the name of the collector.
fn check_containers(context: &ClusterContext<'_>) -> Checked {
    let is_taken = |template: &Value| named(&template["spec"]["containers"], CONTAINER).is_some();
    let refused = |what: &str| {
        Err(format!(
            "{what} pod template must not define a container with name '{CONTAINER}' when history server collector options are enabled"
        ))
    };
    if is_taken(&context.spec.head_group_spec.template) {
        return refused("head");
    }
    let mut groups = context.spec.worker_group_specs.iter();
    match groups.find(|group| is_taken(&group.template)) {
        Some(group) => refused(&format!("worker group {}", group.group_name)),
        None => Ok(()),
    }
}
