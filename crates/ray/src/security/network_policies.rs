//! Which pods may reach the head and the workers of a RayCluster.

use serde_json::{Value, json};

use super::secured_cluster::SecuredCluster;
use crate::names;

/// The port of Ray's clients.
pub(super) const CLIENT_PORT: u16 = 10_001;
/// The port of the dashboard.
const DASHBOARD_PORT: u16 = 8265;
/// The port of metrics.
const METRICS_PORT: u16 = 8080;
/// The port of the proxy.
const PROXY_PORT: u16 = 8443;

/// The namespace of OpenShift's monitoring.
const MONITORING: &str = "openshift-monitoring";

/// Both policies.
pub(super) fn policies(cluster: &SecuredCluster<'_>) -> [Value; 2] {
    let own_pods = json!([{"podSelector": {"matchLabels": own_label(cluster)}}]);
    let head =
        policy(cluster, &cluster.names.head_policy(), "head", &head_rules(cluster, &own_pods));
    let workers = json!([{"from": own_pods}]);
    [head, policy(cluster, &cluster.names.workers_policy(), "worker", &workers)]
}

fn head_rules(cluster: &SecuredCluster<'_>, own_pods: &Value) -> Value {
    let facts = &cluster.settings.facts;
    let operator = json!({
        "podSelector": {"matchLabels": {"app.kubernetes.io/component": "kuberay-operator"}},
        "namespaceSelector": namespaces(&facts.operator_namespaces),
    });
    // The agent asks heads for their jobs, as the official operator would.
    let agent = json!({
        "podSelector": {"matchLabels": {
            names::APP_NAME_LABEL: "sluice",
            "app.kubernetes.io/component": "agent",
        }},
        "namespaceSelector": namespaces(std::slice::from_ref(&facts.agent_namespace)),
    });
    let monitoring = json!({"namespaceSelector": namespaces(&[MONITORING.to_owned()])});
    // The proxy asks for the user, and encrypted clients have a certificate.
    let open = if cluster.settings.config.mtls {
        ports(&[PROXY_PORT, CLIENT_PORT])
    } else {
        ports(&[PROXY_PORT])
    };
    json!([
        {"from": own_pods},
        {"from": [{"podSelector": {}}], "ports": ports(&[CLIENT_PORT, DASHBOARD_PORT])},
        {"from": [operator, agent], "ports": ports(&[DASHBOARD_PORT, CLIENT_PORT])},
        {"from": [monitoring], "ports": ports(&[METRICS_PORT])},
        {"ports": open},
    ])
}

fn namespaces(names: &[String]) -> Value {
    json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": names},
    ]})
}

fn ports(numbers: &[u16]) -> Value {
    numbers.iter().map(|number| json!({"protocol": "TCP", "port": number})).collect()
}

fn own_label(cluster: &SecuredCluster<'_>) -> Value {
    json!({names::CLUSTER_LABEL: cluster.names.cluster})
}

fn policy(cluster: &SecuredCluster<'_>, name: &str, node_type: &str, rules: &Value) -> Value {
    let mut labels = own_label(cluster);
    labels[names::NODE_TYPE_LABEL] = json!(node_type);
    let mut policy = cluster.object("networking.k8s.io/v1", "NetworkPolicy", name);
    policy["spec"] = json!({
        "podSelector": {"matchLabels": labels},
        "policyTypes": ["Ingress"],
        "ingress": rules,
    });
    policy
}
