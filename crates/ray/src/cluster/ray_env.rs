//! Variables of Ray's containers.
//!
//! A variable of the spec wins, but for the addresses of the head and what a node is, which are always appended.
//! Source: docs/reference/ray.md §3 "Ray container".

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    context::{ClusterContext, Origin, object_name},
    gcs_storage,
};
use crate::{
    json::{list, list_if_any, named, text},
    names,
    v1::{AuthOptions, RedisCredential},
};

/// The volume with the token of Kubernetes.
const TOKEN_VOLUME: &str = "ray-token";

/// Variables that say where the head is.
pub(crate) fn append_head_address(context: &ClusterContext<'_>, container: &mut Value) {
    let address = context.head_address();
    let env = list(container, "env");
    env.push(json!({"name": "FQ_RAY_IP", "value": address}));
    env.push(json!({"name": "RAY_IP", "value": context.head_service_name()}));
}

/// Adds a variable that is not set. The first value stays, so the order of the calls is the order of precedence.
pub(crate) fn add_variable(container: &mut Value, variable: Value) {
    add_named(container, "env", variable);
}

fn from_field(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

fn plain(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}

/// Adds what each Ray container has.
pub(crate) fn add_common(
    context: &ClusterContext<'_>,
    is_head: bool,
    command: &str,
    container: &mut Value,
) {
    // Defaults of the administrator are less than the spec and more than the defaults below.
    for variable in &context.settings.pods.env {
        add_variable(container, variable.clone());
    }
    let port = context.gcs_port();
    let address = if is_head {
        format!("127.0.0.1:{port}")
    } else {
        format!("{}:{port}", context.head_address())
    };
    let identity = [
        from_field("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
        from_field("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
        from_field("RAY_CLOUD_INSTANCE_ID", "metadata.name"),
        from_field("RAY_NODE_TYPE_NAME", "metadata.labels['ray.io/group']"),
        plain("KUBERAY_GEN_RAY_START_CMD", command),
    ];
    // Of two variables of one name the last one counts.
    list(container, "env").extend(identity);
    for (name, value) in
        [("RAY_PORT", port), ("RAY_ADDRESS", &address), ("RAY_USAGE_STATS_KUBERAY_IN_USE", "1")]
    {
        add_variable(container, plain(name, value));
    }
    if is_head {
        list(container, "env").push(plain("RAY_USAGE_STATS_EXTRA_TAGS", &usage_tags(context)));
    }
    let mut variables = Vec::new();
    variables.push(plain("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1"));
    if context.origin() == Origin::Service {
        variables.push(plain("RAY_timeout_ms_task_wait_for_death_info", "0"));
        variables.push(plain("RAY_gcs_server_request_timeout_seconds", "5"));
        variables.push(plain("RAY_SERVE_KV_TIMEOUT_S", "5"));
    }
    // A new head continues with the stored state, so workers wait for it.
    if context.is_fault_tolerant() && !is_head {
        variables.push(plain("RAY_gcs_rpc_server_reconnect_timeout_s", "600"));
    }
    for variable in variables {
        add_variable(container, variable);
    }
}

fn usage_tags(context: &ClusterContext<'_>) -> String {
    let kind = match context.origin() {
        Origin::User => "RayCluster",
        Origin::Job => "RayJob",
        Origin::Service => "RayService",
    };
    format!("kuberay_version={};kuberay_crd={kind}", context.settings.version)
}

/// Adds what says where the head stores its state.
pub(crate) fn add_storage(
    context: &ClusterContext<'_>,
    params: &BTreeMap<String, String>,
    container: &mut Value,
) {
    if !context.is_fault_tolerant() {
        return;
    }
    if context.has_embedded_storage() {
        add_variable(container, plain("RAY_gcs_storage", "rocksdb"));
        add_variable(container, plain("RAY_gcs_storage_path", gcs_storage::PATH));
        return;
    }
    if let Some(options) = &context.spec.gcs_fault_tolerance_options {
        let mut address = json!({"name": "RAY_REDIS_ADDRESS"});
        if !options.redis_address.is_empty() {
            address["value"] = json!(options.redis_address);
        }
        add_variable(container, address);
        for (name, credential) in [
            ("REDIS_USERNAME", &options.redis_username),
            ("REDIS_PASSWORD", &options.redis_password),
        ] {
            if let Some(credential) = credential {
                add_variable(container, secret_variable(name, credential));
            }
        }
    } else if let Some(password) = params.get("redis-password") {
        // Fault tolerance by annotation has no field for the password.
        add_variable(container, plain("REDIS_PASSWORD", password));
    }
    add_variable(container, plain("RAY_external_storage_namespace", &context.storage_namespace()));
}

fn secret_variable(name: &str, credential: &RedisCredential) -> Value {
    let mut variable = json!({"name": name});
    if !credential.value.is_empty() {
        variable["value"] = json!(credential.value);
    }
    if let Some(source) = &credential.value_from {
        variable["valueFrom"] = source.clone();
    }
    variable
}

/// Adds what Ray needs to ask for a token.
pub(crate) fn add_token(context: &ClusterContext<'_>, container: &mut Value) {
    let Some(options) = context.spec.auth_options.as_ref().filter(|it| it.mode == "token") else {
        return;
    };
    add_variable(container, plain("RAY_AUTH_MODE", "token"));
    if options.enable_k8s_token_auth == Some(true) {
        add_variable(container, plain("RAY_ENABLE_K8S_TOKEN_AUTH", "true"));
        let mount = json!({
            "name": TOKEN_VOLUME,
            "readOnly": true,
            "mountPath": "/var/run/secrets/ray.io/serviceaccount",
        });
        add_named(container, "volumeMounts", mount);
        return;
    }
    let secret = secret_name(context, options);
    let source = json!({"secretKeyRef": {"name": secret, "key": "auth_token"}});
    add_variable(container, json!({"name": "RAY_AUTH_TOKEN", "valueFrom": source}));
}

/// The Secret with the token of the cluster, if its head asks for one of its own.
pub(crate) fn token_secret(context: &ClusterContext<'_>) -> Option<String> {
    let options = context.spec.auth_options.as_ref().filter(|it| it.mode == "token")?;
    (options.enable_k8s_token_auth != Some(true)).then(|| secret_name(context, options))
}

fn secret_name(context: &ClusterContext<'_>, options: &AuthOptions) -> String {
    let given = options.secret_name.clone().filter(|name| !name.is_empty());
    given.unwrap_or_else(|| object_name(context.name()))
}

/// Adds what the Ray container of a pod needs to ask for a token, and a container of the template that waits for the head.
pub(crate) fn add_pod_token(context: &ClusterContext<'_>, spec: &mut Value) {
    if let Some(container) = list(spec, "containers").first_mut() {
        add_token(context, container);
    }
    let waiting = list_if_any(spec, "initContainers").iter_mut();
    for container in waiting.filter(|container| container["name"] == names::WAIT_CONTAINER) {
        add_token(context, container);
    }
    add_token_volume(context, spec);
}

/// Adds the volume with the token of Kubernetes.
pub(crate) fn add_token_volume(context: &ClusterContext<'_>, spec: &mut Value) {
    let options = context.spec.auth_options.as_ref().filter(|it| it.mode == "token");
    if options.and_then(|options| options.enable_k8s_token_auth) != Some(true) {
        return;
    }
    let token = json!({"serviceAccountToken": {"expirationSeconds": 3600, "path": "token"}});
    let volume = json!({"name": TOKEN_VOLUME, "projected": {"sources": [token]}});
    add_named(spec, "volumes", volume);
}

/// Adds an item to a list that has none of its name: the API server refuses a second one.
fn add_named(object: &mut Value, field: &str, item: Value) {
    if named(&object[field], text(&item["name"])).is_none() {
        list(object, field).push(item);
    }
}
