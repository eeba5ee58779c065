//! What the proxy before a dashboard needs on OpenShift: a secret for cookies, a Service, an account, and its right to ask about users.

use serde_json::{Value, json};
use sha1::{Digest, Sha1};

use super::{containers::PROXY, secured_cluster::SecuredCluster};
use crate::{json::base64, names};

/// The Secret with which the proxy signs cookies. It is made once, so that users stay signed in.
pub(super) fn secret(cluster: &SecuredCluster<'_>, salt: &[u8]) -> Value {
    let digest = Sha1::new().chain_update(cluster.names.cluster).chain_update(salt).finalize();
    let mut secret = cluster.object("v1", "Secret", &cluster.names.proxy_secret());
    secret["stringData"] = json!({"cookie_secret": base64(&digest)});
    secret
}

/// The Service of the proxy. OpenShift makes its certificate because of the annotation.
pub(super) fn service(cluster: &SecuredCluster<'_>) -> Value {
    let names = &cluster.names;
    let mut service = cluster.object("v1", "Service", &names.proxy_service());
    service["metadata"]["annotations"] = json!({
        "service.beta.openshift.io/serving-cert-secret-name": names.proxy_certificate(),
    });
    service["spec"] = json!({
        "ports": [{"name": PROXY, "port": 443, "targetPort": PROXY, "protocol": "TCP"}],
        "selector": {names::CLUSTER_LABEL: names.cluster, names::NODE_TYPE_LABEL: "head"},
    });
    service
}

/// The account of the head's pod. OpenShift sends users that have signed in back to the Route that it names.
pub(super) fn account(cluster: &SecuredCluster<'_>) -> Value {
    let names = &cluster.names;
    let reference = json!({
        "kind": "OAuthRedirectReference",
        "apiVersion": "v1",
        "reference": {"kind": "Route", "name": names.dashboard()},
    });
    let mut account = cluster.object("v1", "ServiceAccount", &names.proxy_account());
    account["metadata"]["annotations"] = json!({
        "serviceaccounts.openshift.io/oauth-redirectreference.first": reference.to_string(),
    });
    account
}

/// The right to ask the API server about users. It has no namespace, so labels say which cluster it belongs to.
pub(super) fn binding(cluster: &SecuredCluster<'_>) -> Value {
    let names = &cluster.names;
    let rbac = "rbac.authorization.k8s.io";
    json!({
        "apiVersion": format!("{rbac}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": {
            "name": names.proxy_binding(),
            "labels": {
                names::SECURED_CLUSTER_LABEL: names.cluster,
                names::SECURED_NAMESPACE_LABEL: names.namespace,
            },
        },
        "subjects": [{
            "kind": "ServiceAccount",
            "name": names.proxy_account(),
            "namespace": names.namespace,
        }],
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "system:auth-delegator"},
    })
}
