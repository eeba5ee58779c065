//! What is added to the pods of a RayCluster: the proxy before the dashboard, and a certificate for each node.

use serde_json::{Value, json};

use super::{config::SecurityConfig, object_names::ObjectNames, secured_cluster::head_service};

/// The container of the proxy, and its port.
pub(super) const PROXY: &str = "oauth-proxy";
/// The volume with the certificate of the proxy.
pub(super) const PROXY_VOLUME: &str = "proxy-tls-secret";
/// The container that makes the certificate of a node.
pub(super) const CREATE_CERT: &str = "create-cert";
/// Its variable with the names of the node in the certificate.
pub(super) const CERT_NAMES: &str = "CERT_NAMES";

/// Where the Secret with the CA is mounted.
const AUTHORITY_PATH: &str = "/home/ray/workspace/ca";
/// Where a node has its certificate.
const CERTIFICATE_PATH: &str = "/home/ray/workspace/tls";

/// Makes a key of the node and signs its certificate with the CA. The node's other names are in the variable `CERT_NAMES`.
///
/// The key of the CA stays in its volume. The key of the node may be read by the user of Ray's container, which is another one.
const CREATE_CERT_SCRIPT: &str = r#"set -e
cd /home/ray/workspace/tls
openssl req -new -nodes -newkey rsa:2048 -subj /CN=ray-node -keyout server.key -out server.csr
{
  echo "basicConstraints = CA:FALSE"
  echo "authorityKeyIdentifier = keyid"
  echo "subjectAltName = DNS:localhost,IP:127.0.0.1,IP:${MY_POD_IP}${CERT_NAMES}"
} > server.ext
openssl x509 -req -days 365 -in server.csr -extfile server.ext -set_serial "0x$(openssl rand -hex 15)" \
  -CA /home/ray/workspace/ca/ca.crt -CAkey /home/ray/workspace/ca/ca.key -out server.crt
cp /home/ray/workspace/ca/ca.crt ca.crt
chmod a+r server.key server.crt ca.crt
"#;

/// The container that lets users with the right to get pods of the namespace to the dashboard.
pub(super) fn proxy(names: &ObjectNames<'_>, config: &SecurityConfig) -> Value {
    let rule = json!({"/": {"resource": "pods", "namespace": names.namespace, "verb": "get"}});
    json!({
        "name": PROXY,
        "image": config.oauth_proxy_image,
        "ports": [{"name": PROXY, "containerPort": 8443, "protocol": "TCP"}],
        "env": [{
            "name": "COOKIE_SECRET",
            "valueFrom": {"secretKeyRef": {"name": names.proxy_secret(), "key": "cookie_secret"}},
        }],
        "args": [
            "--https-address=:8443",
            "--provider=openshift",
            format!("--openshift-service-account={}", names.proxy_account()),
            "--upstream=http://localhost:8265",
            "--tls-cert=/etc/tls/private/tls.crt",
            "--tls-key=/etc/tls/private/tls.key",
            "--cookie-secret=$(COOKIE_SECRET)",
            format!("--openshift-delegate-urls={rule}"),
        ],
        "volumeMounts": [{"name": PROXY_VOLUME, "mountPath": "/etc/tls/private", "readOnly": true}],
    })
}

/// The volume with the certificate of the proxy.
pub(super) fn proxy_volume(names: &ObjectNames<'_>) -> Value {
    json!({"name": PROXY_VOLUME, "secret": {"secretName": names.proxy_certificate()}})
}

/// The variables that make Ray encrypt.
pub(super) fn tls_variables() -> Vec<Value> {
    let path = |file: &str| format!("{CERTIFICATE_PATH}/{file}");
    vec![
        pod_address(),
        json!({"name": "RAY_USE_TLS", "value": "1"}),
        json!({"name": "RAY_TLS_SERVER_CERT", "value": path("server.crt")}),
        json!({"name": "RAY_TLS_SERVER_KEY", "value": path("server.key")}),
        json!({"name": "RAY_TLS_CA_CERT", "value": path("ca.crt")}),
    ]
}

fn pod_address() -> Value {
    json!({"name": "MY_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}})
}

/// The volumes with the CA and with the certificate of the node.
pub(super) fn tls_volumes(names: &ObjectNames<'_>) -> Vec<Value> {
    vec![
        json!({"name": "ca-vol", "secret": {"secretName": names.authority()}}),
        json!({"name": "server-cert", "emptyDir": {}}),
    ]
}

/// Where both are mounted in Ray's container.
pub(super) fn tls_mounts() -> Vec<Value> {
    vec![
        json!({"name": "ca-vol", "mountPath": AUTHORITY_PATH, "readOnly": true}),
        json!({"name": "server-cert", "mountPath": CERTIFICATE_PATH}),
    ]
}

/// The container that makes the certificate of the head, which clients of several hosts call.
pub(super) fn head_create_cert(
    cluster: &Value,
    names: &ObjectNames<'_>,
    config: &SecurityConfig,
) -> Value {
    let client = client_host(names, config);
    let service = format!("{}.{}.svc", head_service(cluster), names.namespace);
    create_cert(config, &format!(",DNS:{service},DNS:{service}.cluster.local,DNS:{client}"))
}

/// The container that makes the certificate of a worker, which is called at its address.
pub(super) fn worker_create_cert(config: &SecurityConfig) -> Value {
    create_cert(config, "")
}

/// The host of Ray's clients outside of the cluster.
pub(super) fn client_host(names: &ObjectNames<'_>, config: &SecurityConfig) -> String {
    format!("{}-{}.{}", names.client(), names.namespace, config.ingress_domain)
}

fn create_cert(config: &SecurityConfig, more_names: &str) -> Value {
    json!({
        "name": CREATE_CERT,
        "image": config.cert_generator_image,
        "command": ["sh", "-c", CREATE_CERT_SCRIPT],
        // As a variable, so that no name is a part of the script.
        "env": [pod_address(), {"name": CERT_NAMES, "value": more_names}],
        "volumeMounts": tls_mounts(),
    })
}
