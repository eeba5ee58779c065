//! The ways to the dashboard and to Ray's client port from outside: Ingresses, or OpenShift's Routes.

use serde_json::{Value, json};

use super::{
    config::SecuritySettings,
    containers::{PROXY, client_host},
    network_policies::CLIENT_PORT,
    secured_cluster::{SecuredCluster, head_service},
};
use crate::step::ObjectTarget;

/// The ways of a cluster, the names of which another object may have. None of a suspended cluster, which gets no way.
pub(crate) fn exposure_targets(cluster: &Value, settings: &SecuritySettings) -> Vec<ObjectTarget> {
    let cluster = SecuredCluster::new(cluster, &[], settings);
    if cluster.is_suspended() {
        return Vec::new();
    }
    ways(&cluster).iter().map(ObjectTarget::of).collect()
}

/// Routes or Ingresses, as the platform and the settings have them.
pub(super) fn ways(cluster: &SecuredCluster<'_>) -> Vec<Value> {
    if cluster.settings.has_proxy() {
        routes(cluster).into()
    } else if cluster.settings.has_ingress() {
        ingresses(cluster).into()
    } else {
        Vec::new()
    }
}

/// Ingresses of a plain Kubernetes, without authentication.
fn ingresses(cluster: &SecuredCluster<'_>) -> [Value; 2] {
    let (names, domain) = (&cluster.names, &cluster.settings.config.ingress_domain);
    let service = head_service(cluster.cluster);
    let mut dashboard = cluster.object("networking.k8s.io/v1", "Ingress", &names.dashboard());
    let host = format!("{}-{}.{domain}", names.dashboard(), names.namespace);
    dashboard["spec"] = spec(&host, "Prefix", &service, &json!({"name": "dashboard"}));

    let mut client = cluster.object("networking.k8s.io/v1", "Ingress", &names.client());
    // A client of Ray does not speak HTTP, so its connections are passed through as they are.
    client["metadata"]["annotations"] = json!({
        "nginx.ingress.kubernetes.io/rewrite-target": "/",
        "nginx.ingress.kubernetes.io/ssl-redirect": "true",
        "nginx.ingress.kubernetes.io/ssl-passthrough": "true",
    });
    let host = client_host(names, &cluster.settings.config);
    let port = json!({"number": CLIENT_PORT});
    client["spec"] = spec(&host, "ImplementationSpecific", &service, &port);
    client["spec"]["ingressClassName"] = json!("nginx");
    [dashboard, client]
}

fn spec(host: &str, path_type: &str, service: &str, port: &Value) -> Value {
    let backend = json!({"service": {"name": service, "port": port}});
    let path = json!({"path": "/", "pathType": path_type, "backend": backend});
    json!({"rules": [{"host": host, "http": {"paths": [path]}}]})
}

/// Routes of OpenShift: the dashboard behind the proxy, clients with their own encryption.
fn routes(cluster: &SecuredCluster<'_>) -> [Value; 2] {
    let names = &cluster.names;
    let mut dashboard = cluster.object("route.openshift.io/v1", "Route", &names.dashboard());
    dashboard["spec"] = json!({
        "to": {"kind": "Service", "name": names.proxy_service()},
        "port": {"targetPort": PROXY},
        "tls": {"termination": "reencrypt", "insecureEdgeTerminationPolicy": "Redirect"},
    });
    let mut client = cluster.object("route.openshift.io/v1", "Route", &names.client());
    client["spec"] = json!({
        "host": client_host(names, &cluster.settings.config),
        "to": {"kind": "Service", "name": head_service(cluster.cluster), "weight": 100},
        "port": {"targetPort": "client"},
        "tls": {"termination": "passthrough"},
    });
    [dashboard, client]
}
