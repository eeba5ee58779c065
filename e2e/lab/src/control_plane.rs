//! The arguments with which a cluster's programs run (docs/reference/lab.md, "Booting").
//!
//! Everything listens on 127.0.0.1 at ports of the state file. What differs from Kubernetes' defaults, and why:
//! * Leader election is off and etcd does not sync to disk: one of each, and nothing to survive.
//! * Nodes never become unhealthy for want of heartbeats: kwok sends none, so an idle lab writes nothing.
//! * The controllers' and the scheduler's client limits are far above the defaults of 20 and 50 requests a second, which
//!   would make two thousand pods a matter of minutes.
//! * Priority and fairness is off: a benchmark wants to see the server's limit and not a queue's.
//! * The garbage collector of Go may use a little more memory than it would, and has a bound, which saves CPU time.

use std::path::{Path, PathBuf};

use crate::component::Component;
use crate::real_nodes::gateway;
use crate::real_nodes::node::{LABEL, REAL};
use crate::state::ClusterState;

/// The files of a cluster.
struct Files<'a>(&'a Path);

impl Files<'_> {
    fn at(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

/// Where the certificates are.
pub(crate) fn certs_directory(cluster: &ClusterState) -> PathBuf {
    cluster.directory.join("pki")
}

/// kwok's configuration.
pub(crate) fn kwok_config(cluster: &ClusterState) -> PathBuf {
    cluster.directory.join("kwok.yaml")
}

/// The API server's egress configuration.
pub(crate) fn egress_config(cluster: &ClusterState) -> PathBuf {
    cluster.directory.join("egress.yaml")
}

/// What the API server reaches through the gateway of the lab in `directory`: kubelets, pods and Services. Webhooks with a `url:` and
/// etcd have no entry, so that they are reached directly.
pub(crate) fn egress_configuration(directory: &Path) -> String {
    let socket = gateway::egress_socket(directory);
    format!(
        "\
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: {}
",
        socket.display()
    )
}

/// The API server's audit policy.
pub(crate) fn audit_policy(cluster: &ClusterState) -> PathBuf {
    cluster.directory.join("audit-policy.yaml")
}

/// What the audit log holds: one line per finished request, without bodies. Reads of health and discovery are left out.
pub(crate) const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  nonResourceURLs: ['*']
- level: Metadata
";

/// The arguments of one program of `cluster`.
pub fn arguments(component: Component, cluster: &ClusterState, audit: bool) -> Vec<String> {
    match component {
        Component::Etcd => etcd(cluster),
        Component::ApiServer => api_server(cluster, audit),
        Component::ControllerManager => controller_manager(cluster),
        Component::Scheduler => scheduler(cluster),
        Component::Kwok => kwok(cluster),
    }
}

/// What is added to the environment of every program.
pub fn environment(component: Component) -> Vec<(&'static str, &'static str)> {
    let (percent, limit) = match component {
        Component::ApiServer => ("200", "3GiB"),
        _ => ("100", "1GiB"),
    };
    vec![("GOGC", percent), ("GOMEMLIMIT", limit)]
}

fn etcd(cluster: &ClusterState) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", cluster.etcd_port);
    let peer = format!("http://127.0.0.1:{}", cluster.etcd_peer_port);
    vec![
        format!("--name={}", cluster.name),
        format!("--data-dir={}", cluster.directory.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster={}={peer}", cluster.name),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
        "--quota-backend-bytes=8589934592".to_owned(),
    ]
}

fn api_server(cluster: &ClusterState, audit: bool) -> Vec<String> {
    let pki = certs_directory(cluster);
    let pki = Files(&pki);
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", cluster.etcd_port),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", cluster.api_port),
        format!("--tls-cert-file={}", pki.at("server.crt")),
        format!("--tls-private-key-file={}", pki.at("server.key")),
        format!("--client-ca-file={}", pki.at("ca.crt")),
        format!("--service-account-key-file={}", pki.at("service-account.pub")),
        format!("--service-account-signing-key-file={}", pki.at("service-account.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--allow-privileged".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--enable-priority-and-fairness=false".to_owned(),
        "--max-requests-inflight=2000".to_owned(),
        "--max-mutating-requests-inflight=1000".to_owned(),
        "--shutdown-delay-duration=0s".to_owned(),
    ];
    arguments.extend(aggregation(&pki));
    if !cluster.real_nodes.is_empty() {
        arguments.extend(real_nodes(cluster, &pki));
    }
    if audit {
        arguments.push(format!("--audit-policy-file={}", audit_policy(cluster).display()));
        arguments.push(format!("--audit-log-path={}", cluster.audit_log().display()));
    }
    arguments
}

/// The arguments for aggregated APIs: how the API server authenticates itself and the user to extension servers.
fn aggregation(pki: &Files<'_>) -> [String; 7] {
    [
        format!("--requestheader-client-ca-file={}", pki.at("front-proxy-ca.crt")),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        "--requestheader-allowed-names=front-proxy".to_owned(),
        format!("--proxy-client-cert-file={}", pki.at("front-proxy.crt")),
        format!("--proxy-client-key-file={}", pki.at("front-proxy.key")),
    ]
}

/// How the API server reaches real nodes: kubelets by address, through the gateway, as administrator; webhooks and aggregated APIs
/// at the addresses of their pods, because the gateway has no route to the addresses of Services.
fn real_nodes(cluster: &ClusterState, pki: &Files<'_>) -> [String; 5] {
    [
        "--enable-aggregator-routing=true".to_owned(),
        format!("--egress-selector-config-file={}", egress_config(cluster).display()),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--kubelet-client-certificate={}", pki.at("admin.crt")),
        format!("--kubelet-client-key={}", pki.at("admin.key")),
    ]
}

fn controller_manager(cluster: &ClusterState) -> Vec<String> {
    let pki = certs_directory(cluster);
    let pki = Files(&pki);
    let mut arguments = client_arguments(cluster, cluster.controller_manager_port);
    arguments.extend([
        format!("--service-account-private-key-file={}", pki.at("service-account.key")),
        format!("--root-ca-file={}", pki.at("ca.crt")),
        "--use-service-account-credentials".to_owned(),
        "--node-monitor-grace-period=10000h".to_owned(),
        "--concurrent-job-syncs=20".to_owned(),
    ]);
    arguments
}

fn scheduler(cluster: &ClusterState) -> Vec<String> {
    client_arguments(cluster, cluster.scheduler_port)
}

fn client_arguments(cluster: &ClusterState, port: u16) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", cluster.kubeconfig().display()),
        format!("--authentication-kubeconfig={}", cluster.kubeconfig().display()),
        format!("--authorization-kubeconfig={}", cluster.kubeconfig().display()),
        format!("--cert-dir={}", cluster.directory.join("generated").display()),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
    ]
}

