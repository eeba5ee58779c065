//! The objects on the manager cluster: a Secret with the kubeconfig, and the MultiKueueCluster. Pure.

use crds::names::{
    SLUICECTL,
    annotations::{JOINED_CONFIGS, TOKEN_EXPIRES},
    labels::MANAGED_BY,
};
use serde_json::{Value, json};

use super::{JoinEndpoint, JoinRequest};

/// The Secret. `token` goes nowhere else.
pub(super) fn secret(request: &JoinRequest, endpoint: &JoinEndpoint, token: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": request.name, "namespace": request.hub_namespace,
            "labels": {MANAGED_BY: SLUICECTL},
        },
        "stringData": {"kubeconfig": kubeconfig(request, endpoint, token).to_string()},
    })
}

/// The kubeconfig. JSON is YAML.
fn kubeconfig(request: &JoinRequest, endpoint: &JoinEndpoint, token: &str) -> Value {
    let mut cluster = json!({"server": endpoint.server});
    if let Some(authority) = &endpoint.authority {
        cluster["certificate-authority-data"] = json!(authority);
    }
    if let Some(name) = &endpoint.tls_server_name {
        cluster["tls-server-name"] = json!(name);
    }
    let (name, user) = (&request.name, &request.account.name);
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
    })
}

/// The MultiKueueCluster. `configs` are the configurations that `join` has added it to.
pub(super) fn cluster(request: &JoinRequest, expires: Option<&str>, configs: &[String]) -> Value {
    let mut annotations = json!({});
    if let Some(expires) = expires {
        annotations[TOKEN_EXPIRES] = json!(expires);
    }
    if !configs.is_empty() {
        annotations[JOINED_CONFIGS] = json!(configs.join(","));
    }
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
        "metadata": {
            "name": request.name, "labels": {MANAGED_BY: SLUICECTL}, "annotations": annotations,
        },
        "spec": {"clusterSource": {
            "kubeConfig": {"locationType": "Secret", "location": request.name},
        }},
    })
}

/// A MultiKueueConfig of this worker alone.
pub(super) fn config(name: &str, cluster: &str) -> Value {
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueConfig",
        "metadata": {"name": name, "labels": {MANAGED_BY: SLUICECTL}},
        "spec": {"clusters": [cluster]},
    })
}