fn kwok(cluster: &ClusterState) -> Vec<String> {
    let nodes = if cluster.real_nodes.is_empty() {
        "--manage-all-nodes".to_owned()
    } else {
        format!("--manage-nodes-with-label-selector={LABEL}!={REAL}")
    };
    vec![
        format!("--kubeconfig={}", cluster.kubeconfig().display()),
        format!("--config={}", kwok_config(cluster).display()),
        nodes,
        format!("--server-address=127.0.0.1:{}", cluster.kwok_port),
        "--node-lease-duration-seconds=0".to_owned(),
        "--node-ip=10.200.0.1".to_owned(),
        "--cidr=10.128.0.0/10".to_owned(),
        "--v=WARN".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> ClusterState {
        ClusterState::new("worker-1", Path::new("/labs/x"), [1, 2, 3, 4, 5, 6])
    }

    #[test]
    fn everything_listens_on_loopback_at_a_port_of_its_own() {
        let cluster = cluster();
        let all: Vec<String> = Component::ALL
            .into_iter()
            .flat_map(|component| arguments(component, &cluster, true))
            .collect();
        let text = all.join("\n");
        for port in [":1", ":2", "--secure-port=3", "--secure-port=4", "--secure-port=5", ":6"] {
            assert!(text.contains(port), "{port}");
        }
        let elsewhere = |argument: &&String| {
            argument.contains("=0.0.0.0")
                || argument.contains("//0.0.0.0")
                || argument.contains("=[::]")
        };
        assert_eq!(all.iter().find(elsewhere), None);
        for component in [Component::ApiServer, Component::ControllerManager, Component::Scheduler]
        {
            let arguments = arguments(component, &cluster, false);
            assert!(arguments.iter().any(|one| one == "--bind-address=127.0.0.1"), "{component}");
        }
    }

    #[test]
    fn the_audit_log_is_written_only_when_asked_for() {
        let count = |audit| {
            let arguments = arguments(Component::ApiServer, &cluster(), audit);
            arguments.iter().filter(|argument| argument.starts_with("--audit")).count()
        };
        assert_eq!((count(false), count(true)), (0, 2));
    }
}
